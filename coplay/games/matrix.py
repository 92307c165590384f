"""Iterated matrix games: `matrix:prisoners-dilemma` and its kin, or any pay-off table.

All seats choose at once, get what the table says, see what everybody did, and play again.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from coplay.core.config import Config, Range, ShareBelowOne, only_if
from coplay.core.errors import UserError, unknown
from coplay.core.game import Game, Observation, Outcome, ScriptedPolicy
from coplay.games.drawing import FAINT_INK, FLOOR, GRID, INK, Pen, blend, seat_colour
from coplay.games.matrix_players import players_of


@dataclass(frozen=True)
class MatrixConfig(Config):
    """An iterated matrix game."""

    players: Annotated[int, Range(least=2, most=64)] = 2
    """Number of seats."""
    rounds: Annotated[int, Range(least=1, most=32_000)] = 50
    """Rounds of an episode; with a continuation below 1, the most that are played."""
    continuation: Annotated[float, Range(above=0, most=1)] = 1.0
    """Probability that the game goes on after a round; 1: exactly `rounds` rounds."""
    noise: ShareBelowOne = 0.0
    """Probability that an action is executed, and seen, as another one."""
    payoff: tuple[float, ...] = ()
    """The pay-off table, row by row. Two players with a actions: a x a numbers, rows for the own
    action and columns for the other's, the same for both; or first the table of seat 0, then that
    of seat 1. More players: two rows, columns for 0, 1, … others that take the second action.
    Empty: that of the game's name."""


@dataclass(frozen=True)
class PublicGoodsConfig(MatrixConfig):
    """A public goods game."""

    players: Annotated[int, Range(least=2, most=64)] = 4
    """Number of seats."""
    multiplier: Annotated[float, Range(above=0), only_if("payoff", ())] = 2.0
    """What the contributions, of 1 each, are multiplied by before everybody gets the same share."""


class MatrixKind(NamedTuple):
    """A named game. actions: their names. payoff: as in `MatrixConfig`."""

    actions: tuple[str, ...]
    payoff: tuple[float, ...]


KINDS = {
    "prisoners-dilemma": MatrixKind(("cooperate", "defect"), (3.0, 0.0, 5.0, 1.0)),
    "stag-hunt": MatrixKind(("stag", "hare"), (4.0, 0.0, 3.0, 3.0)),
    "chicken": MatrixKind(("swerve", "dare"), (3.0, 1.0, 4.0, 0.0)),
    "matching-pennies": MatrixKind(
        ("heads", "tails"), (1.0, -1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0)
    ),
    "coordination": MatrixKind(("left", "right"), (1.0, 0.0, 0.0, 1.0)),
}
"""Named games of two players. In matching pennies seat 0 wins if both are equal."""
PUBLIC_GOODS = "public-goods"


class MatrixState(NamedTuple):
    """One game copy.

    place: [seat] which of the game's places the player has: whose pay-off table, whose noise.
    last: [seat] the last action as executed; -1 before the first round.
    strayed: [seat] has taken another action than the first one in this episode.
    over: [] the episode has ended.
    time: [] rounds played.
    """

    place: Integer[Array, " seat"]
    last: Integer[Array, " seat"]
    strayed: Bool[Array, " seat"]
    over: Bool[Array, ""]
    time: Integer[Array, ""]


class MatrixGame(Game):
    """Rules in `step`, ego views in `observe`; scripted players are in `matrix_players`."""

    config: MatrixConfig = eqx.field(static=True)
    name: str = eqx.field(static=True)  # type: ignore[misc]
    action_names: tuple[str, ...] = eqx.field(static=True)  # type: ignore[misc]
    payoff: tuple[tuple[tuple[float, ...], ...], ...] = eqx.field(static=True)
    """[table][own action][sum of the others' actions], one table for all or one per place."""

    @property
    def seats(self) -> int:
        return self.config.players

    @property
    def horizon(self) -> int:
        return self.config.rounds

    @property
    def seat_features(self) -> int:  # type: ignore[override]
        return self.actions

    @property
    def teams(self) -> tuple[int, ...]:
        """Places with different tables are sides of their own."""
        return tuple(range(self.seats)) if self.roles else ()

    def side_of(self, state: MatrixState) -> Int[Array, " seat"]:
        """Two players are always two sides."""
        return state.place.astype(jnp.int32)

    @property
    def roles(self) -> bool:
        """Whether each place has a pay-off table of its own."""
        return len(self.payoff) > 1

    def alive(self, state: MatrixState) -> Bool[Array, " seat"]:
        return jnp.broadcast_to(~state.over, (self.seats,))

    def last_actions(self, state: MatrixState) -> Integer[Array, " seat"]:
        """The first action before the first round."""
        return jnp.maximum(state.last, 0)

    def permute_seats(self, state: MatrixState, order: Int[Array, " seat"]) -> MatrixState:
        return state._replace(
            place=state.place[order], last=state.last[order], strayed=state.strayed[order]
        )

    # --- rules ---------------------------------------------------------------------------------

    def reset(self, key: PRNGKeyArray) -> MatrixState:
        return MatrixState(
            place=jnp.arange(self.seats, dtype=jnp.int8),
            last=jnp.full(self.seats, -1, jnp.int8),
            strayed=jnp.zeros(self.seats, bool),
            over=jnp.bool_(False),
            time=jnp.int16(0),
        )

    def table(self, place: Integer[Array, " seat"]) -> Float[Array, "seat own others"]:
        """The pay-off table of each seat."""
        tables = jnp.asarray(self.payoff, jnp.float32)
        return (
            tables[place]
            if self.roles
            else jnp.broadcast_to(tables, (self.seats, *tables[0].shape))
        )

    def pay(
        self, place: Integer[Array, " seat"], actions: Integer[Array, " seat"]
    ) -> Float[Array, " seat"]:
        """What each seat gets for a joint action."""
        own = actions.astype(jnp.int32)
        # Of two players the sum is the other's action; of more, with two actions, a count.
        return self.table(place)[jnp.arange(self.seats), own, jnp.sum(own) - own]

    def step(
        self, key: PRNGKeyArray, state: MatrixState, actions: Int[Array, " seat"]
    ) -> tuple[MatrixState, Outcome]:
        config = self.config
        end_key, slip_key, to_key = jax.random.split(key, 3)
        # A number that is no action counts as the nearest one.
        executed = jnp.clip(actions, 0, self.actions - 1)
        if config.noise:
            slips = jax.random.uniform(slip_key, (self.seats,)) < config.noise
            shift = jax.random.randint(to_key, (self.seats,), 1, self.actions)
            slipped = (executed + shift[state.place]) % self.actions
            executed = jnp.where(slips[state.place], slipped, executed)
        executed = executed.astype(jnp.int8)
        time = state.time + jnp.int16(1)
        full = time >= config.rounds
        ended = full
        if config.continuation < 1:
            ended = jax.random.uniform(end_key) >= config.continuation
        going = ~state.over
        following = MatrixState(
            place=state.place,
            last=jnp.where(going, executed, state.last),
            strayed=state.strayed | (going & (executed > 0)),
            over=state.over | ended,
            time=time,
        )
        outcome = Outcome(
            reward=jnp.where(going, self.pay(state.place, executed), 0.0),
            terminated=jnp.broadcast_to(going & ended, (self.seats,)),
            truncated=going & full & ~ended,
        )
        return following, outcome

    # --- ego views and pictures ----------------------------------------------------------------

    def observe(self, state: MatrixState) -> Observation:
        """Features: for each player ego-first its last action one-hot (zeros before the first
        round), the own place where places have different tables, and time / rounds (0 where the
        end is a matter of chance)."""
        seats = self.seats
        order = (np.arange(seats)[:, None] + np.arange(seats)) % seats
        last = state.last[:, None] == np.arange(self.actions)
        time = state.time / self.config.rounds if self.config.continuation == 1 else 0.0
        parts = [last[order].reshape(seats, -1).astype(jnp.float32)]
        if self.roles:
            parts.append(state.place[:, None].astype(jnp.float32))
        parts.append(jnp.full((seats, 1), time, jnp.float32))
        return Observation(
            planes=jnp.zeros((seats, 0, 0, 0), jnp.int8),
            features=jnp.concatenate(parts, axis=1),
            legal=jnp.ones((seats, self.actions), bool),
        )

    def draw(self, state: MatrixState, cell: int = 48) -> np.ndarray:
        return draw_round(self, state, cell)

    def text(self, state: MatrixState) -> str:
        """The round, and what each player did and got in it."""
        head = f"round {int(state.time)}/{self.config.rounds}"
        if int(state.time) == 0:
            return head
        pay = np.asarray(self.pay(jnp.asarray(state.place), jnp.asarray(state.last)))
        lines = [
            f"{seat}: {self.action_names[int(action)]:12} {got:+g}"
            for seat, (action, got) in enumerate(zip(state.last, pay, strict=True))
        ]
        return "\n".join([head, *lines])

    # --- scripted players ----------------------------------------------------------------------

    @property
    def scripted(self) -> Mapping[str, ScriptedPolicy]:
        return players_of(self.action_names)

    @property
    def blocks(self) -> Mapping[str, ScriptedPolicy]:
        left_out = ("mixture-", "suspicious", "generous")
        return {name: one for name, one in self.scripted.items() if not name.startswith(left_out)}

    @property
    def event_names(self) -> tuple[str, ...]:
        return tuple(f"took {name}" for name in self.action_names)

    def events(self, state: MatrixState, following: MatrixState) -> Float[Array, "seat event"]:
        took = following.last[:, None] == jnp.arange(self.actions)
        return took * self.alive(state)[:, None].astype(jnp.float32)


# --- making games --------------------------------------------------------------------------------


def matrix_parts(rest: str) -> tuple[type, Callable[..., MatrixGame]]:
    """Configuration and maker of `matrix:REST`; an empty REST takes any pay-off table."""
    if rest and rest != PUBLIC_GOODS and rest not in KINDS:
        raise unknown("matrix game", rest, [*KINDS, PUBLIC_GOODS])
    config = PublicGoodsConfig if rest == PUBLIC_GOODS else MatrixConfig
    return config, functools.partial(make_matrix, rest)


def make_matrix(rest: str, config: MatrixConfig) -> MatrixGame:
    """A matrix game by the part of its name behind the colon."""
    names: tuple[str, ...] = ()
    numbers = config.payoff
    if isinstance(config, PublicGoodsConfig):
        names, numbers = ("contribute", "keep"), numbers or public_goods(config)
    elif rest:
        names, numbers = KINDS[rest].actions, numbers or KINDS[rest].payoff
        if config.players > 2 and not config.payoff:
            raise UserError(
                f"matrix:{rest} has a pay-off table for 2 players, not {config.players}: give "
                f"{2 * config.players} numbers by --game.payoff, or play matrix:{PUBLIC_GOODS}"
            )
    elif not numbers:
        raise UserError(
            "'matrix:' needs a pay-off table, such as --game.payoff 3 0 5 1; or name a game: "
            + ", ".join(f"matrix:{name}" for name in (*KINDS, PUBLIC_GOODS))
        )
    tables = shaped(numbers, config.players)
    actions = len(tables[0])
    if len(names) != actions:
        names = tuple(str(action) for action in range(actions))
    return MatrixGame(config=config, name=f"matrix:{rest}", action_names=names, payoff=tables)


def public_goods(config: PublicGoodsConfig) -> tuple[float, ...]:
    """The table of a public goods game: who contributes gives 1; all contributions are multiplied
    and shared by everybody alike."""
    seats, share = config.players, config.multiplier / config.players
    giving = [share * (seats - others) - 1 for others in range(seats)]
    keeping = [share * (seats - 1 - others) for others in range(seats)]
    return (*giving, *keeping)


def shaped(numbers: tuple[float, ...], players: int) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """A list of pay-offs as [table][own action][others], or an error that says what fits."""
    count = len(numbers)
    if players > 2:
        if count != 2 * players:
            raise UserError(
                f"game.payoff has {count} numbers; {players} players need two rows of {players}: "
                "the own action, and how many others take the second one"
            )
        tables = np.reshape(numbers, (1, 2, players))
    else:
        single, double = round(count**0.5), round((count / 2) ** 0.5)
        if single >= 2 and single**2 == count:
            tables = np.reshape(numbers, (1, single, single))
        elif double >= 2 and 2 * double**2 == count:
            tables = np.reshape(numbers, (2, double, double))
        else:
            raise UserError(
                f"game.payoff has {count} numbers; two players with a actions need a x a, or twice "
                "that: first the table of seat 0, then that of seat 1, rows for the own action"
            )
    return tuple(tuple(tuple(map(float, row)) for row in table) for table in tables)


# --- pictures ------------------------------------------------------------------------------------


def draw_round(game: MatrixGame, state: MatrixState, cell: int) -> np.ndarray:
    """The pay-off table of seat 0 with what happened last in colour, and what each player did.

    The size depends on the game alone, so that the pictures of an episode make a film.
    """
    place = np.argsort(np.asarray(state.place))  # [place] who has it
    last = np.asarray(state.last)
    ego, played = int(place[0]), int(state.time) > 0
    tables = np.asarray(game.payoff)
    own, columns = tables.shape[1:]
    heads = game.action_names if game.seats == 2 else [f"{k} others" for k in range(columns)]
    wide, label, margin = 1.6 * cell, 2.0 * cell, cell / 6
    rows = own + 1
    height = (rows + 0.6 * game.seats + 0.7) * cell + 2 * margin
    pen = Pen(height, label + columns * wide + 2 * margin)
    size = 0.24 * cell
    for column, head in enumerate(heads):
        pen.text(margin + label + (column + 0.5) * wide, margin + cell / 2, head, size, anchor="mm")
    for row in range(own):
        y = margin + (row + 1) * cell
        pen.text(margin, y + cell / 2, game.action_names[row], size)
        for column in range(columns):
            x = margin + label + column * wide
            others = int(last.sum() - last[ego])
            here = played and (int(last[ego]), others) == (row, column)
            paper = blend(seat_colour(ego), FLOOR, 0.6) if here else FLOOR
            pen.rectangle(x, y, wide, cell, GRID)
            pen.rectangle(x + 1, y + 1, wide - 2, cell - 2, paper)
            words = f"{tables[0, row, column]:g}"
            if game.seats == 2:
                words += f", {tables[-1, column, row]:g}"
            pen.text(x + wide / 2, y + cell / 2, words, size, INK, anchor="mm", bold=here)
    top = margin + (rows + 0.4) * cell
    for seat in range(game.seats):
        y = top + 0.6 * cell * seat
        pen.disc(margin + 0.25 * cell, y, 0.23 * cell, seat)
        words = game.action_names[int(last[seat])] if played else "-"
        pen.text(margin + 0.65 * cell, y, words, size)
    foot = f"round {int(state.time)}/{game.config.rounds}"
    pen.text(margin, top + 0.6 * cell * game.seats, foot, size, FAINT_INK)
    return pen.picture()
