"""Imagined rollouts: the player acts by its actor, co-players by the opponent model, in a world
model or in the game itself.

Players remember what they imagine, so the goal codes that the policy sees are inferred ones.
Co-players act by the opponent model: by the codes that are inferred of them or, if they are
*strangers*, by a code of their own that the policy does not see: it has to find out whom it meets.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from coplay.core.game import Game, Observation, State
from coplay.core.numerics import where_rows
from coplay.models.acquaintance import next_episode
from coplay.models.correction import Correction, correction, with_action
from coplay.models.goal_codes import GoalModel
from coplay.nn import categorical

T = TypeVar("T")


class Start(NamedTuple):
    """Where games are or begin, [copy, ...]; the player who imagines is seat 0 of the states.

    memory: [copy, other, memory] of the co-players. stranger: [copy, other, code] the codes of the
    co-players' goals, where they are strangers. episodes: [copy, other, prototype] what is known of
    strangers from earlier games (`coplay.models.acquaintance`); None: nothing is kept. acted: what
    corrects the opponent model of each co-player; tilt: [copy, other, action] what strangers add to
    its logits; both None: nothing is corrected.
    """

    state: State
    memory: Float[Array, "copy other memory"]
    stranger: Float[Array, "copy other code"]
    episodes: Float[Array, "copy other prototype"] | None = None
    acted: Correction | None = None
    tilt: Float[Array, "copy other action"] | None = None


class ImaginedRollout(NamedTuple):
    """What was imagined, [time, copy, ...], like the part of one seat of a `Trajectory`.

    observation: the ego views with goal codes. final: stands for the view after a step at the
    horizon; it is the one before the step. last: after the last step, [copy, ...].
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


class Imaginer(NamedTuple):
    """How one player imagines games.

    game: what imagined games step. actor: logits from views as `add_codes(view, codes, who is in
    the game)` gives them. inferred: whether codes are inferred; else all are 0. familiar: in all
    copies but the first so many, co-players are strangers. lasting: the player meets the same
    strangers in the next game and keeps what it remembers of them. keep: of these, the weight of
    earlier games; None: its whole memory.
    """

    game: Game
    goals: GoalModel
    actor: Callable[[Observation], Float[Array, "copy action"]]
    add_codes: Callable[[Observation, Array, Array], Observation]
    inferred: bool
    familiar: int
    lasting: bool
    keep: float | None = None

    def rollout(self, starts: Start, key: PRNGKeyArray) -> ImaginedRollout:
        """Imagined games; a new one begins whenever one is over for the player. starts: [time + 1,
        copy, ...], where to begin at first and after each step."""
        steps, copies = starts.memory.shape[0] - 1, starts.memory.shape[1]
        seats = self.game.seats
        uniform_key, step_key = jax.random.split(key)
        uniform = jax.random.uniform(uniform_key, (steps * copies * seats,))
        uniform = uniform.reshape(steps, seats, copies)
        step_keys = jax.random.split(step_key, steps * copies).reshape(steps, copies)
        first: Start = jax.tree.map(lambda x: x[0], starts)
        fresh: Start = jax.tree.map(lambda x: x[1:], starts)

        def step(now: Start, drawn: tuple) -> tuple[Start, ImaginedRollout]:
            return self.step(now, *drawn)

        last, rows = jax.lax.scan(step, first, (uniform, step_keys, fresh))
        assert rows.log_policy.shape[-1] == self.game.actions
        return rows._replace(final=rows.observation, last=self.look(last)[0])

    def look(
        self, now: Start
    ) -> tuple[
        Observation,
        Observation,
        Float[Array, "copy other inputs"],
        Float[Array, "copy other code"],
    ]:
        """The own view with codes, the others' views, these as the goal model sees them, and their
        codes."""
        views = jax.vmap(self.game.observe)(now.state)
        theirs = jax.tree.map(lambda x: x[:, 1:], views)
        seen = self.goals.see(theirs)
        z = self.goals.infer(now.memory, seen).mean
        z = z if self.inferred else jnp.zeros_like(z)
        there = jax.vmap(self.game.alive)(now.state)[:, 1:]
        told = z if now.acted is None else jnp.concatenate([z, correction(now.acted)], axis=-1)
        mine = self.add_codes(jax.tree.map(lambda x: x[:, 0], views), told, there)
        return mine, theirs, seen, z

    def step(
        self,
        now: Start,
        uniform: Float[Array, "seat copy"],
        keys: Key[Array, " copy"],
        fresh: Start,
    ) -> tuple[Start, ImaginedRollout]:
        """One step of all copies: where they are then, and the step as a row [copy, ...]. uniform:
        to sample actions by. fresh: where copies begin that are over."""
        game = self.game
        mine, theirs, seen, z = self.look(now)
        log_policy = categorical.log_policy(self.actor(mine), mine.legal)
        own = categorical.sample(uniform[0], log_policy)
        codes = jnp.concatenate([z[: self.familiar], now.stranger[self.familiar :]])
        tilt = None
        if now.acted is not None and now.tilt is not None:
            familiar = correction(now.acted)[: self.familiar]
            tilt = jnp.concatenate([familiar, now.tilt[self.familiar :]])
        expected = self.goals.predict_actions(seen, codes, theirs.legal, tilt)
        rest = categorical.sample(uniform[1:].T, expected)
        joint = jnp.concatenate([own[:, None], rest], axis=1)
        alive = jax.vmap(game.alive)(now.state)
        after, outcome = jax.vmap(game.step)(keys, now.state, joint)
        still = jax.vmap(game.alive)(after)[:, 0]
        over = outcome.truncated | ~still
        memory = self.remembered(now, seen, after, alive)
        acted = now.acted
        if acted is not None:
            predicted = self.goals.predict_actions(seen, z, theirs.legal, correction(acted))
            acted = with_action(acted, rest, predicted, theirs.legal, alive[:, 1:])
        row = ImaginedRollout(
            observation=mine,
            alive=alive[:, 0],
            action=own,
            log_policy=log_policy,
            reward=outcome.reward[:, 0],
            terminated=outcome.terminated[:, 0],
            truncated=outcome.truncated & still,
            over=over,
            final=None,  # type: ignore[arg-type]
            last=None,  # type: ignore[arg-type]
        )
        led = now._replace(state=after, memory=memory, acted=acted)
        return self.following(led, fresh, over), row

    def remembered(
        self,
        now: Start,
        seen: Float[Array, "copy other inputs"],
        after: State,
        alive: Bool[Array, "copy seat"],
    ) -> Float[Array, "copy other memory"]:
        """The memory of the co-players after a step."""
        seats = self.game.seats
        order = jnp.arange(1, seats)[:, None] + jnp.arange(seats)
        done = jax.vmap(self.game.last_actions)(after).astype(jnp.int32)[:, order % seats]
        memory = self.goals.remember(now.memory, seen, done)
        return jnp.where(alive[:, 1:, None], memory, now.memory)

    def following(self, led: Start, fresh: Start, over: Bool[Array, " copy"]) -> Start:
        """Where copies go on: where a step led, or where they begin anew."""
        if self.lasting:
            memory, episodes = led.memory, led.episodes
            if self.keep is not None:
                assert episodes is not None
                memory, episodes = next_episode(self.goals.inference, memory, episodes, self.keep)
            fresh = fresh._replace(
                memory=_strangers_stay(self.familiar, fresh.memory, memory),
                stranger=led.stranger,
                episodes=episodes,
                acted=_strangers_stay(self.familiar, fresh.acted, led.acted),
                tilt=led.tilt,
            )
        return where_rows(over, fresh, led)


def _strangers_stay(familiar: int, fresh: T, led: T) -> T:
    """Arrays [copy, ...] as they are fresh in the first copies, as games led to among strangers."""
    return jax.tree.map(lambda x, y: jnp.concatenate([x[:familiar], y[familiar:]]), fresh, led)
