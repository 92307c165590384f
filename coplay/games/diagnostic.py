"""Three small games that tell what a learner can and cannot do, whatever its curves elsewhere.

`identity`: all seats see the same, and seat i must take action i. Who cannot tell the seats apart
gets 1/n.

`hidden-target`: in each episode one target action per seat is drawn that nobody sees; only its own
rewards tell a seat whether it found it. Who does not remember gets 1/actions.

`hidden-kind`: who does what the others do is rewarded, and nobody sees what they do. Among partners
that always do the same, who remembers its rewards from one episode to the next finds out what.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.core.config import Config, PositiveInt, Range
from coplay.core.game import Game, Observation, Outcome, ScriptedPolicy


@dataclass(frozen=True)
class IdentityConfig(Config):
    """All see the same; seat i must take action i."""

    players: PositiveInt = 4
    """How many seats, and actions."""
    horizon: PositiveInt = 4
    """Steps of an episode."""


@dataclass(frozen=True)
class HiddenTargetConfig(Config):
    """One hidden target action per seat and episode, known by its rewards alone."""

    players: PositiveInt = 4
    """How many seats."""
    choices: PositiveInt = 4
    """How many actions."""
    horizon: PositiveInt = 16
    """Steps of an episode."""


@dataclass(frozen=True)
class HiddenKindConfig(Config):
    """Do as the others do, whom one does not see."""

    players: Annotated[int, Range(least=2)] = 2
    """How many seats."""
    choices: PositiveInt = 3
    """How many actions."""
    horizon: PositiveInt = 2
    """Steps of an episode."""


class DiagnosticState(NamedTuple):
    """target: the action that each seat is rewarded for. time: steps played."""

    target: Int[Array, " seat"]
    time: Int[Array, ""]


class DiagnosticGame(Game):
    """What both games share: nothing is seen, the reward of a step is 1 for the target action and
    0 for others, and an episode ends after `horizon` steps. What seats see is always (1, 0): of a
    single number a normalised layer would leave nothing."""

    symmetric: ClassVar[bool] = False

    config: IdentityConfig | HiddenTargetConfig = eqx.field(static=True)

    @property
    def seats(self) -> int:
        return self.config.players

    @property
    def horizon(self) -> int:
        return self.config.horizon

    @property
    def action_names(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(str(action) for action in range(self.choices))

    @property
    def choices(self) -> int:
        """How many actions there are."""
        raise NotImplementedError

    @property
    def full_view(self) -> bool:
        """The state holds the targets, which nobody sees."""
        return False

    def step(
        self, key: PRNGKeyArray, state: DiagnosticState, actions: Int[Array, " seat"]
    ) -> tuple[DiagnosticState, Outcome]:
        state = DiagnosticState(state.target, state.time + 1)
        over = jnp.broadcast_to(state.time >= self.horizon, (self.seats,))
        reward = (actions == state.target).astype(jnp.float32)
        return state, Outcome(reward, over, jnp.zeros((), bool))

    def observe(self, state: DiagnosticState) -> Observation:
        return Observation(
            planes=jnp.zeros((self.seats, 0, 0, 0), jnp.int8),
            features=jnp.broadcast_to(jnp.array([1.0, 0.0]), (self.seats, 2)),
            legal=jnp.ones((self.seats, self.choices), bool),
        )

    def alive(self, state: DiagnosticState) -> Bool[Array, " seat"]:
        return jnp.broadcast_to(state.time < self.horizon, (self.seats,))

    def text(self, state: DiagnosticState) -> str:
        return f"step {int(state.time)}, targets {' '.join(map(str, state.target.tolist()))}"


class Identity(DiagnosticGame):
    """See the module docstring."""

    name: ClassVar[str] = "identity"

    @property
    def choices(self) -> int:
        return self.config.players

    def reset(self, key: PRNGKeyArray) -> DiagnosticState:
        return DiagnosticState(jnp.arange(self.seats), jnp.zeros((), jnp.int32))


class HiddenTarget(DiagnosticGame):
    """See the module docstring."""

    name: ClassVar[str] = "hidden-target"

    config: HiddenTargetConfig = eqx.field(static=True)

    @property
    def choices(self) -> int:
        return self.config.choices

    def reset(self, key: PRNGKeyArray) -> DiagnosticState:
        target = jax.random.randint(key, (self.seats,), 0, self.choices)
        return DiagnosticState(target, jnp.zeros((), jnp.int32))


class KindState(NamedTuple):
    """last: the action of each seat in the step before, 0 at first. time: steps played."""

    last: Int[Array, " seat"]
    time: Int[Array, ""]


class HiddenKind(Game):
    """See the module docstring. The reward of a step is the share of the others that did the
    same."""

    name: ClassVar[str] = "hidden-kind"

    config: HiddenKindConfig = eqx.field(static=True)

    @property
    def seats(self) -> int:
        return self.config.players

    @property
    def horizon(self) -> int:
        return self.config.horizon

    @property
    def action_names(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(str(action) for action in range(self.config.choices))

    @property
    def scripted(self) -> Mapping[str, ScriptedPolicy]:
        return {f"always-{choice}": _always(choice) for choice in range(self.config.choices)}

    def reset(self, key: PRNGKeyArray) -> KindState:
        return KindState(jnp.zeros(self.seats, jnp.int32), jnp.zeros((), jnp.int32))

    def step(
        self, key: PRNGKeyArray, state: KindState, actions: Int[Array, " seat"]
    ) -> tuple[KindState, Outcome]:
        alike = (actions[:, None] == actions).astype(jnp.float32)
        reward = (jnp.sum(alike, axis=1) - 1.0) / (self.seats - 1)
        state = KindState(actions.astype(jnp.int32), state.time + 1)
        over = jnp.broadcast_to(state.time >= self.horizon, (self.seats,))
        return state, Outcome(reward, over, jnp.zeros((), bool))

    def observe(self, state: KindState) -> Observation:
        return Observation(
            planes=jnp.zeros((self.seats, 0, 0, 0), jnp.int8),
            features=jnp.broadcast_to(jnp.array([1.0, 0.0]), (self.seats, 2)),
            legal=jnp.ones((self.seats, self.actions), bool),
        )

    @property
    def full_view(self) -> bool:
        return False

    def alive(self, state: KindState) -> Bool[Array, " seat"]:
        return jnp.broadcast_to(state.time < self.horizon, (self.seats,))

    def last_actions(self, state: KindState) -> Int[Array, " seat"]:
        return state.last

    def permute_seats(self, state: KindState, order: Int[Array, " seat"]) -> KindState:
        return state._replace(last=state.last[order])

    def text(self, state: KindState) -> str:
        return f"step {int(state.time)}, last actions {' '.join(map(str, state.last.tolist()))}"


@functools.cache
def _always(choice: int) -> ScriptedPolicy:
    def policy(game: Game, state: Any) -> Float[Array, " action"]:
        return (jnp.arange(game.actions) == choice).astype(jnp.float32)

    return policy
