"""Imagined rollouts: the player acts by its actor, co-players by the opponent model, in a world
model or in the game itself.

What is imagined is remembered, so the goal codes that the policy is told are inferred ones, never
made up. Co-players act by the opponent model: by the codes that are inferred of them or, if they
are *strangers*, by a code of their own that the policy is not told: it has to find out whom it has
met.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.core.game import Game, Observation, State
from coplay.models.goal_codes import GoalModel
from coplay.nn import categorical


class Start(NamedTuple):
    """Where to begin, [copy, ...]; the player who imagines is seat 0 of the states.

    memory: [copy, other, unit] what is remembered of the co-players. stranger: [copy, other, code]
    what they are after, where they are strangers.
    """

    state: State
    memory: Float[Array, "copy other units"]
    stranger: Float[Array, "copy other code"]


class ImaginedRollout(NamedTuple):
    """What was imagined, [time, copy, ...], like the part of one seat of a `Trajectory`.

    observation: the ego views, told goal codes. final: what stands for the view after a step at the
    horizon: the one before it. last: after the last step, [copy, ...].
    """

    observation: Observation
    alive: Bool[Array, "time copy"]
    action: Int[Array, "time copy"]
    log_policy: Float[Array, "time copy action"]
    reward: Float[Array, "time copy"]
    terminated: Bool[Array, "time copy"]
    truncated: Bool[Array, "time copy"]
    over: Bool[Array, "time copy"]
    final: Observation
    last: Observation


def imagine(
    game: Game,
    goals: GoalModel,
    actor: Callable[[Observation], Float[Array, "copy action"]],
    add_codes: Callable[[Observation, Array, Array], Observation],
    inferred: bool,
    starts: Start,
    key: PRNGKeyArray,
    familiar: int,
    lasting: bool,
) -> ImaginedRollout:
    """Imagined games with new beginnings whenever one is over for the player.

    starts: [time + 1, copy, ...], where to begin at first and after each step. actor: logits from
    views as `add_codes(view, codes, who is in the game)` gives them. inferred: codes are; else all
    are
    0. familiar: in all copies but the first so many, co-players are strangers. lasting: the same
    strangers are met again in the next game, and what is remembered of them is kept.
    """
    steps, copies = starts.memory.shape[0] - 1, starts.memory.shape[1]
    others, actions = game.seats - 1, game.actions
    luck_key, step_key = jax.random.split(key)
    uniform = jax.random.uniform(luck_key, (steps * copies * (others + 1),))
    uniform = uniform.reshape(steps, others + 1, copies)
    step_keys = jax.random.split(step_key, steps * copies).reshape(steps, copies)
    first: Start = jax.tree.map(lambda x: x[0], starts)
    fresh: Start = jax.tree.map(lambda x: x[1:], starts)

    def look(now: Start) -> tuple[Observation, Observation, Array, Array]:
        """The own view with codes, the others' views, what is made of them, and their codes."""
        views = jax.vmap(game.observe)(now.state)
        theirs = jax.tree.map(lambda x: x[:, 1:], views)
        seen = goals.see(theirs)
        z = goals.infer(now.memory, seen).mean
        z = z if inferred else jnp.zeros_like(z)
        there = jax.vmap(game.alive)(now.state)[:, 1:]
        mine = add_codes(jax.tree.map(lambda x: x[:, 0], views), z, there)
        return mine, theirs, seen, z

    def expected(now: Start, theirs: Observation, seen: Array, z: Array) -> Array:
        """Log-probabilities of what the co-players do."""
        after = jnp.concatenate([z[:familiar], now.stranger[familiar:]])
        return goals.predict_actions(seen, after, theirs.legal)

    def step(now: Start, drawn: tuple) -> tuple[Start, tuple]:
        uniform, keys, fresh = drawn
        mine, theirs, seen, z = look(now)
        log_policy = categorical.log_policy(actor(mine), mine.legal)
        own = categorical.sample(uniform[0], log_policy)
        rest = categorical.sample(uniform[1:].T, expected(now, theirs, seen, z))
        joint = jnp.concatenate([own[:, None], rest], axis=1)
        alive = jax.vmap(game.alive)(now.state)
        after, outcome = jax.vmap(game.step)(keys, now.state, joint)
        still = jax.vmap(game.alive)(after)[:, 0]
        order = jnp.arange(1, others + 1)[:, None] + jnp.arange(others + 1)
        done = jax.vmap(game.last_actions)(after).astype(jnp.int32)[:, order % (others + 1)]
        memory = goals.remember(now.memory, seen, done)
        memory = jnp.where(alive[:, 1:, None], memory, now.memory)
        led = now._replace(state=after, memory=memory)
        over = outcome.truncated | ~still
        if lasting:
            fresh = fresh._replace(
                memory=jnp.concatenate([fresh.memory[:familiar], memory[familiar:]]),
                stranger=now.stranger,
            )
        following = jax.tree.map(
            lambda new, old: jnp.where(over.reshape(-1, *(1,) * (new.ndim - 1)), new, old),
            fresh,
            led,
        )
        row: Any = (
            mine,
            alive[:, 0],
            own,
            log_policy,
            outcome.reward[:, 0],
            outcome.terminated[:, 0],
            outcome.truncated & still,
            over,
        )
        return following, row

    last, rows = jax.lax.scan(step, first, (uniform, step_keys, fresh))
    mine, alive, own, log_policy, reward, terminated, truncated, over = rows
    assert log_policy.shape[-1] == actions
    return ImaginedRollout(
        observation=mine,
        alive=alive,
        action=own,
        log_policy=log_policy,
        reward=reward,
        terminated=terminated,
        truncated=truncated,
        over=over,
        final=mine,
        last=look(last)[0],
    )
