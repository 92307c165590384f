"""The configuration of networks, a part of the configurations of learners."""

from dataclasses import dataclass
from typing import Annotated, Literal

from coplay.core.config import Config, Widths, only_if
from coplay.nn.layers import Activation


@dataclass(frozen=True)
class NetworkConfig(Config):
    """Networks on ego views."""

    kind: Literal["mlp", "centred", "cnn"] = "mlp"
    """Encoder of the board: planes as they are, planes shifted so that the own cell is in the
    middle, or 3x3 convolutions before the hidden layers."""
    hidden: Widths = (64, 64)
    """Widths of the hidden layers."""
    channels: Annotated[Widths, only_if(".kind", "cnn")] = (16, 32)
    """Channels of the convolutions (only with kind=cnn)."""
    activation: Activation = "tanh"
    """Function between the layers."""

    @property
    def convolutions(self) -> tuple[int, ...]:
        """Channels of the convolutions that the network has: none unless kind is cnn."""
        return self.channels if self.kind == "cnn" else ()
