"""The configuration of PLASTIC-Policy."""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from coplay.algorithms.ppo.config import PPOConfig
from coplay.core.config import PositiveInt, Range
from coplay.rl.optimisers import OptimiserConfig


@dataclass(frozen=True)
class PlasticConfig(PPOConfig):
    """PLASTIC-Policy: a best response to each known partner, and a belief about which it is."""

    parameters: Literal["shared"] = "shared"
    """Parameters of the seats: one library for all of them."""
    library: PositiveInt = 8
    """Partners of the pack that it knows: so many at equal distances in the pack's order. Each
    needs its own share of the game copies."""
    eta: Annotated[float, Range(above=0, below=1)] = 0.2
    """How far the belief in a partner falls when it did what was held impossible."""
    minibatches: PositiveInt = 4
    """Parts into which each pass is split, made of whole game copies of each entry of the library;
    minibatches times library must divide the number of copies."""
    model_optimiser: OptimiserConfig = field(default_factory=lambda: OptimiserConfig(epsilon=1e-8))
    """Optimiser of the models of partners."""

    run_defaults: ClassVar[dict[str, Any]] = {"copies": 512}
    """Fields of a run whose defaults are others than elsewhere."""
