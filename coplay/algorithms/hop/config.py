"""The options of HOP."""

import dataclasses
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from coplay.core.config import Config, PositiveInt, Share, only_if
from coplay.core.errors import UserError
from coplay.models.belief import BeliefConfig
from coplay.models.personas import PersonaConfig
from coplay.nn.config import NetworkConfig
from coplay.nn.networks import ViewShape
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
class GoalSourceConfig(Config):
    """Where the goals come from that co-players may have."""

    source: Literal["auto", "declared", "prototypes", "none"] = "auto"
    """declared: the game lists them. prototypes: kinds of behaviour, found while it learns. none:
    co-players are modelled without goals. auto: declared if the game lists goals, else none."""
    prototypes: Annotated[PositiveInt, only_if(".source", "prototypes")] = 4
    """Number of prototypes."""


@dataclass(frozen=True)
class HOPSearchConfig(SearchConfig):
    """How HOP searches, and acts by what a search finds."""

    others: Literal["model", "worst"] = "model"
    """What is expected of the other side in the next step (without teams: of everybody else).
    model: what its models predict, so that the player exploits them. worst: whatever hurts most, so
    that the player is safe."""
    trust: Annotated[Share, only_if(".others", "worst")] = 0.0
    """With others=worst: probability that the other side acts by its models after all."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.others == "worst" and self.trees < 2:
            raise UserError(
                "search.others worst compares what the others may do, a tree for each: give at "
                "least 2 for search.draws, without search.share-tree"
            )


@dataclass(frozen=True)
class HOPConfig(Config):
    """HOP: opponent modelling and planning."""

    parameters: Literal["auto", "separate", "shared"] = "auto"
    """Networks of the seats: one set for each (the paper); or one set for all, which learns from
    what all of them played. auto: shared if all seats of the game are alike, else separate."""
    opponents: Literal["separate", "shared"] = "separate"
    """Opponent models of a seat: one per co-player, or one for all of them."""
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

    search: Annotated[HOPSearchConfig, only_if("planner", "search")] = field(
        default_factory=HOPSearchConfig
    )
    goals: GoalSourceConfig = field(default_factory=GoalSourceConfig)
    belief: Annotated[BeliefConfig, only_if("goals.source", "auto", "declared", "prototypes")] = (
        field(default_factory=BeliefConfig)
    )
    personas: PersonaConfig = field(default_factory=PersonaConfig)
    network: NetworkConfig = field(default_factory=lambda: NetworkConfig(kind="centred"))
    optimiser: OptimiserConfig = field(
        default_factory=lambda: OptimiserConfig(schedule="linear", max_grad_norm=1.0)
    )
    replay: ReplayConfig = field(default_factory=ReplayConfig)

    run_defaults: ClassVar[dict[str, Any]] = {
        "steps": 200_000,
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
        "search.scenarios": True,
    }
    """Fields whose defaults differ for a player of a run. It searches longer than in training,
    where there are a million decisions. Each draw also samples the others' actions anew; among
    players that act at random this counts for more than deeper trees. Own actions meet the same
    luck: else what others chance to do hides what an action brings. It discounts more, because
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

    def resolved(self, shape: ViewShape) -> "HOPConfig":
        """The same for a game with views of this shape. Its source of goals is no longer `auto`.
        Boards are centred only if they show the own cell."""
        source = self.goals.source
        if source == "auto":
            source = "declared" if shape.goals else "none"
        kind = self.network.kind
        return dataclasses.replace(
            self,
            goals=dataclasses.replace(self.goals, source=source),
            network=dataclasses.replace(
                self.network, kind="mlp" if kind == "centred" and not shape.seat_planes else kind
            ),
        )

    @property
    def has_goals(self) -> bool:
        """Whether co-players are modelled with goals; of a resolved configuration."""
        return self.goals.source != "none"

    @property
    def random_goal(self) -> bool:
        """Whether acting at random is a candidate beside the goals."""
        return self.belief.random_goal and self.has_goals

    @property
    def action_rates(self) -> bool:
        """Whether the rates are learned at which co-players without a goal take their actions."""
        return self.belief.action_rates and self.random_goal

    @property
    def separated(self) -> "HOPConfig":
        """The same with one set of networks for every seat."""
        return dataclasses.replace(self, parameters="separate")
