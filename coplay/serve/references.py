"""What other players get in the seats of people, to stand beside what people get."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.group import group_players
from coplay.matches.match import play_match
from coplay.training.players import make_player
from coplay.training.seating import is_run

HUMAN = "human"
"""A person, as an entry of a seating."""
EPISODES = 200


def candidates(game: Game, entries: Sequence[str]) -> list[str]:
    """The players that are compared with people: trained ones of the seating, and the game's
    scripted ones."""
    trained = [entry for entry in entries if entry != HUMAN and is_run(entry)]
    return list(dict.fromkeys([*trained, *game.scripted, "random"]))


def measured(
    game: Game,
    entries: Sequence[str],
    name: str,
    episodes: int = EPISODES,
    greedy: bool = False,
) -> dict[str, Any]:
    """What a player gets in the seats of people, with everybody else as they are."""
    seated = [name if entry == HUMAN else entry for entry in entries]
    players = [make_player(entry, game, seat, greedy) for seat, entry in enumerate(seated)]
    record = play_match(game, group_players(players), episodes).record(game.name, seated)
    return {"player": name, "episodes": record["episodes"], "seats": record["seats"]}


def measure_all(
    game: Game,
    entries: Sequence[str],
    greedy: bool,
    tell: Callable[[dict[str, Any]], None],
    stopped: Callable[[], bool],
) -> None:
    """Measure one candidate after the other, and tell what is known so far each time."""
    found: list[dict[str, Any]] = []
    names = candidates(game, entries)
    for number, name in enumerate(names):
        if stopped():
            return
        # A player that cannot sit there is left out.
        with suppress(UserError, RuntimeError, MemoryError):
            found = [*found, measured(game, entries, name, EPISODES, greedy)]
        left = len(names) - number - 1
        tell({"kind": "references", "players": found, "left": left})
