"""Episodes step by step: what everyone sees, does, gets, believes and predicts."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.core.errors import UserError
from coplay.core.game import Game, State
from coplay.core.group import Group, explain_all, notice_all
from coplay.core.player import Insight, Memory, View
from coplay.core.trajectory import seat_keys, seat_uniforms
from coplay.games.adapters.worker_game import WorkerGame
from coplay.matches.foresight import Foresight, foresee_all
from coplay.matches.lone_copy import Kept, play_blocks
from coplay.matches.rollout import Table, new_table, seat_views
from coplay.nn import categorical

T = TypeVar("T")

PARTS = ("probabilities", "actions", "rewards", "alive")
"""What a step says of each seat, as numbers."""


class Step(NamedTuple):
    """One step of one game. Everything but the states is NumPy.

    episode, time: both from 0. state, after: of the game, before and after the step.
    views: [seat] what each seat sees, without an axis of copies.
    probabilities: [seat, action] by which the actions were drawn. actions, rewards: [seat].
    alive: [seat] who was in the game before the step.
    insights: [seat] what each player thought, see `Insight`; None for players that tell nothing.
    realised: [seat] the goal that each seat realised in the step, -1: none; None where the game
        declares no goals. events: [seat, event] what happened (`Game.events`), None likewise.
    over: the episode ended in this step. foresights: [seat] what each player's model of the world
        said of the step; None for players that have none.
    """

    episode: int
    time: int
    state: State
    views: list[View]
    probabilities: Float[np.ndarray, "seat action"]
    actions: Int[np.ndarray, " seat"]
    rewards: Float[np.ndarray, " seat"]
    alive: Bool[np.ndarray, " seat"]
    insights: list[Insight | None]
    over: bool
    after: State
    realised: Int[np.ndarray, " seat"] | None = None
    events: Float[np.ndarray, "seat event"] | None = None
    foresights: Sequence[Foresight | None] = ()


def play_steps(
    game: Game, groups: tuple[Group, ...], episodes: int = 1, seed: int = 0
) -> Iterator[Step]:
    """Play whole episodes in one game copy and give every step; players remember what happened in
    the episodes before.

    The first episode is the one that `record_episode` plays with the same seed.
    """
    if isinstance(game, WorkerGame):
        raise UserError(
            f"{game.name} runs in worker processes, so its episodes cannot be shown step by step"
        )
    if episodes < 1:
        raise UserError(f"episodes must be at least 1, not {episodes}")
    table: Table | None = None
    for episode in range(episodes):
        for block in play_blocks(_step, game, groups, seed + episode, table):
            yield from shown_steps(game, groups, block.kept, block.states)
            table = block.table


class Thought(NamedTuple):
    """What all seats see, think and want to do in a step, of the only game copy.

    views: [seat, copy, ...]. log_policy: log-probabilities of the actions. action: drawn by them.
    memory, insights: one per group of players, as they decided.
    """

    views: View
    log_policy: Float[Array, "seat copy action"]
    action: Int[Array, "copy seat"]
    memory: tuple[Memory, ...]
    insights: tuple[Insight | None, ...]


def think(
    game: Game,
    groups: tuple[Group, ...],
    act_key: PRNGKeyArray,
    choice_key: PRNGKeyArray,
    table: Table,
) -> Thought:
    """What all seats think and draw, before anybody acts."""
    streams = jnp.arange(game.seats)
    uniform = seat_uniforms(choice_key, streams, 1)
    keys = seat_keys(act_key, streams)
    views = seat_views(game, table.state, jax.vmap(game.observe)(table.state), table)
    logits, memory, insights = explain_all(game, groups, keys, views, table.memory)
    log_policy = categorical.log_policy(logits, views.observation.legal)
    action = categorical.sample(uniform, log_policy).T
    return Thought(views, log_policy, action, memory, insights)


def anyone_predicts(game: Game, groups: tuple[Group, ...]) -> bool:
    """Whether some player tells what it expects of others. Nothing is computed or compiled."""

    def first(key: PRNGKeyArray) -> Thought:
        return think(game, groups, key, key, new_table(game, groups, key, copies=1))

    insights = jax.eval_shape(first, jax.random.key(0)).insights
    return any(insight is not None and insight.action is not None for insight in insights)


def move(
    game: Game,
    groups: tuple[Group, ...],
    key: PRNGKeyArray,
    table: Table,
    thought: Thought,
    action: Int[Array, "copy seat"],
) -> tuple[Table, dict[str, Any]]:
    """One step of the only copy, without a reset; and what a `Step` is made of."""
    before, goals = table.state, game.goals
    alive = jax.vmap(game.alive)(table.state)
    state, outcome = jax.vmap(game.step)(jax.random.split(key, 1), table.state, action)
    over = outcome.truncated | ~jnp.any(jax.vmap(game.alive)(state), axis=1)
    memory = notice_all(game, groups, thought.views, state, over, thought.memory)
    table = table._replace(
        state=state,
        memory=memory,
        time=table.time + 1,
        gained=table.gained + outcome.reward,
        stayed=table.stayed + alive,
        last_action=jnp.where(alive, action, table.last_action),
        last_reward=jnp.where(alive, outcome.reward, table.last_reward),
    )
    return table, {
        "views": thought.views,
        "probabilities": jnp.swapaxes(jnp.exp(thought.log_policy), 0, 1),
        "actions": action,
        "rewards": outcome.reward,
        "alive": alive,
        "insights": thought.insights,
        "foresights": foresee_all(game, groups, thought.views, state, action),
        "realised": None if goals is None else jax.vmap(goals.realised)(before, state)[0],
        "events": jax.vmap(game.events)(before, state)[0] if game.event_names else None,
        "over": over,
        "state": jax.tree.map(lambda x: x[0], before),
    }


def _step(
    game: Game, groups: tuple[Group, ...], key: PRNGKeyArray, table: Table
) -> tuple[Table, dict[str, Any]]:
    """Think and move."""
    step_key, act_key, choice_key = jax.random.split(key, 3)
    thought = think(game, groups, act_key, choice_key, table)
    return move(game, groups, step_key, table, thought, thought.action)


def shown_steps(
    game: Game, groups: tuple[Group, ...], kept: Kept, states: Sequence[State]
) -> Iterator[Step]:
    """What `move` gave, without the axis of copies, step by step and seat by seat.

    kept: NumPy arrays [time, ...]. states: before each step, and after the last one.
    """
    views = _Rows(kept["views"])
    insights, foresights = (tuple(map(_Rows, kept[name])) for name in ("insights", "foresights"))
    for time in range(len(states) - 1):
        parts: dict[str, Any] = {name: kept[name][time, 0] for name in PARTS}
        for name in ("realised", "events"):
            parts[name] = None if kept[name] is None else kept[name][time]
        yield Step(
            episode=int(kept["views"].episode[time, 0, 0]),
            time=int(kept["views"].time[time, 0, 0]),
            state=states[time],
            views=[views.of(time, seat) for seat in range(game.seats)],
            insights=_by_seat(game, groups, insights, time),
            foresights=_by_seat(game, groups, foresights, time),
            over=bool(kept["over"][time, 0]),
            after=states[time + 1],
            **parts,
        )


class _Rows:
    """A tree of arrays [time, seat, copy, ...], flattened once, to be read row by row."""

    def __init__(self, tree: Any):
        arrays, structure = jax.tree.flatten(tree)
        self._arrays: list[np.ndarray] = arrays
        self._structure: Any = structure

    def of(self, time: int, row: int) -> Any:
        """The row [time, row, copy 0] of all arrays."""
        return self._structure.unflatten([x[time, row, 0, ...] for x in self._arrays])


def _by_seat(
    game: Game, groups: tuple[Group, ...], thoughts: tuple[_Rows, ...], time: int
) -> list[Any]:
    found: list[Any] = [None] * game.seats
    for group, rows in zip(groups, thoughts, strict=True):
        for row, seat in enumerate(group.seats):
            found[seat] = rows.of(time, row)
    return found


def by_seat(
    game: Game, groups: tuple[Group, ...], thoughts: tuple[T | None, ...]
) -> list[T | None]:
    """[seat] what each player thought, without the axis of copies; from what the groups gave in one
    step."""
    rows = tuple(_Rows(jax.tree.map(lambda x: np.asarray(x)[None], one)) for one in thoughts)
    return _by_seat(game, groups, rows, 0)
