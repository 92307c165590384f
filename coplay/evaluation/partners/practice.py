"""Short trainings by PPO that differ in their data only: one compiled program serves all of them.

Training goes on block by block, and its state can be kept between two blocks. The randomness of an
iteration hangs on its number, so it does not matter where a training was cut.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from coplay.algorithms.ppo.config import PPOConfig
from coplay.algorithms.ppo.learner import PPO, PPOState
from coplay.core.compilation import use_cache
from coplay.core.game import Game
from coplay.core.group import Group
from coplay.core.trajectory import Trajectory
from coplay.matches.rollout import Table, new_table, rollout
from coplay.nn.config import NetworkConfig
from coplay.nn.networks import view_shape
from coplay.training import checkpoints

ROLLOUT = 32
"""Steps every copy plays between two updates."""
BLOCK = 8
"""Updates compiled into one program, which is called again and again."""

Given = Any  # a pytree of arrays: what one training is about


class PracticeState(NamedTuple):
    """What changes in a training."""

    learner: PPOState
    table: Table


def own_reward(game: Game, given: Given, trajectory: Trajectory) -> Float[Array, "time copy seat"]:
    """What the game gives."""
    return trajectory.reward


def nobody(game: Game, given: Given) -> tuple[Group, ...]:
    """No seats beside the learner's."""
    return ()


@dataclass(frozen=True)
class Practice:
    """A kind of training.

    learner: PPO in its seats. others: (game, given) -> groups of the seats that do not learn.
    reward: (game, given, trajectory) -> what is learned for. copies: games played at once.
    """

    learner: PPO
    copies: int
    others: Callable[[Game, Given], tuple[Group, ...]] = nobody
    reward: Callable[[Game, Given, Trajectory], Float[Array, "time copy seat"]] = own_reward

    @property
    def block_steps(self) -> int:
        """Game steps of a block."""
        return BLOCK * ROLLOUT * self.copies

    def begin(self, game: Game, given: Given, key: PRNGKeyArray) -> PracticeState:
        """Before the first iteration."""
        return self._begin(game, given, key)

    def go_on(
        self, game: Game, given: Given, state: PracticeState, key: PRNGKeyArray, block: int, of: int
    ) -> tuple[PracticeState, np.ndarray]:
        """One more block, number `block` of so many: the state, and [iteration] the return per
        episode of the learning seats in what they learn for."""
        state, curve = self._block(game, given, state, key, block * BLOCK, of * BLOCK)
        return state, np.asarray(curve)

    @cached_property
    def _begin(self) -> Callable[..., PracticeState]:
        use_cache()

        def begin(game: Game, given: Given, key: PRNGKeyArray) -> PracticeState:
            learner_key, table_key = jax.random.split(key)
            state = self.learner.init(learner_key, jnp.arange(game.seats))
            groups = self._groups(game, given, state)
            return PracticeState(state, new_table(game, groups, table_key, self.copies))

        return jax.jit(begin)

    @cached_property
    def _block(self) -> Callable[..., tuple[PracticeState, Array]]:
        use_cache()

        def block(
            game: Game,
            given: Given,
            state: PracticeState,
            key: PRNGKeyArray,
            first: Int[Array, ""],
            total: Int[Array, ""],
        ) -> tuple[PracticeState, Float[Array, " iteration"]]:
            def iterate(
                state: PracticeState, number: Int[Array, ""]
            ) -> tuple[PracticeState, Float[Array, ""]]:
                roll_key, learn_key = jax.random.split(jax.random.fold_in(key, number))
                groups = self._groups(game, given, state.learner)
                streams = jnp.arange(game.seats)
                table, played = rollout(game, groups, state.table, roll_key, ROLLOUT, streams)
                played = played._replace(reward=self.reward(game, given, played))
                part = self.learner.training_data(game, played)
                progress = (number / total).astype(jnp.float32)
                learned, _ = self.learner.update(learn_key, state.learner, part, progress)
                episodes = jnp.maximum(jnp.sum(played.over), 1) * len(self.learner.active)
                return PracticeState(learned, table), jnp.sum(part.reward) / episodes

            return jax.lax.scan(iterate, state, first + jnp.arange(BLOCK))

        return jax.jit(block)

    def _groups(self, game: Game, given: Given, state: PPOState) -> tuple[Group, ...]:
        return (self.learner.group(state), *self.others(game, given))


def ppo(game: Game, seats: tuple[int, ...], network: NetworkConfig, copies: int) -> PPO:
    """PPO with one set of parameters for these seats."""
    parts = next(count for count in (8, 4, 2, 1) if copies % count == 0)
    return PPO(
        config=PPOConfig(parameters="shared", network=network, minibatches=parts),
        shape=view_shape(game),
        game_seats=game.seats,
        seats=seats,
        active=seats,
    )


def actor_of(state: PPOState) -> Any:
    """The actor network of the only parameter set."""
    return jax.tree.map(lambda x: x[0], state.actor)


class Trained(NamedTuple):
    """What a training left. curve: [block] the return per episode in what was learned for."""

    actor: Any
    critic: Any
    curve: Any


def train_kept(
    practice: Practice, game: Game, given: Given, key: PRNGKeyArray, blocks: int, path: Path
) -> Trained:
    """A training of so many blocks, or what is kept of it at `path`."""

    def networks(state: PPOState) -> Any:
        return jax.tree.map(lambda x: x[0], (state.actor, state.critic))

    like = jax.eval_shape(lambda: networks(practice.begin(game, given, key).learner))
    if path.is_file():
        try:
            kept = Trained(like[0], like[1], jax.ShapeDtypeStruct((blocks,), jnp.float32))
            return checkpoints.load(path, kept)[0]
        except checkpoints.DamagedCheckpoint:
            pass  # A damaged file is made anew.
    state = practice.begin(game, given, key)
    curve = np.zeros(blocks, np.float32)
    for block in range(blocks):
        state, returns = practice.go_on(game, given, state, key, block, blocks)
        curve[block] = returns.mean()
    actor, critic = networks(state.learner)
    trained = Trained(actor, critic, curve)
    checkpoints.save(path, trained, {})
    return trained
