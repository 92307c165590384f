"""Imagined rollouts: the player acts by its actor, co-players by the opponent model, in a world
model.

They begin where real games really were, with what was remembered of the co-players there, and what
is imagined is remembered in turn: so the goal codes that the policy is told are inferred ones,
never made up.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.games.game import Observation
from coplay.minds import categorical
from coplay.minds.goal_codes import GoalModel
from coplay.minds.imagined_game import ImaginedGame, ImaginedState


class Start(NamedTuple):
    """Where to begin, [copy, ...]. memory: [copy, other, unit] of the co-players."""

    state: ImaginedState
    memory: Float[Array, "copy other units"]


class Imagined(NamedTuple):
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
    game: ImaginedGame,
    goals: GoalModel,
    actor: Callable[[Observation], Float[Array, "copy action"]],
    tell: Callable[[Observation, Array, Array], Observation],
    inferred: bool,
    starts: Start,
    key: PRNGKeyArray,
) -> Imagined:
    """Imagined games with new beginnings whenever one is over for the player.

    starts: [time + 1, copy, ...], where to begin at first and after each step. actor: logits from
    views as `tell(view, codes, who is in the game)` gives them. inferred: codes are; else 0.
    """
    steps, copies = starts.memory.shape[0] - 1, starts.memory.shape[1]
    others, actions = game.seats - 1, game.actions
    uniform = jax.random.uniform(key, (steps * copies * (others + 1),))
    uniform = uniform.reshape(steps, others + 1, copies)
    first: Start = jax.tree.map(lambda x: x[0], starts)
    fresh: Start = jax.tree.map(lambda x: x[1:], starts)

    def look(now: Start) -> tuple[Observation, Observation, Array, Array]:
        """The own view with codes, the others' views, what is made of them, and their codes."""
        views = jax.vmap(game.observe)(now.state)
        theirs = jax.tree.map(lambda x: x[:, 1:], views)
        seen = goals.see(theirs)
        z = goals.infer(now.memory, seen).mean
        z = z if inferred else jnp.zeros_like(z)
        mine = tell(jax.tree.map(lambda x: x[:, 0], views), z, now.state.alive[:, 1:])
        return mine, theirs, seen, z

    def step(now: Start, drawn: tuple) -> tuple[Start, tuple]:
        luck, fresh = drawn
        mine, theirs, seen, z = look(now)
        log_policy = categorical.log_policy(actor(mine), mine.legal)
        own = categorical.sample(luck[0], log_policy)
        foreseen = goals.foresee(seen, z, theirs.legal)
        rest = categorical.sample(luck[1:].T, foreseen)
        joint = jnp.concatenate([own[:, None], rest], axis=1)
        keys = jax.random.split(jax.random.key(0), copies)  # nothing is drawn in the model
        after, outcome = jax.vmap(game.step)(keys, now.state, joint)
        order = jnp.arange(1, others + 1)[:, None] + jnp.arange(others + 1)
        done = after.last.astype(jnp.int32)[:, order % (others + 1)]
        memory = goals.remember(now.memory, seen, done)
        memory = jnp.where(now.state.alive[:, 1:, None], memory, now.memory)
        led = Start(after, memory)
        over = outcome.truncated | ~after.alive[:, 0]
        following = jax.tree.map(
            lambda new, old: jnp.where(over.reshape(-1, *(1,) * (new.ndim - 1)), new, old),
            fresh,
            led,
        )
        row: Any = (
            mine,
            now.state.alive[:, 0],
            own,
            log_policy,
            outcome.reward[:, 0],
            outcome.terminated[:, 0],
            outcome.truncated & after.alive[:, 0],
            over,
        )
        return following, row

    last, rows = jax.lax.scan(step, first, (uniform, fresh))
    mine, alive, own, log_policy, reward, terminated, truncated, over = rows
    assert log_policy.shape[-1] == actions
    return Imagined(
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
