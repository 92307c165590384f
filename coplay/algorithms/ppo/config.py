"""The configuration of PPO."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from coplay.core.errors import UserError
from coplay.nn.layers import Activation


@dataclass(frozen=True)
class PPOConfig:
    """Proximal policy optimisation, one learner per seat."""

    parameters: Literal["separate", "shared", "shared+id"] = "separate"
    """Parameters of the seats: one set each; one for all; one for all with the seat's number as an
    additional input."""
    network: Literal["mlp", "centred", "cnn"] = "mlp"
    """Encoder of the board: planes as they are, planes shifted so that the own cell is in the
    middle, or 3x3 convolutions before the hidden layers."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the hidden layers of actor and critic."""
    channels: tuple[int, ...] = (16, 32)
    """Channels of the convolutions (only with network=cnn)."""
    activation: Activation = "tanh"
    """Function between the layers of the networks."""
    learning_rate: float = 1e-3
    """Step size of Adam."""
    schedule: Literal["constant", "linear"] = "constant"
    """Learning rate over the run: constant, or falling linearly to 0 at --steps."""
    discount: float = 0.99
    """Discount of future rewards."""
    trace: float = 0.95
    """Lambda of the generalised advantage estimation."""
    epochs: int = 4
    """Passes over each rollout."""
    minibatches: int = 8
    """Parts into which each pass is split, made of whole game copies; must divide their number."""
    clip: float = 0.2
    """Limit of the probability ratio in the policy loss."""
    value_clip: float | None = None
    """If v: the critic may gain from moving at most v away from its old value; None: no limit."""
    value_weight: float = 0.5
    """Weight of the value loss."""
    entropy_weight: float = 0.01
    """Weight of the entropy bonus."""
    gradient_clip: float = 0.5
    """Largest norm of the actor's and of the critic's gradient (each on its own)."""

    adapt_defaults: ClassVar[dict[str, Any]] = {"minibatches": 1, "schedule": "constant"}
    """Fields whose defaults are others while it adapts in a single game copy."""

    def __post_init__(self) -> None:
        for name in ("learning_rate", "epochs", "minibatches", "clip", "gradient_clip"):
            if getattr(self, name) <= 0:
                raise UserError(f"{name} must be above 0, not {getattr(self, name)}")
        for name in ("discount", "trace"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"{name} must be between 0 and 1, not {getattr(self, name)}")
        if any(width <= 0 for width in (*self.hidden, *self.channels)):
            raise UserError("hidden and channels must be above 0")
