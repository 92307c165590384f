"""The options of HyperMAPPO."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from coplay.algorithms.mappo.config import MAPPOConfig
from coplay.core.errors import UserError


@dataclass(frozen=True)
class HyperMAPPOConfig(MAPPOConfig):
    """MAPPO whose actor's weights are a base plus increments that a hypernetwork makes from what
    agents saw, did and got."""

    parameters: Literal["hyper", "shared", "shared+id", "separate"] = "hyper"  # type: ignore[assignment]
    """Parameters of the actors: a shared base plus generated increments; all others are MAPPO, the
    very same program."""
    context: Literal["local", "team", "slow"] = "local"
    """What the hypernetwork knows when agents act: the agent's own history in the episode; that of
    all agents, by attention; the same over all episodes, the context frozen during an episode."""
    layers: Literal["last", "all"] = "last"
    """Generated layers: increments of the last layer and scales of the hidden ones, or increments
    of all of them. A memory's own weights are never generated."""
    increments: Literal["agent", "team"] = "agent"
    """Increments of each agent, or one for the team (not with context=local)."""
    use: Literal["weights", "input"] = "weights"
    """What becomes of the context: weights; or, as a control, an input of the actor."""
    ids: bool = True
    """Tell the hypernetwork (never the actor) the agents' numbers."""
    latent: int = 8
    """Numbers of a context."""
    accumulation: float = 0.0
    """rho: contexts are c = rho c_before + z within an episode; 1 adds up all increments so far."""
    context_width: int = 64
    """Width of the hypernetwork's encoder and attention."""
    context_units: int = 64
    """Width of the hypernetwork's memory."""
    context_memory: Literal["gru", "lstm"] = "gru"
    """The hypernetwork's memory."""
    hyper_rate: float = 3e-4
    """Step size of the hypernetwork's Adam (eps 1e-8)."""
    smooth_weight: float = 0.1
    """alpha: weight of the mean ‖θ_t - θ_{t-1}‖² within episodes, summed over the generated
    parameters."""
    align_weight: float = 0.05
    """beta: weight of KL(old policy || new policy) in the loss, exact."""
    anchor_weight: float = 0.0
    """Weight of the mean squared distance of the generated parameters from those that a slow copy
    of the hypernetwork generates; above 0 there is such a copy, which never acts."""
    anchor_every: int = 100
    """Gradient steps after which the slow copy is brought up to date."""
    generate_critic: bool = False
    """Also generate increments of the critic's last layer (an experiment)."""
    warm_start: str = ""
    """A run of hyper-mappo, perhaps on a simpler task, whose hypernetwork to begin with, e.g.
    runs/hyper or runs/hyper@seed=3: all of its arrays that have the same shapes here."""

    taken_over: ClassVar[tuple[str, ...]] = ("warm_start",)
    """Fields that matter only when a run begins."""

    run_defaults: ClassVar[dict[str, Any]] = MAPPOConfig.run_defaults

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("latent", "context_width", "context_units", "hyper_rate", "anchor_every"):
            if getattr(self, name) <= 0:
                raise UserError(f"{name} must be above 0, not {getattr(self, name)}")
        for name in ("smooth_weight", "anchor_weight"):
            if getattr(self, name) < 0:
                raise UserError(f"{name} must be at least 0, not {getattr(self, name)}")
        if not 0 <= self.accumulation <= 1:
            raise UserError(f"accumulation must be between 0 and 1, not {self.accumulation}")
        if self.parameters != "hyper":
            return
        if self.increments == "team" and self.context == "local":
            raise UserError(
                "increments=team needs context=team or slow: with context=local no agent knows "
                "what the others know"
            )
        if self.context == "slow" and self.accumulation:
            raise UserError("context=slow is frozen during an episode: leave out accumulation")
        if self.use == "input" and (self.anchor_weight or self.generate_critic):
            raise UserError("use=input generates nothing: leave out anchor_weight, generate_critic")
