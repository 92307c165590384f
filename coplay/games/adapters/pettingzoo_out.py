"""`to_pettingzoo`: any game of ours as a PettingZoo parallel environment.

It is stepped from Python, one game copy at a time, for tools that speak PettingZoo. Our own
rollouts step many copies inside one compiled program and do not come here.
"""

from __future__ import annotations

import copy
import operator
import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt32

from coplay.core.compilation import use_cache
from coplay.core.errors import UserError, how_to_install, unknown
from coplay.core.game import Game, Observation, Outcome, State
from coplay.games.registry import make_game

MISSING: str | None = None
"""The module that is needed here and not installed, if any."""

if TYPE_CHECKING:
    from gymnasium import logger, spaces
    from pettingzoo import ParallelEnv
else:
    try:
        from gymnasium import logger, spaces
        from pettingzoo import ParallelEnv
    except ModuleNotFoundError as error:
        if error.name not in ("gymnasium", "pettingzoo"):
            raise
        # The class that inherits from it cannot move into a function: it could not be pickled.
        MISSING, ParallelEnv = error.name, object

LARGEST_SEED = 2**32 - 1

ByAgent = dict[str, Any]


class EnvEpisode(NamedTuple):
    """What is carried from step to step, on the device.

    key: the episode's key as raw words: typed keys are slow to pass to compiled functions.
    time: [] steps played.
    state: the game's.
    """

    key: UInt32[Array, " word"]
    time: Int[Array, ""]
    state: State


def to_pettingzoo(
    game: Game | str, render_mode: str | None = None, seed: int | None = None
) -> CoplayParallelEnv:
    """A game as a `pettingzoo.ParallelEnv`; see `CoplayParallelEnv`.

    game: a game, or the name of one.
    render_mode: what `render()` gives: "rgb_array" a picture, "ansi" text; "human" prints the text
        after every reset and step.
    seed: of the episodes until `reset` is given one; None: drawn anew for each environment.

        env = coplay.to_pettingzoo("stag-hunt", render_mode="ansi")
        observations, infos = env.reset(seed=0)
    """
    if MISSING:
        raise UserError(f"{MISSING} is not installed: {how_to_install('pettingzoo')}")
    use_cache()
    return CoplayParallelEnv(make_game(game) if isinstance(game, str) else game, render_mode, seed)


class CoplayParallelEnv(ParallelEnv):
    """A PettingZoo parallel environment around a game; seat i is the agent `player_{i + 1}`.

    An observation is `{"observation": {"planes": …, "features": …}, "action_mask": …}`, the ego
    view of the agent's seat:
        planes: [height, width, plane]; what is bool in the game is int8 here.
        features: [feature] float32.
        action_mask: [action] int8, 1 where an action is legal; also in the agent's info.

    An agent that leaves gets its termination, last reward and last observation in that step and is
    not in `agents` afterwards. When an episode is cut, the agents still in the game get a
    truncation instead, and `agents` is empty.

    Episode k since seeding with s (from 0) has the key `fold_in(key(s), k)`; folding in t gives the
    key of its reset (t = 0) and of its step t. It does not depend on how the others were played.
    """

    def __init__(self, game: Game, render_mode: str | None = None, seed: int | None = None):
        modes = ["human", "ansi"] if type(game).text is not Game.text else []
        modes += ["rgb_array"] if type(game).draw is not Game.draw else []
        if render_mode is not None and render_mode not in modes:
            raise unknown("render mode", render_mode, modes)
        self.game = game
        self.render_mode = render_mode
        self.metadata = {
            "name": game.name,
            "render_modes": modes,
            "render_fps": 3,
            "is_parallelizable": True,
        }
        self.possible_agents = [f"player_{seat + 1}" for seat in range(game.seats)]
        self.agents: list[str] = []
        observation_space, self.state_space = _spaces(game)
        # Each agent has spaces of its own, because spaces are seeded and sampled one by one.
        self.observation_spaces = {
            name: copy.deepcopy(observation_space) for name in self.possible_agents
        }
        self.action_spaces = {name: spaces.Discrete(game.actions) for name in self.possible_agents}
        self._seats = {name: seat for seat, name in enumerate(self.possible_agents)}
        self._seed = secrets.randbits(32) if seed is None else _checked(seed)
        self._episodes = 0  # begun since seeding
        self._episode: EnvEpisode | None = None
        self._seen: Observation | None = None

    def observation_space(self, agent: str) -> spaces.Dict:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ByAgent, ByAgent]:
        """Begin an episode: (observations, infos). There are no options.

        seed: from 0 to 2**32 - 1; None: the next episode of the last seed.
        """
        if seed is not None:
            self._seed, self._episodes = _checked(seed), 0
        seed_and_episode = np.uint32(self._seed), np.uint32(self._episodes)
        self._episode, self._seen = _reset(self.game, *seed_and_episode)
        self._episodes += 1
        self.agents = self.possible_agents.copy()
        observations, infos = self._views(self.agents)
        if self.render_mode == "human":
            self.render()
        return observations, infos

    def step(self, actions: ByAgent) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, ByAgent]:
        """All agents act at once: (observations, rewards, terminations, truncations, infos), each
        for the agents that were in the game before the step.

        actions: an integer for each agent in `agents`; those of agents that left are ignored. What
            happens to an illegal action is for the game to say.
        """
        episode, before = self._begun(), self.agents
        if not before:
            return {}, {}, {}, {}, {}
        self._episode, self._seen, outcome = _step(self.game, episode, self._by_seat(actions))
        reward, terminated, truncated = (np.asarray(part).tolist() for part in outcome)
        rewards, terminations, truncations = {}, {}, {}
        for agent in before:
            seat = self._seats[agent]
            rewards[agent] = reward[seat]
            terminations[agent] = terminated[seat]
            truncations[agent] = truncated and not terminated[seat]
        observations, infos = self._views(before)
        self.agents = [a for a in before if not (terminations[a] or truncations[a])]
        if self.render_mode == "human":
            self.render()
        return observations, rewards, terminations, truncations, infos

    def state(self) -> np.ndarray:
        """What all seats see together: [seat * (height * width * plane + feature)] float32.

        The ego views of the seats one after the other, each with its planes first; also of those
        that left. No seat's view stands for the game.
        """
        self._begun()
        assert self._seen is not None
        planes, features = np.asarray(self._seen.planes), np.asarray(self._seen.features)
        rows = [planes.reshape(len(planes), -1).astype(np.float32), features]
        return np.concatenate(rows, axis=1).reshape(-1)

    @property
    def game_state(self) -> State:
        """The state of the game, for scripted players and planners in a loop of one's own.

        action = player.act(observations[agent], rewards[agent], env.game_state)
        """
        return self._begun().state

    def render(self) -> np.ndarray | str | None:
        """A picture [pixel row, pixel column, RGB] uint8, text, or None, as `render_mode` says."""
        if self.render_mode is None:
            logger.warn("render() gives nothing without a render_mode")
            return None
        state = self.game_state
        if self.render_mode == "rgb_array":
            return self.game.draw(state)
        if self.render_mode == "ansi":
            return self.game.text(state)
        print(self.game.text(state))
        return None

    def close(self) -> None:
        """Nothing is held open."""

    def _begun(self) -> EnvEpisode:
        if self._episode is None:
            raise UserError("no episode has begun: call reset() first")
        return self._episode

    def _by_seat(self, actions: ByAgent) -> np.ndarray:
        """[seat] int32; 0 for the seats that left."""
        chosen = np.zeros(len(self._seats), np.int32)
        for agent in self.agents:
            if agent not in actions:
                raise UserError(f"no action for {agent}: give one to every agent in env.agents")
            try:
                chosen[self._seats[agent]] = operator.index(actions[agent])
            except (TypeError, OverflowError):
                raise UserError(
                    f"the action of {agent} must be an integer, not {actions[agent]!r}"
                ) from None
        if len(actions) > len(self.agents):
            for name in actions:
                if name not in self._seats:
                    raise unknown("agent", name, self._seats)
        return chosen

    def _views(self, agents: list[str]) -> tuple[ByAgent, ByAgent]:
        """Observations and infos of some agents, in arrays that nobody else holds."""
        assert self._seen is not None
        # Copies, because views of JAX arrays cannot be written to, which PyTorch warns about; not
        # by `jax.device_get`, which on CPU takes longer than stepping.
        planes, features, mask = (np.array(part) for part in self._seen[:3])
        observations, infos = {}, {}
        for agent in agents:
            seat = self._seats[agent]
            observations[agent] = {
                "observation": {"planes": planes[seat], "features": features[seat]},
                "action_mask": mask[seat],
            }
            infos[agent] = {"action_mask": mask[seat]}
        return observations, infos


def _checked(seed: int) -> int:
    if not 0 <= operator.index(seed) <= LARGEST_SEED:
        raise UserError(f"seed must be from 0 to {LARGEST_SEED}, not {seed}")
    return operator.index(seed)


# --- compiled once for all environments of equal games -----------------------------------------


@jax.jit
def _reset(
    game: Game, seed: UInt32[Array, ""], episode: UInt32[Array, ""]
) -> tuple[EnvEpisode, Observation]:
    key = jax.random.fold_in(jax.random.key(seed), episode)
    state = game.reset(jax.random.fold_in(key, 0))
    return EnvEpisode(jax.random.key_data(key), jnp.int32(0), state), _plain(game.observe(state))


@jax.jit
def _step(
    game: Game, episode: EnvEpisode, actions: Int[Array, " seat"]
) -> tuple[EnvEpisode, Observation, Outcome]:
    time = episode.time + 1
    key = jax.random.fold_in(jax.random.wrap_key_data(episode.key), time)
    state, outcome = game.step(key, episode.state, actions)
    return EnvEpisode(episode.key, time, state), _plain(game.observe(state)), outcome


def _plain(seen: Observation) -> Observation:
    """Ego views in types that NumPy and gymnasium's spaces have; the legal actions as int8."""
    planes = seen.planes
    if planes.dtype == bool:
        planes = planes.astype(jnp.int8)
    elif jnp.issubdtype(planes.dtype, jnp.floating):
        planes = planes.astype(jnp.float32)
    return Observation(planes, seen.features.astype(jnp.float32), seen.legal.astype(jnp.int8))


# --- spaces ------------------------------------------------------------------------------------


def _spaces(game: Game) -> tuple[spaces.Dict, spaces.Box]:
    """The spaces of an agent's observations and of `CoplayParallelEnv.state`."""
    state = jax.eval_shape(game.reset, jax.random.key(0))
    own = jax.eval_shape(game.observe, state)
    plain = jax.eval_shape(_plain, own)
    low, high = -np.inf, np.inf
    if own.planes.dtype == bool:
        low, high = 0, 1
    elif jnp.issubdtype(own.planes.dtype, jnp.integer):
        low, high = np.iinfo(own.planes.dtype).min, np.iinfo(own.planes.dtype).max
    planes = spaces.Box(low, high, plain.planes.shape[1:], plain.planes.dtype)
    features = spaces.Box(-np.inf, np.inf, plain.features.shape[1:], np.float32)
    observation_space = spaces.Dict(
        {
            "observation": spaces.Dict({"planes": planes, "features": features}),
            "action_mask": spaces.Box(0, 1, (game.actions,), np.int8),
        }
    )
    everything_low, everything_high = (
        np.tile(np.concatenate([a.reshape(-1), b]).astype(np.float32), game.seats)
        for a, b in ((planes.low, features.low), (planes.high, features.high))
    )
    return observation_space, spaces.Box(everything_low, everything_high, dtype=np.float32)
