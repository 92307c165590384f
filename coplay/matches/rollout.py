"""Rollouts: many copies of a game played at once, episodes following each other without a pause.

The step loop carries compact game states only. Fresh states for automatic resets and all random
numbers are drawn before the loop, and ego views are made from the carried state at the top of it:
XLA would otherwise fuse resets, rules and views into one program part and compute them many times.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from coplay.core.game import Game, Observation, Outcome, State
from coplay.core.group import Group, all_insights, decide, notice_all
from coplay.core.numerics import where_rows
from coplay.core.player import Memory, View
from coplay.core.trajectory import Past, Trajectory, seat_keys, seat_uniforms
from coplay.nn import categorical


class Table(NamedTuple):
    """Where the game copies stand between two rollouts.

    state: game states [copy, ...].
    memory: one per group of players, leading axes [seat of the group, copy].
    time: [copy] steps played in the current episode.
    episode: [copy] episodes finished.
    gained: [copy, seat] reward so far in the episode.
    stayed: [copy, seat] steps in the game so far in the episode.
    last_action, last_reward: [copy, seat] as in `View`.
    """

    state: State
    memory: tuple[Memory, ...]
    time: Int[Array, " copy"]
    episode: Int[Array, " copy"]
    gained: Float[Array, "copy seat"]
    stayed: Int[Array, "copy seat"]
    last_action: Int[Array, "copy seat"]
    last_reward: Float[Array, "copy seat"]


def seat_views(game: Game, state: State, observation: Observation, table: Table) -> View:
    """The views of all seats, [seat, copy, ...]."""
    seats = jnp.arange(game.seats)
    alive = jax.vmap(game.alive)(state)
    ego = jax.vmap(jax.vmap(game.ego_state, in_axes=(0, None)), in_axes=(None, 0))(state, seats)
    copies = table.time.shape[0]
    return View(
        observation=jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), observation),
        alive=alive.T,
        state=ego,
        time=jnp.broadcast_to(table.time, (game.seats, copies)),
        episode=jnp.broadcast_to(table.episode, (game.seats, copies)),
        last_action=table.last_action.T,
        last_reward=table.last_reward.T,
    )


def fresh_states(
    game: Game,
    keys: Key[Array, " copy"],
    order: Int[Array, " seat"] | Int[Array, "copy seat"] | None,
) -> State:
    """Fresh states, [copy, ...]; with an order, renumbered so that new seat i is old `order[i]`, or
    `order[copy, i]` where copies differ."""
    state = jax.vmap(game.reset)(keys)
    if order is None:
        return state
    return jax.vmap(game.permute_seats, (0, 0 if order.ndim == 2 else None))(state, order)


def new_table(
    game: Game,
    groups: tuple[Group, ...],
    key: PRNGKeyArray,
    copies: int,
    order: Int[Array, " seat"] | Int[Array, "copy seat"] | None = None,
) -> Table:
    """Fresh games for `copies` copies and players with an empty memory; `order` as in `rollout`."""
    return Table(
        state=fresh_states(game, jax.random.split(key, copies), order),
        memory=tuple(group.start(copies) for group in groups),
        time=jnp.zeros(copies, jnp.int32),
        episode=jnp.zeros(copies, jnp.int32),
        gained=jnp.zeros((copies, game.seats), jnp.float32),
        stayed=jnp.zeros((copies, game.seats), jnp.int32),
        **nothing_done(copies, game.seats),
    )


def nothing_done(copies: int, seats: int) -> dict[str, Array]:
    """`last_action` and `last_reward` of a table where nobody did anything yet."""
    return {
        "last_action": jnp.full((copies, seats), -1, jnp.int32),
        "last_reward": jnp.zeros((copies, seats), jnp.float32),
    }


def act_all(
    game: Game,
    groups: tuple[Group, ...],
    keys: Key[Array, " seat"],
    uniform: Float[Array, "seat copy"],
    table: Table,
) -> tuple[
    Observation,
    Int[Array, "copy seat"],
    Float[Array, "copy seat action"],
    View,
    tuple[Memory, ...],
]:
    """What all seats see and do: ego views, actions, log-probabilities, the seats' views, new
    memories."""
    observation = jax.vmap(game.observe)(table.state)
    views = seat_views(game, table.state, observation, table)
    logits, memory = decide(game, groups, keys, views, table.memory)
    log_policy = categorical.log_policy(logits, views.observation.legal)
    action = categorical.sample(uniform, log_policy)
    return observation, action.T, jnp.swapaxes(log_policy, 0, 1), views, memory


class RolloutInputs(NamedTuple):
    """What is drawn before the step loop, [time, ...]: fresh states for resets, [time, copy, ...],
    and the randomness of sampling, of the players and of the game."""

    fresh: State
    uniform: Float[Array, "time seat copy"]
    act_keys: Key[Array, "time seat"]
    step_keys: Key[Array, "time copy"]


class PlayedStep(NamedTuple):
    """What the step loop gives, [time, copy, ...]; the fields are those of `Trajectory`.

    alive: before the step. before, after: game states before the step and after it, without resets.
    """

    observation: Observation
    alive: Bool[Array, "*time copy seat"]
    action: Int[Array, "*time copy seat"]
    log_policy: Float[Array, "*time copy seat action"]
    outcome: Outcome
    over: Bool[Array, "*time copy"]
    episode: Int[Array, "*time copy"]
    before: State
    after: State
    episode_reward: Float[Array, "*time copy seat"]
    episode_steps: Int[Array, "*time copy seat"]
    past: Past
    recorded: tuple[Any, ...]
    insight: Any
    meeting_over: Bool[Array, "*time copy seat"] | None


def draw_inputs(
    game: Game,
    table: Table,
    key: PRNGKeyArray,
    steps: int,
    streams: Int[Array, " seat"],
    order: Int[Array, " seat"] | Int[Array, "copy seat"] | None,
) -> RolloutInputs:
    """The inputs of `steps` steps; arguments as in `rollout`."""
    copies, seats = table.gained.shape
    step_key, reset_key, act_key, choice_key = jax.random.split(key, 4)
    if order is not None and order.ndim == 2:
        order = jnp.tile(order, (steps, 1))
    fresh = fresh_states(game, jax.random.split(reset_key, steps * copies), order)
    fresh = jax.tree.map(lambda x: x.reshape(steps, copies, *x.shape[1:]), fresh)
    uniform = seat_uniforms(choice_key, streams, steps * copies).reshape(seats, steps, copies)
    act_keys = jax.vmap(lambda k: seat_keys(k, streams))(jax.random.split(act_key, steps))
    step_keys = jax.random.split(step_key, steps * copies).reshape(steps, copies)
    return RolloutInputs(fresh, jnp.moveaxis(uniform, 0, 1), act_keys, step_keys)


def rollout_step(
    game: Game,
    groups: tuple[Group, ...],
    insights: bool,
    meeting: int,
    table: Table,
    inputs: RolloutInputs,
) -> tuple[Table, PlayedStep]:
    """One step in every copy; finished episodes are followed by fresh ones. inputs: of one step.
    insights, meeting: as in `rollout`."""
    observation, action, log_policy, views, memory = act_all(
        game, groups, inputs.act_keys, inputs.uniform, table
    )
    insight = all_insights(game, groups, views, memory) if insights else None
    recorded = tuple(group.record(mine) for group, mine in zip(groups, memory, strict=True))
    alive = jax.vmap(game.alive)(table.state)
    stepped, outcome = jax.vmap(game.step)(inputs.step_keys, table.state, action)
    over = outcome.truncated | ~jnp.any(jax.vmap(game.alive)(stepped), axis=1)
    memory = notice_all(game, groups, views, stepped, over, memory)
    gained = table.gained + outcome.reward
    stayed = table.stayed + alive
    done = (
        jnp.where(alive, action, table.last_action),
        jnp.where(alive, outcome.reward, table.last_reward),
    )
    ends = over & ((table.episode + 1) % meeting == 0) if meeting else None
    if ends is not None:
        memory, done = parted(groups, ends, memory, done)
    following = Table(
        state=where_rows(over, inputs.fresh, stepped),
        memory=memory,
        time=jnp.where(over, 0, table.time + 1),
        episode=table.episode + over,
        gained=where_rows(over, jnp.zeros_like(gained), gained),
        stayed=where_rows(over, jnp.zeros_like(stayed), stayed),
        last_action=done[0],
        last_reward=done[1],
    )
    first = jnp.broadcast_to(table.time[:, None] == 0, alive.shape)
    return following, PlayedStep(
        observation=observation,
        alive=alive,
        action=action,
        log_policy=log_policy,
        outcome=outcome,
        over=over,
        episode=table.episode,
        before=table.state,
        after=stepped,
        episode_reward=gained,
        episode_steps=stayed,
        past=Past(first, table.last_action, table.last_reward),
        recorded=recorded,
        insight=insight,
        meeting_over=None if ends is None else jnp.broadcast_to(ends[:, None], alive.shape),
    )


def rollout(
    game: Game,
    groups: tuple[Group, ...],
    table: Table,
    key: PRNGKeyArray,
    steps: int,
    streams: Int[Array, " seat"],
    order: Int[Array, " seat"] | Int[Array, "copy seat"] | None = None,
    insights: bool = False,
    meeting: int = 0,
) -> tuple[Table, Trajectory]:
    """Play `steps` steps in every copy, from where the table stands.

    order: renumbers the seats of every fresh state, as in `fresh_states`: an audit plays the same
        games with everyone in another seat, an adaptation puts a player into every seat.
    insights: also keep what players expected of each other.
    meeting: episodes after which everybody in a copy forgets all, because partners are drawn anew;
        0: never.
    """
    remembered = table.memory
    inputs = draw_inputs(game, table, key, steps, streams, order)
    step = partial(rollout_step, game, groups, insights, meeting)
    table, played = jax.lax.scan(step, table, inputs)
    still = jax.vmap(jax.vmap(game.alive))(played.after)
    trajectory = Trajectory(
        observation=played.observation,
        alive=played.alive,
        action=played.action,
        log_policy=played.log_policy,
        reward=played.outcome.reward,
        terminated=played.outcome.terminated,
        truncated=played.outcome.truncated[..., None] & still,
        over=played.over,
        final=jax.vmap(jax.vmap(game.observe))(played.after),
        last=jax.vmap(game.observe)(table.state),
        episode_reward=played.episode_reward,
        episode_steps=played.episode_steps,
        state=played.before,
        after=played.after,
        episode=played.episode,
        past=played.past,
        memory={group.seats: mine for group, mine in zip(groups, remembered, strict=True)},
        recorded={group.seats: mine for group, mine in zip(groups, played.recorded, strict=True)},
        insight=played.insight,
        meeting_over=played.meeting_over,
        stream=jnp.broadcast_to(streams, played.alive.shape),
    )
    return table, trajectory


def parted(
    groups: tuple[Group, ...],
    ends: Bool[Array, " copy"],
    memory: tuple[Memory, ...],
    done: tuple[Int[Array, "copy seat"], Float[Array, "copy seat"]],
) -> tuple[tuple[Memory, ...], tuple[Int[Array, "copy seat"], Float[Array, "copy seat"]]]:
    """Memories, and `last_action` and `last_reward`, as they are before a first step in the copies
    whose meeting ends, as they were in the others."""
    copies, seats = done[0].shape

    def forget(empty: Array, old: Array) -> Array:
        return jnp.where(ends.reshape(1, -1, *(1,) * (old.ndim - 2)), empty, old)

    kept = tuple(
        jax.tree.map(forget, group.start(copies), mine)
        for group, mine in zip(groups, memory, strict=True)
    )
    nothing = nothing_done(copies, seats)
    action = where_rows(ends, nothing["last_action"], done[0])
    return kept, (action, where_rows(ends, nothing["last_reward"], done[1]))
