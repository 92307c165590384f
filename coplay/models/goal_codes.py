"""Goals as latent codes: what a co-player is after, as a vector z that nobody has to name.

Networks, all on the co-player's own ego view:

- the **goal VAE** encodes a state to N(μ, σ²): what a goal looks like once it is nearly reached.
  `content` says what belongs to it: the state alone, time, reward, or the steps that led there;
- the **opponent model** predicts the co-player's action from (s, t, z). On a board it is the same
  in the mirror (`coplay.nn.equivariant`), and views are centred on the player's own cell. In any
  other game it is a plain network on planes and numbers as they are;
- **inference** gives N(μ, σ²) from the past (`coplay.models.goal_inference`). Either by
  **prototypes**: a few codes are learned such that one of them explains all actions of a segment;
  how well the opponent model predicts the past with each of them gives its probability, and z is
  their mean. Or by a **GRU** over boards and joint actions. Its target is the VAE's code of the
  best board among the next `horizon` ones. Or by a **VAE**: the same network gives N(μ, σ²), of
  which `candidates` codes are drawn, and the selector takes one of them;
- the **selector** says which is best: the one whose code has the highest (optimistic) or lowest
  (conservative) value V(s, z) for those who play with the co-player. It chooses the goals to learn
  from, and with inference by a VAE also the code to act by.

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
import numpy as np
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray, Shaped

from coplay.core.config import (
    Config,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    Share,
    Widths,
    only_if,
)
from coplay.core.errors import UserError
from coplay.core.game import Observation
from coplay.models.goal_inference import (
    ACTION_FEATURES,
    ChunkMemory,
    Code,
    GoalInference,
    OpponentModel,
    Prototypes,
    RecurrentInference,
    split_code,
)
from coplay.nn import categorical
from coplay.nn.conditioned import Conditioned, GatedPolicy, centred, centred_shape, encoder
from coplay.nn.equivariant import EquivariantPolicy
from coplay.nn.layers import default_init
from coplay.nn.networks import Network, ViewShape
from coplay.nn.recurrent import GRUNetwork


@dataclass(frozen=True)
class GoalModelConfig(Config):
    """Goal codes and the opponent model that is given them."""

    loss: Literal["action", "reconstruction"] = "action"
    """What goal codes must be good for: predicting actions, or reconstructing the board."""
    content: Literal["state", "state-time", "state-time-reward", "segment"] = "state"
    """What is encoded as a goal: the state after a step; with the time; with the time and the
    step's reward; with the time, the own actions and the rewards of the last `horizon` steps."""
    dim: PositiveInt = 16
    """Numbers of a goal code z."""
    inference: Literal["prototypes", "gru", "vae"] = "prototypes"
    """How codes are inferred: by how well each of some learned codes predicts the past; by a
    recurrent network; by its distribution of codes, out of which the selector takes one."""
    prototypes: Annotated[PositiveInt, only_if(".inference", "prototypes")] = 8
    """Number of prototypes."""
    candidates: Annotated[PositiveInt, only_if(".inference", "vae")] = 8
    """Codes out of which the selector takes one."""
    gate: Annotated[NonNegativeInt, only_if(".inference", "prototypes")] = 0
    """On a board: what a co-player does tells of its goal only within so many cells of a thing;
    0: everywhere."""
    gate_weight: Annotated[Share, only_if(".gate")] = 0.0
    """Weight of what it does farther away; 0: none, nothing is inferred there."""
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
    outcome: the features of its view after them, without what was done last on a board, and last
    the reward; may be None where goals are boards alone.
    joint: [chunk, slot, seat] what all did, ego-first. alive: the slot holds a step of a player in
    the game. first: the memory is cleared before the step. left: how many more steps of the segment
    follow. target: what the selector's value learns: discounted rewards of those who play with it.
    start: [chunk, memory] the memory before the first slot. begin: [chunk, slot, memory] the memory
    with which segments begin; None: without any.
    """

    observation: Observation
    following: Shaped[Array, "chunk slot height width plane"]
    outcome: Float[Array, "chunk slot number"] | None
    joint: Integer[Array, "chunk slot seat"]
    alive: Bool[Array, "chunk slot"]
    first: Bool[Array, "chunk slot"]
    left: Integer[Array, "chunk slot"]
    target: Float[Array, "chunk slot"]
    start: Float[Array, "chunk memory"]
    begin: Float[Array, "chunk slot memory"] | None = None

    @property
    def past(self) -> ChunkMemory:
        return ChunkMemory(self.start, self.first, self.alive, self.begin)


class GoalModel(eqx.Module):
    """See the module docstring. past: how many of the features are left out: on a board those that
    say what was done last, which come first. decoder: reconstructs goals; only that loss needs
    it."""

    board: Network
    decoder: Network | None
    inference: GoalInference
    opponent: OpponentModel
    value: Conditioned
    config: GoalModelConfig = eqx.field(static=True)
    shape: ViewShape
    past: int = eqx.field(static=True)
    seats: int = eqx.field(static=True)

    def __init__(self, config: GoalModelConfig, shape: ViewShape, seats: int, key: PRNGKeyArray):
        keys = jax.random.split(key, 7)
        self.config, self.shape, self.seats = config, shape, seats
        self.past = past_features(shape, seats)
        window = centred_shape(shape.planes) if shape.on_grid else shape.planes
        now = shape.features - self.past
        more = now + shape.actions
        code = config.dim

        network = partial(encoder, width=config.width)
        beside = self.content_numbers
        self.board = network(shape.planes, beside, 2 * code, keys[0])
        reconstructs = config.loss == "reconstruction"
        cells = math.prod(shape.planes) + beside
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
        hidden, actions = config.opponent_hidden, shape.actions
        self.opponent = (
            EquivariantPolicy(window, now, code, hidden, actions, keys[4])
            if shape.on_grid
            else GatedPolicy(math.prod(window) + now, code, hidden, actions, keys[4])
        )
        self.value = Conditioned(math.prod(window) + more, code, (config.width,), 1, keys[5])

    @property
    def memory_size(self) -> int:
        """How many numbers are remembered of a player."""
        return self.inference.memory_size

    def see(self, observation: Observation) -> Float[Array, "*batch inputs"]:
        """Board, time and legal actions as the co-player itself sees them, on a board with itself
        in the middle."""
        planes = observation.planes.astype(jnp.float32)
        planes = centred(planes) if self.shape.on_grid else planes
        flat = planes.reshape(*planes.shape[:-3], -1)
        now, legal = observation.features[..., self.past :], observation.legal.astype(jnp.float32)
        return jnp.concatenate([flat, now, legal], axis=-1)

    # --- inferring and predicting --------------------------------------------------------------

    def evidence(
        self, seen: Float[Array, "*batch inputs"], joint: Integer[Array, "*batch seat"]
    ) -> Float[Array, "*batch evidence"]:
        """What steps show of players, see `GoalInference.evidence`; less beyond the gate."""
        found = self.inference.evidence(self.opponent, seen, joint)
        if not self.config.gate:
            return found
        return jnp.where(self.near(seen)[..., None], found, self.config.gate_weight * found)

    def near(self, seen: Float[Array, "*batch inputs"]) -> Bool[Array, "*batch"]:
        """Whether a player is within the gate of a thing on its board."""
        rows, columns, planes = window = centred_shape(self.shape.planes)
        board = seen[..., : math.prod(window)].reshape(*seen.shape[:-1], *window)
        # Players come first, then walls; the last plane says which cells are on the board.
        thing = jnp.any(board[..., self.seats + 1 : planes - 1] != 0, axis=-1)
        down, right = (np.abs(np.arange(size) - size // 2) for size in (rows, columns))
        return jnp.any(thing & (down[:, None] + right <= self.config.gate), axis=(-2, -1))

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
        """The code of the co-player's goal, from the past and the current view, as players use it.
        With inference by a VAE its mean is the candidate that the selector takes."""
        code = self.inference.infer(memory, seen)
        if self.config.inference != "vae":
            return code
        return code._replace(mean=self.selected(code, seen))

    def selected(
        self, code: Code, seen: Float[Array, "*batch inputs"]
    ) -> Float[Array, "*batch code"]:
        """The candidate of the best value. Candidates are drawn by the same numbers always, and the
        first is the mean: what a player does hangs on what it saw, not on luck."""
        dim = code.mean.shape[-1]
        noise = np.random.default_rng(0).normal(size=(self.config.candidates, dim))
        noise[0] = 0.0
        drawn = code.mean[..., None, :] + code.deviation[..., None, :] * noise.astype(np.float32)
        worth = self.value.given(self.value.view(seen)[..., None, :], drawn)[..., 0]
        worth = worth if self.config.selector == "optimistic" else -worth
        best = jnp.argmax(worth, axis=-1)[..., None] == jnp.arange(self.config.candidates)
        return jnp.sum(jnp.where(best[..., None], drawn, 0.0), axis=-2)

    def encode(self, content: Float[Array, "*batch inputs"]) -> Code:
        """The goal VAE's code of what `content` gives."""
        return split_code(self.board(content))

    @property
    def content_numbers(self) -> int:
        """How many numbers belong to a goal beside its planes."""
        now = self.shape.features - self.past
        state = 0 if self.shape.on_grid else now
        return {
            "state": state,
            "state-time": now,
            "state-time-reward": now + 1,
            "segment": now + 1 + self.shape.actions,
        }[self.config.content]

    def content(self, steps: Steps) -> Float[Array, "chunk slot inputs"]:
        """What is encoded as a goal, of every step: what the step led to. Planes come first."""
        planes = steps.following.astype(jnp.float32).reshape(*steps.alive.shape, -1)
        kind = self.config.content
        if not self.content_numbers:
            return planes
        assert steps.outcome is not None
        now, reward = steps.outcome[..., :-1], steps.outcome[..., -1:]
        parts = [planes, now]
        if kind == "state-time-reward":
            parts.append(reward)
        if kind == "segment":
            done = steps.joint[..., 0, None] == jnp.arange(self.shape.actions)
            both = jnp.concatenate([reward, done.astype(jnp.float32)], axis=-1)
            parts.append(recent(both, steps, self.config.horizon))
        return jnp.concatenate(parts, axis=-1)

    def predict_actions(
        self,
        seen: Float[Array, "*batch inputs"],
        z: Float[Array, "*batch code"],
        legal: Bool[Array, "*batch action"],
        corrections: Float[Array, "*batch action"] | None = None,
    ) -> Float[Array, "*batch action"]:
        """Log-probabilities of the co-player's actions. corrections: of their logits."""
        logits = self.opponent(seen, z)
        return categorical.log_policy(
            logits if corrections is None else logits + corrections, legal
        )

    def unroll(
        self, evidence: Float[Array, "chunk slot evidence"], past: ChunkMemory
    ) -> tuple[Float[Array, "chunk slot memory"], Float[Array, "chunk memory"]]:
        """The memory before each step, and after the last."""
        after = self.inference.unroll(evidence, past)
        before = jnp.concatenate([past.start[:, None], after[:, :-1]], axis=1)
        return past.begun(before), after[:, -1]

    def memories(
        self, seen: Float[Array, "chunk slot inputs"], steps: Steps
    ) -> Float[Array, "chunk slot memory"]:
        """The memory before each step."""
        return self.unroll(self.evidence(seen, steps.joint), steps.past)[0]

    def codes(self, steps: Steps) -> tuple[Float[Array, "chunk slot inputs"], Code]:
        """What is seen at every step, and the codes that are inferred from the past."""
        seen = self.see(steps.observation)
        return seen, self.infer(self.memories(seen, steps), seen)


def past_features(shape: ViewShape, seats: int) -> int:
    """How many of the first features of a view the models leave out."""
    return seats * shape.actions if shape.on_grid else 0


def recent(
    numbers: Float[Array, "chunk slot number"], steps: Steps, horizon: int
) -> Float[Array, "chunk slot number"]:
    """Means over the last `horizon` steps of the same segment, the step itself included."""
    alive = steps.alive
    slot = jnp.arange(alive.shape[1])
    segment = jnp.cumsum(steps.first, axis=1)
    near = (slot[:, None] >= slot) & (slot[:, None] - slot < horizon)  # [step, step before]
    near = near & (segment[:, :, None] == segment[:, None]) & alive[:, None]
    count = jnp.maximum(jnp.sum(near, axis=-1, keepdims=True), 1)
    return near.astype(jnp.float32) @ numbers / count


def new_goal_model(
    config: GoalModelConfig, shape: ViewShape, seats: int, key: PRNGKeyArray
) -> GoalModel:
    """A model before learning."""
    return default_init(lambda key: GoalModel(config, shape, seats, key), key)


def check_content(config: GoalModelConfig, shape: ViewShape) -> None:
    """An error if views of this shape do not tell what goals are to be made of, or how far they
    are."""
    if config.gate and not shape.on_grid:
        raise UserError("goals.gate counts cells, and this game has no board: leave it out")
    if config.content == "state-time" and not shape.on_grid:
        raise UserError(
            "goals.content=state-time is for games on a board: here all numbers of a view, the "
            "time among them, belong to the state; take state or state-time-reward"
        )
