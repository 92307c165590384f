"""A player that is asked observation by observation, in a loop that is not ours."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from coplay.core.errors import UserError
from coplay.core.game import Game, Observation, State
from coplay.core.group import Group
from coplay.core.player import Memory, Player, View
from coplay.nn import categorical


class SteppedPlayer:
    """One player in one game, with its memory.

    player: who decides. game: what it plays. seat: where it sits, which matters for the state that
    a planner is given. probabilities: [action] of its last decision; None before the first.

        player = coplay.load_run("runs/ppo").player(seat=0)
        while playing:
            action = player.act(observation, reward)
        player.next_episode()
    """

    def __init__(self, player: Player, game: Game, seat: int = 0, seed: int = 0):
        self.player, self.game, self.seat, self._seed = player, game, seat, seed
        self.reset()

    def reset(self) -> None:
        """Forget everything, as before the first step of the first episode."""
        self.probabilities: np.ndarray | None = None
        self._key = jax.random.key(self._seed)
        self._memory = self.player.start(1)
        self._view: View | None = None
        self._time = self._episode = 0
        self._action, self._reward = -1, 0.0

    def next_episode(self, reward: float = 0.0, state: State | None = None) -> None:
        """Begin a new episode and remember the one before, as players do in training.

        reward: what the last action brought. state: the last state of the episode, for players
        that learn from what others did.
        """
        self._notice(reward, state, over=True)
        self._view = None
        self._time, self._episode = 0, self._episode + 1

    def act(
        self,
        observation: Observation | Mapping[str, Any],
        reward: float = 0.0,
        state: State | None = None,
    ) -> int:
        """The action for one observation of the player's seat, without leading axes.

        observation: as `Game.observe` gives for one seat, or as an environment of
            `coplay.to_pettingzoo` gives to its agent.
        reward: what the action before brought.
        state: the state of the game, for players that plan; others do not need it.
        """
        self._notice(reward, state, over=False)
        view = View(
            observation=jax.tree.map(lambda x: jnp.asarray(x)[None], _as_observation(observation)),
            alive=jnp.ones(1, bool),
            state=self._ego(state),
            time=jnp.full(1, self._time, jnp.int32),
            episode=jnp.full(1, self._episode, jnp.int32),
            last_action=jnp.full(1, self._action, jnp.int32),
            last_reward=jnp.full(1, self._reward, jnp.float32),
        )
        self._key, key = jax.random.split(self._key)
        try:
            action, policy, self._memory = _act(self.player, self.game, key, view, self._memory)
        except (AttributeError, TypeError, ValueError) as error:
            if state is not None or isinstance(error, UserError):
                raise
            raise UserError(
                f"{type(self.player).__name__} decides by the state of the game: give it to act as "
                "state=…"
            ) from error
        self._view, self._time = view, self._time + 1
        self._action = int(action)
        self.probabilities = np.asarray(policy)
        return self._action

    def _notice(self, reward: float, state: State | None, over: bool) -> None:
        """Take in what the action before brought, if there was one in this episode."""
        if self._view is None:
            return
        self._reward = float(reward)
        if not self.player.notices:
            return
        if state is None:
            raise UserError(
                f"{type(self.player).__name__} watches what others do: give the state of the game "
                "to act and to next_episode as state=…"
            )
        after, ended = self._ego(state), jnp.full(1, over)
        self._memory = _notice(self.player, self.game, self._view, after, ended, self._memory)

    def _ego(self, state: State | None) -> State | None:
        """The state as the player's seat sees it, with an axis for the only game copy."""
        if state is None:
            return None
        return jax.tree.map(lambda x: jnp.asarray(x)[None], _ego(self.game, state, self.seat))


def _as_observation(given: Observation | Mapping[str, Any]) -> Observation:
    if isinstance(given, Observation):
        return given
    try:
        seen, mask = given["observation"], given["action_mask"]
        return Observation(seen["planes"], seen["features"], jnp.asarray(mask, bool))
    except (KeyError, TypeError, IndexError) as error:
        raise UserError(
            "an observation is a coplay.Observation, or a dictionary with 'observation' and "
            f"'action_mask', not {given!r}"
        ) from error


@eqx.filter_jit
def _ego(game: Game, state: State, seat: int) -> State:
    return game.ego_state(state, seat)


@eqx.filter_jit
def _act(
    player: Player, game: Game, key: PRNGKeyArray, view: View, memory: Memory
) -> tuple[Array, Float[Array, " action"], Memory]:
    act_key, choice_key = jax.random.split(key)
    # Players may gather over the seats of their group; here the group is the player alone.
    group = Group(player, (0,), True)
    given = jax.tree.map(lambda x: x[None], (act_key, view, memory))
    logits, memory = jax.tree.map(lambda x: x[0], group.act(game, *given))
    log_policy = categorical.log_policy(logits, view.observation.legal)
    action = categorical.sample(jax.random.uniform(choice_key, (1,)), log_policy)
    return action[0], jnp.exp(log_policy[0]), memory


@eqx.filter_jit
def _notice(
    player: Player, game: Game, view: View, after: State, over: Bool[Array, " copy"], memory: Memory
) -> Memory:
    return player.notice(game, view, after, over, memory)
