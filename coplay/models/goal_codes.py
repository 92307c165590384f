"""Goals as latent codes: what a co-player is after, as a vector z that nobody has to name.

Networks, all on the co-player's own ego view:

- the **goal VAE** encodes a board to N(μ, σ²): what a goal looks like once it is nearly reached;
- the **opponent model** predicts the co-player's action from (s, t, z). It is the same in the
  mirror (`coplay.nn.equivariant`);
- **inference** gives N(μ, σ²) from the past (`coplay.models.goal_inference`). Either by
  **prototypes**: a few codes are learned such that one of them explains all actions of a segment;
  how well the opponent model predicts the past with each of them gives its probability, and z is
  their mean. Or by a **GRU** over boards and joint actions. Its target is the VAE's code of the
  best board among the next `horizon` ones;
- the **selector** says which is best: the one whose code has the highest (optimistic) or lowest
  (conservative) value V(s, z) for those who play with the co-player. It acts only in training.

When predicting, z is the mean of what is inferred from the past. A code of a later board would give
the action away.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from coplay.core.config import Config, NonNegativeFloat, PositiveInt, Widths, only_if
from coplay.core.errors import UserError
from coplay.core.game import Game, Observation
from coplay.models.goal_inference import (
    ACTION_FEATURES,
    ChunkMemory,
    Code,
    GoalInference,
    Prototypes,
    RecurrentInference,
    split_code,
)
from coplay.nn import categorical
from coplay.nn.conditioned import Conditioned, centred, centred_shape, encoder
from coplay.nn.equivariant import EquivariantPolicy
from coplay.nn.layers import default_init
from coplay.nn.networks import Network, ViewShape
from coplay.nn.recurrent import GRUNetwork


@dataclass(frozen=True)
class GoalModelConfig(Config):
    """Goal codes and the opponent model that is given them."""

    loss: Literal["action", "reconstruction"] = "action"
    """What goal codes must be good for: predicting actions, or reconstructing the board."""
    dim: PositiveInt = 16
    """Numbers of a goal code z."""
    inference: Literal["prototypes", "gru"] = "prototypes"
    """How codes are inferred: by how well each of some learned codes predicts the past, or by a
    recurrent network."""
    prototypes: Annotated[PositiveInt, only_if(".inference", "prototypes")] = 8
    """Number of prototypes."""
    width: PositiveInt = 64
    """Width of the hidden layers of encoders, decoder and value, and of the memory of the recurrent
    network."""
    opponent_hidden: Widths = (256, 128)
    """Widths of the hidden layers of the opponent model, rounded up to multiples of 8."""
    kl_weight: NonNegativeFloat = 1e-3
    """Weight of the KL of a board's code to N(0, 1)."""
    inference_kl_weight: NonNegativeFloat = 1e-4
    """Weight of the KL of the inferred code to the code of the selected board."""
    horizon: PositiveInt = 5
    """How many of the next boards the selector chooses the goal from."""
    selector: Literal["optimistic", "conservative"] = "optimistic"
    """Which of them is the goal: the one of the highest or of the lowest value for the others."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.opponent_hidden:
            raise UserError("opponent_hidden must be one or more numbers")


class Steps(NamedTuple):
    """Steps of co-players, [chunk, slot, ...]: each chunk holds segments one after the other.

    observation: the co-player's own views before the steps. following: its planes after them.
    joint: [chunk, slot, seat] what all did, ego-first. alive: the slot holds a step of a player in
    the game. first: the memory is cleared before the step. left: how many more steps of the segment
    follow. target: what the selector's value learns: discounted rewards of those who play with it.
    start: [chunk, memory] the memory before the first slot.
    """

    observation: Observation
    following: Bool[Array, "chunk slot height width plane"]
    joint: Integer[Array, "chunk slot seat"]
    alive: Bool[Array, "chunk slot"]
    first: Bool[Array, "chunk slot"]
    left: Integer[Array, "chunk slot"]
    target: Float[Array, "chunk slot"]
    start: Float[Array, "chunk memory"]

    @property
    def past(self) -> ChunkMemory:
        return ChunkMemory(self.start, self.first, self.alive)


class GoalModel(eqx.Module):
    """See the module docstring. past: how many of the features say what was done last; they come
    first, one action one-hot for each player. decoder: reconstructs boards; only that loss needs
    it."""

    board: Network
    decoder: Network | None
    inference: GoalInference
    opponent: EquivariantPolicy
    value: Conditioned
    config: GoalModelConfig = eqx.field(static=True)
    shape: ViewShape
    past: int = eqx.field(static=True)
    seats: int = eqx.field(static=True)

    def __init__(self, config: GoalModelConfig, shape: ViewShape, seats: int, key: PRNGKeyArray):
        keys = jax.random.split(key, 7)
        self.config, self.shape, self.seats = config, shape, seats
        self.past = seats * shape.actions
        window = centred_shape(shape.planes)
        now = shape.features - self.past
        more = now + shape.actions
        code = config.dim

        network = partial(encoder, width=config.width)
        self.board = network(shape.planes, 0, 2 * code, keys[0])
        reconstructs = config.loss == "reconstruction"
        cells = math.prod(shape.planes)
        self.decoder = network((0, 0, 0), code, cells, keys[1]) if reconstructs else None
        if config.inference == "prototypes":
            self.inference = Prototypes(config.prototypes, code, keys[2])
        else:
            memory = GRUNetwork(
                ViewShape((0, 0, 0), ACTION_FEATURES + now + seats * shape.actions, shape.actions),
                config.width,
                config.width,
                key=keys[2],
                hidden=(config.width,),
                channels=(),
                activation="relu",
                head_scale=1.0,
            )
            self.inference = RecurrentInference(
                action_features=network(window, more, ACTION_FEATURES * shape.actions, keys[6]),
                memory=memory,
                inferred=network(window, more + config.width, 2 * code, keys[3]),
                numbers=now,
            )
        self.opponent = EquivariantPolicy(
            window, now, code, config.opponent_hidden, shape.actions, keys[4]
        )
        self.value = Conditioned(math.prod(window) + more, code, (config.width,), 1, keys[5])

    @property
    def memory_size(self) -> int:
        """How many numbers are remembered of a player."""
        return self.inference.memory_size

    def see(self, observation: Observation) -> Float[Array, "*batch inputs"]:
        """Board, time and legal actions as the co-player itself sees them, itself in the middle."""
        planes = centred(observation.planes.astype(jnp.float32))
        flat = planes.reshape(*planes.shape[:-3], -1)
        now, legal = observation.features[..., self.past :], observation.legal.astype(jnp.float32)
        return jnp.concatenate([flat, now, legal], axis=-1)

    # --- inferring and predicting --------------------------------------------------------------

    def evidence(
        self, seen: Float[Array, "*batch inputs"], joint: Integer[Array, "*batch seat"]
    ) -> Float[Array, "*batch evidence"]:
        """What steps show of players, see `GoalInference.evidence`."""
        return self.inference.evidence(self.opponent, seen, joint)

    def remember(
        self,
        memory: Float[Array, "*batch memory"],
        seen: Float[Array, "*batch inputs"],
        joint: Integer[Array, "*batch seat"],
    ) -> Float[Array, "*batch memory"]:
        """The memory after a step; zeros before the first."""
        return self.inference.update(memory, self.evidence(seen, joint))

    def infer(
        self, memory: Float[Array, "*batch memory"], seen: Float[Array, "*batch inputs"]
    ) -> Code:
        """The code of the co-player's goal, from the past and the current view."""
        return self.inference.infer(memory, seen)

    def encode(self, planes: Float[Array, "*batch height width plane"]) -> Code:
        """The goal VAE's code of a board."""
        return split_code(self.board(planes.reshape(*planes.shape[:-3], -1)))

    def predict_actions(
        self,
        seen: Float[Array, "*batch inputs"],
        z: Float[Array, "*batch code"],
        legal: Bool[Array, "*batch action"],
    ) -> Float[Array, "*batch action"]:
        """Log-probabilities of the co-player's actions."""
        return categorical.log_policy(self.opponent(seen, z), legal)

    def unroll(
        self, evidence: Float[Array, "chunk slot evidence"], past: ChunkMemory
    ) -> tuple[Float[Array, "chunk slot memory"], Float[Array, "chunk memory"]]:
        """The memory before each step, and after the last."""
        after = self.inference.unroll(evidence, past)
        before = jnp.concatenate([past.start[:, None], after[:, :-1]], axis=1)
        return jnp.where(past.first[..., None], 0.0, before), after[:, -1]

    def memories(
        self, seen: Float[Array, "chunk slot inputs"], steps: Steps
    ) -> Float[Array, "chunk slot memory"]:
        """The memory before each step."""
        return self.unroll(self.evidence(seen, steps.joint), steps.past)[0]

    def codes(self, steps: Steps) -> tuple[Float[Array, "chunk slot inputs"], Code]:
        """What is seen at every step, and the codes that are inferred from the past."""
        seen = self.see(steps.observation)
        return seen, self.infer(self.memories(seen, steps), seen)


def new_goal_model(
    config: GoalModelConfig, shape: ViewShape, seats: int, key: PRNGKeyArray
) -> GoalModel:
    """A model before learning."""
    return default_init(lambda key: GoalModel(config, shape, seats, key), key)


def refuse_unknown_features(game: Game) -> None:
    """Goal codes are of games on boards whose views begin with what every player did last."""
    if not game.full_view or game.seat_features != game.actions or not game.seat_planes:
        raise UserError(
            "goals are inferred from boards that are seen in full and from what every player did "
            f"last; '{game.name}' as configured does not show that: leave out game.view, or train "
            "ppo-gru"
        )
