"""The options of HOP."""

import dataclasses
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from coplay.core.config import Config, PositiveInt, Share, only_if
from coplay.models.belief import BeliefConfig
from coplay.models.personas import PersonaConfig
from coplay.nn.config import NetworkConfig
from coplay.rl.optimisers import OptimiserConfig
from coplay.search.config import SearchConfig


@dataclass(frozen=True)
class ReplayConfig(Config):
    """The replay, and how often HOP learns from it."""

    capacity: PositiveInt = 32_768
    """Steps of game copies kept to learn from."""
    updates: PositiveInt = 32
    """Gradient steps after each rollout."""
    batch: PositiveInt = 256
    """Steps of each seat in each gradient step, sampled from the steps in which it was in the game,
    as many of each persona."""


@dataclass(frozen=True)
class HOPConfig(Config):
    """HOP: opponent modelling and planning."""

    parameters: Literal["separate", "shared"] = "separate"
    """Networks of the seats: one set for each, or one set for all."""
    opponents: Literal["separate", "shared"] = "separate"
    """Opponent models of a seat: one per co-player, or one for all of them."""
    direct_om: bool = False
    """Model co-players without goals."""
    warm_start: str = ""
    """A run of ppo whose actor and critic to start from, e.g. runs/ppo or runs/ppo@seed=3. Its
    networks must be the same (coplay train ppo --network.kind centred)."""
    planner: Literal["search", "none"] = "search"
    """none: act by the actor alone, without search."""
    evaluation: Literal["greedy", "boltzmann"] = "greedy"
    """How players of a run act when they no longer learn: the best action, or as in training."""
    discount: Share = 0.95
    """Discount of the returns that the critic learns."""
    gae_lambda: Share = 1.0
    """Lambda of these returns: 1 the discounted return, below it more of the critic's own
    values."""
    learn_policy: bool = True
    """Let actor and critic learn."""
    learn_opponents: bool = True
    """Let the opponent models learn."""

    search: Annotated[SearchConfig, only_if("planner", "search")] = field(
        default_factory=SearchConfig
    )
    belief: Annotated[BeliefConfig, only_if("direct_om", False)] = field(
        default_factory=BeliefConfig
    )
    personas: PersonaConfig = field(default_factory=PersonaConfig)
    network: NetworkConfig = field(default_factory=lambda: NetworkConfig(kind="centred"))
    optimiser: OptimiserConfig = field(
        default_factory=lambda: OptimiserConfig(schedule="linear", max_grad_norm=1.0)
    )
    replay: ReplayConfig = field(default_factory=ReplayConfig)

    run_defaults: ClassVar[dict[str, Any]] = {
        "steps": 100_000,
        "copies": 32,
        "rollout": 32,
        "checkpoint_every": 20_000,
        "episodes": 1000,
    }
    """Fields of a run whose defaults differ from those of learners without search."""

    adapt_defaults: ClassVar[dict[str, Any]] = {
        "replay.capacity": 1024,
        "replay.updates": 8,
        "replay.batch": 128,
        "optimiser.schedule": "constant",
    }
    """Fields whose defaults differ while it adapts in a single game copy."""

    play_defaults: ClassVar[dict[str, Any]] = {
        "search.simulations": 64,
        "search.draws": 16,
        "search.discount": 0.9,
    }
    """Fields whose defaults differ for a player of a run. It searches longer than in training,
    where there are a million decisions. Each draw also samples the others' actions anew; among
    players that act at random this counts for more than deeper trees. It discounts more, because
    trees that plan against known coin flips overrate the far future."""

    taken_over: ClassVar[tuple[str, ...]] = ("warm_start",)
    """Fields that matter only when a run begins."""

    play_fields: ClassVar[tuple[str, ...]] = (
        *("planner", "search", "evaluation", "personas.guide_search"),
        *("belief.inter", "belief.intra", "belief.prior", "belief.keep"),
        *("belief.concentration", "belief.goal_change"),
    )
    """Fields that may be set for a player of a run, as in runs/hop@planner=none@search.draws=5. A
    part stands for all of its fields."""

    learn_opponents_field: ClassVar[str] = "learn_opponents"
    """The field that lets the opponent models learn."""

    @property
    def random_goal(self) -> bool:
        """Whether acting at random is a candidate beside the goals."""
        return self.belief.random_goal and not self.direct_om

    @property
    def separated(self) -> "HOPConfig":
        """The same with one set of networks for every seat."""
        return dataclasses.replace(self, parameters="separate")
