"""Who sits where in an adaptation: the seats that the focal player takes, and those of the others.

Seats of a meeting are numbered from the focal player on. In a game whose seats are alike it takes
every seat of the game in turn, and the others follow in cyclic order. In a game with sides it
stays on one: it takes all seats of that side at once, a focal team, or each of them in turn if its
companions on that side are named, too.
"""

from typing import NamedTuple

from coplay.core.errors import UserError, unknown
from coplay.core.game import Game


class Places(NamedTuple):
    """orders: [turn][seat] the seat of the game that each seat of the meeting is; the games of a
    turn have their seats renumbered so. focal: the seats of the meeting that the focal player
    takes; its own view is that of the first of them."""

    orders: tuple[tuple[int, ...], ...]
    focal: tuple[int, ...] = (0,)

    @property
    def others(self) -> tuple[int, ...]:
        """The co-players' seats of the meeting, in the order in which they are named."""
        return tuple(seat for seat in range(len(self.orders[0])) if seat not in self.focal)

    @property
    def seen(self) -> tuple[int, ...]:
        """Everybody else as the first focal seat sees them: in cyclic order from itself on."""
        seats = len(self.orders[0])
        return tuple((self.focal[0] + step) % seats for step in range(1, seats))

    @property
    def renumbers(self) -> bool:
        """Whether any turn has seats that are numbered otherwise than in the game."""
        return any(order != tuple(range(len(order))) for order in self.orders)


def every_seat(game: Game) -> Places:
    """The focal player takes each seat in turn."""
    seats = game.seats
    return Places(
        tuple(tuple((turn + seat) % seats for seat in range(seats)) for turn in range(seats))
    )


def find_places(game: Game, side: str, co_players: int) -> Places:
    """The places of a meeting with so many co-players. side: by name or number; "" where the game
    has none."""
    if len(game.sides) == 1:
        if side:
            raise UserError(f"{game.name} has no sides: leave out --side {side}")
        if not game.symmetric:
            raise UserError(
                f"the seats of {game.name} cannot be renumbered, so nobody can take each of them "
                "in turn: adaptation needs a game whose seats are alike, such as stag-hunt, or one "
                "with sides, such as predator-prey"
            )
        _check_count(game, co_players, (game.seats - 1,))
        return every_seat(game)
    mine = game.sides[side_number(game, side)]
    others = tuple(seat for seat in range(game.seats) if seat not in mine)
    _check_count(game, co_players, tuple(sorted({len(others), game.seats - 1})), side)
    if co_players == len(others):
        # As the game numbers them, so that a game whose seats cannot be renumbered will do.
        return Places((tuple(range(game.seats)),), mine)
    if not game.symmetric:
        raise UserError(
            f"the seats of {game.name} cannot be renumbered, so the focal player takes all seats "
            f"of its side: name {len(others)} co-players, those of the other side"
        )
    turns = [mine[at:] + mine[:at] for at in range(len(mine))]
    return Places(tuple((*turn, *others) for turn in turns))


def side_number(game: Game, side: str) -> int:
    """A side of a game by its name or number."""
    names = list(game.side_names)
    if not side:
        raise UserError(
            f"{game.name} has {len(names)} sides: say by --side on which the player is, "
            f"{' or '.join(names)}"
        )
    if side in names:
        return names.index(side)
    if side.isdigit() and int(side) < len(names):
        return int(side)
    raise unknown(f"side of {game.name}", side, names)


def _check_count(game: Game, count: int, allowed: tuple[int, ...], side: str = "") -> None:
    if count in allowed:
        return
    where = f"on the other side of {side}" if side else "beside the focal player's"
    message = f"--against names {count} co-players; {game.name} has {allowed[0]} seats {where} here"
    if len(allowed) > 1:
        message += f" (or name {allowed[1]}: first its companions, so that it takes one seat)"
    raise UserError(message)
