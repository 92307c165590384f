"""Episodes step by step: what everyone sees, does, gets, believes and predicts."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from coplay.core.compilation import QUICK
from coplay.core.errors import UserError
from coplay.core.game import Game, State
from coplay.core.group import Group, explain_all, notice_all
from coplay.core.player import Insight, View
from coplay.core.trajectory import seat_keys, seat_uniforms
from coplay.games.adapters.worker_game import WorkerGame
from coplay.matches.rollout import Table, new_table, seat_views
from coplay.nn import categorical


class Step(NamedTuple):
    """One step of one game. Everything but the states is NumPy.

    episode, time: both from 0. state, after: of the game, before and after the step.
    views: [seat] what each seat sees, without an axis of copies.
    probabilities: [seat, action] by which the actions were drawn. actions, rewards: [seat].
    alive: [seat] who was in the game before the step.
    insights: [seat] what each player thought, see `Insight`; None for players that tell nothing.
    realised: [seat] the goal that each seat realised in the step, -1: none; None where the game
        declares no goals. events: [seat, event] what happened (`Game.events`), None likewise.
    over: the episode ended in this step.
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
    begin = jax.jit(new_table, static_argnames="copies", compiler_options=QUICK)
    step = jax.jit(_step, compiler_options=QUICK)
    table: Table | None = None
    for episode in range(episodes):
        key, reset_key = jax.random.split(jax.random.key(seed + episode))
        fresh = begin(game, groups, reset_key, copies=1)
        if table is not None:
            fresh = fresh._replace(
                memory=table.memory,
                episode=table.episode + 1,
                last_action=table.last_action,
                last_reward=table.last_reward,
            )
        table, over = fresh, False
        while not over:
            key, step_key = jax.random.split(key)
            table, shown = step(game, groups, step_key, table)
            found = _shown_step(game, groups, shown)
            over = found.over
            yield found


def _step(
    game: Game, groups: tuple[Group, ...], key: PRNGKeyArray, table: Table
) -> tuple[Table, dict[str, Any]]:
    """One step of the only copy, without a reset; and what a `Step` is made of."""
    streams, before, goals = jnp.arange(game.seats), table.state, game.goals
    step_key, act_key, choice_key = jax.random.split(key, 3)
    uniform = seat_uniforms(choice_key, streams, 1)
    keys = seat_keys(act_key, streams)
    views = seat_views(game, table.state, jax.vmap(game.observe)(table.state), table)
    logits, memory, insights = explain_all(game, groups, keys, views, table.memory)
    log_policy = categorical.log_policy(logits, views.observation.legal)
    action = categorical.sample(uniform, log_policy).T
    alive = jax.vmap(game.alive)(table.state)
    state, outcome = jax.vmap(game.step)(jax.random.split(step_key, 1), table.state, action)
    over = outcome.truncated | ~jnp.any(jax.vmap(game.alive)(state), axis=1)
    memory = notice_all(game, groups, views, state, over, memory)
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
        "views": views,
        "probabilities": jnp.swapaxes(jnp.exp(log_policy), 0, 1),
        "actions": action,
        "rewards": outcome.reward,
        "alive": alive,
        "insights": insights,
        "realised": None if goals is None else jax.vmap(goals.realised)(before, state)[0],
        "events": jax.vmap(game.events)(before, state)[0] if game.event_names else None,
        "over": over,
        # Taken out of the axis of copies here: outside every array would be a call of its own.
        "states": jax.tree.map(lambda x: x[0], (before, state)),
    }


def _shown_step(game: Game, groups: tuple[Group, ...], shown: dict[str, Any]) -> Step:
    """What `_step` gave, without the axis of copies and seat by seat."""
    state, following = shown.pop("states")
    shown = jax.device_get(shown)
    insights: list[Insight | None] = [None] * game.seats
    for group, found in zip(groups, shown["insights"], strict=True):
        for row, seat in enumerate(group.seats):
            insights[seat] = _of(found, row)
    views = [_of(shown["views"], seat) for seat in range(game.seats)]
    parts = ("probabilities", "actions", "rewards", "alive")
    return Step(
        episode=int(shown["views"].episode[0, 0]),
        time=int(shown["views"].time[0, 0]),
        state=state,
        views=views,
        insights=insights,
        over=bool(shown["over"][0]),
        after=following,
        realised=shown["realised"],
        events=shown["events"],
        **{name: np.asarray(shown[name][0]) for name in parts},
    )


def _of(tree: Any, row: int) -> Any:
    """The row [row, copy 0] of all arrays."""
    return jax.tree.map(lambda x: np.asarray(x[row, 0]), tree)
