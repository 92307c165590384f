"""The configuration of networks, a part of the configurations of learners."""

from dataclasses import dataclass
from typing import Annotated, Literal

from coplay.core.config import Config, PositiveInt, Widths, only_if
from coplay.nn.layers import Activation


@dataclass(frozen=True)
class NetworkConfig(Config):
    """Networks on ego views."""

    kind: Literal["mlp", "centred", "cnn", "entities"] = "mlp"
    """Encoder of the view: planes as they are; planes shifted so that the own cell is in the
    middle; 3x3 convolutions before the hidden layers; or lists of foods, units and the like as
    sets, whose order does not matter, in games that say which of their numbers are such lists."""
    hidden: Widths = (64, 64)
    """Widths of the hidden layers."""
    channels: Annotated[Widths, only_if(".kind", "cnn")] = (16, 32)
    """Channels of the convolutions (only with kind=cnn)."""
    entity_width: Annotated[PositiveInt, only_if(".kind", "entities")] = 32
    """Units of the two layers that every entity goes through (only with kind=entities)."""
    activation: Activation = "tanh"
    """Function between the layers."""

    @property
    def convolutions(self) -> tuple[int, ...]:
        """Channels of the convolutions that the network has: none unless kind is cnn."""
        return self.channels if self.kind == "cnn" else ()

    @property
    def set_width(self) -> int:
        """Units of the layers for entities: 0 unless kind is entities."""
        return self.entity_width if self.kind == "entities" else 0
