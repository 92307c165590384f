"""The options of MAPPO."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from coplay.core.errors import UserError
from coplay.nn.layers import Activation
from coplay.nn.recurrent_cells import MemoryKind


@dataclass(frozen=True)
class MAPPOConfig:
    """Multi-agent PPO: actors that see their own views, a critic that may see all."""

    parameters: Literal["shared", "shared+id", "separate"] = "shared"
    """Parameters of the actors: one set for all seats; one for all with the seat's number as an
    additional input; one set each (and one critic each)."""
    critic: Literal["own", "global", "agent-specific"] = "agent-specific"
    """What the critic sees: the seat's own view (independent PPO); the state of the world, or all
    seats' views where a game has none; both. All but own come with the seat's number."""
    memory: MemoryKind = "none"
    """Memory of actor and critic: none, a gated recurrent unit, or a long short-term memory. It is
    emptied when an episode begins."""
    units: int = 64
    """Width of the memory."""
    chunk: int = 8
    """Steps through which gradients go back (with a memory): rollouts are cut into such pieces,
    contiguous in time and with all seats together, which begin with the memories as they were.
    Must divide --rollout."""
    network: Literal["mlp", "cnn"] = "mlp"
    """Encoder of the board: flattened planes, or 3x3 convolutions before the hidden layers."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the hidden layers of actor and critic."""
    channels: tuple[int, ...] = (16, 32)
    """Channels of the convolutions (only with network=cnn)."""
    activation: Activation = "relu"
    """Function between the layers of the networks."""
    layer_norm: bool = True
    """Normalise the inputs and what each layer gives."""
    actor_rate: float = 7e-4
    """Step size of the actor's Adam."""
    critic_rate: float = 7e-4
    """Step size of the critic's Adam."""
    schedule: Literal["constant", "linear"] = "constant"
    """Step sizes over the run: constant, or falling linearly to 0 at --steps."""
    discount: float = 0.99
    """Discount of future rewards."""
    trace: float = 0.95
    """Lambda of the generalised advantage estimation."""
    epochs: int = 5
    """Passes over each rollout."""
    minibatches: int = 1
    """Parts into which each pass is split, made of whole game copies, or of their chunks if there
    is a memory; must divide their number."""
    clip: float = 0.2
    """Limit of the probability ratio in the policy loss."""
    value_clip: float | None = 0.2
    """The critic may gain from moving at most so far away from its old value; None: no limit."""
    huber: float | None = 10.0
    """Errors of the critic above this count linearly and not by their square; None: never."""
    value_weight: float = 1.0
    """Weight of the value loss."""
    entropy_weight: float = 0.01
    """Weight of the entropy bonus."""
    align_weight: float = 0.0
    """Weight of KL(old policy || new policy) in the loss, exact."""
    gradient_clip: float = 10.0
    """Largest norm of the gradient of each part (actor, critic), each on its own."""
    normalise_values: bool = True
    """The critic predicts values normalised by a running mean and variance."""
    value_decay: float = 0.999
    """How much of the running mean and variance remains after each update."""

    run_defaults: ClassVar[dict[str, Any]] = {"copies": 128, "checkpoint_every": 200_000}
    """Fields of a run whose defaults are others than elsewhere."""
    adapt_defaults: ClassVar[dict[str, Any]] = {"minibatches": 1, "schedule": "constant"}
    """Fields whose defaults are others while it adapts in a single game copy."""

    def __post_init__(self) -> None:
        positive = ("actor_rate", "critic_rate", "epochs", "minibatches", "clip", "gradient_clip")
        for name in (*positive, "units", "chunk"):
            if getattr(self, name) <= 0:
                raise UserError(f"{name} must be above 0, not {getattr(self, name)}")
        for name in ("value_clip", "huber"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise UserError(f"{name} must be above 0 or none, not {value}")
        for name in ("discount", "trace"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"{name} must be between 0 and 1, not {getattr(self, name)}")
        if not 0 <= self.value_decay < 1:
            raise UserError(f"value_decay must be at least 0 and below 1, not {self.value_decay}")
        for name in ("value_weight", "entropy_weight", "align_weight"):
            if getattr(self, name) < 0:
                raise UserError(f"{name} must be at least 0, not {getattr(self, name)}")
        if not self.hidden or any(width <= 0 for width in (*self.hidden, *self.channels)):
            raise UserError("hidden and channels must be above 0, and there is a hidden layer")
