"""The options of HOP+."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import tyro

from coplay.algorithms.ppo.config import GRUConfig, PPOConfig
from coplay.core.config import (
    Config,
    NonNegativeFloat,
    NonNegativeInt,
    OnlyIf,
    PositiveFloat,
    PositiveInt,
    Share,
    ShareBelowOne,
    only_if,
)
from coplay.core.errors import UserError
from coplay.models.goal_codes import GoalModelConfig
from coplay.models.world_model import WorldModelConfig
from coplay.nn.config import NetworkConfig
from coplay.nn.networks import ViewShape
from coplay.rl.optimisers import OptimiserConfig
from coplay.search.config import SearchConfig

PLANS = only_if("planner", "one-step", "search")


@dataclass(frozen=True)
class GoalsConfig(GoalModelConfig):
    """Goal codes of co-players, and the opponent model that is given them."""

    use: Literal["inferred", "zero", "none"] = "inferred"
    """What the policy and the opponent model see of co-players: their inferred goal codes; codes
    that are always 0; nothing (the policy has no such inputs, the opponent model gets 0)."""
    from_: Annotated[str, tyro.conf.arg(name="from")] = ""
    """Folder of pretrained goals (coplay pretrain goals) to start from; their sizes and their loss
    then count."""

    inherited_only_if: ClassVar[Mapping[str, OnlyIf]] = {
        one.name: only_if(".from", "")
        for one in dataclasses.fields(GoalModelConfig)
        if one.name != "dim"
    }

    @property
    def model(self) -> GoalModelConfig:
        """The options of the goal model alone."""
        names = [one.name for one in dataclasses.fields(GoalModelConfig)]
        return GoalModelConfig(**{name: getattr(self, name) for name in names})


@dataclass(frozen=True)
class HopPlusBeliefConfig(Config):
    """What is kept of co-players from earlier episodes, if goals are prototypes; only in games that
    show players everything."""

    inter: bool = True
    """Carry beliefs about co-players from episode to episode. While learning, imagined strangers
    stay for a rollout."""
    keep: Annotated[Share, only_if(".inter")] = 0.9
    """Share of earlier episodes that remains after each episode."""
    corrected: bool = True
    """Correct the opponent model of each co-player by the actions that it takes more or less often
    than predicted, and tell actor and critic."""


@dataclass(frozen=True)
class RecordingsConfig(Config):
    """Recordings of a training population. Goals and opponent model learn from them before the
    run's first step."""

    samples: NonNegativeInt = 107_010
    """Recorded steps of players in the game; 0: none, goals are learned in self-play alone."""
    partners: Annotated[NonNegativeInt, only_if(".samples")] = 32
    """Partners made of rules with random parameters. They are recorded as often as the game's
    scripted players together."""
    habits: Annotated[NonNegativeInt, only_if(".samples")] = 14
    """Players without a goal, who take some actions often and others hardly ever, each its own.
    They are recorded half as often as the game's scripted players together."""
    epochs: Annotated[PositiveInt, only_if(".samples")] = 8
    """Passes over the recordings."""


@dataclass(frozen=True)
class LearnedWorldModelConfig(WorldModelConfig):
    """The world model."""

    from_: Annotated[str, tyro.conf.arg(name="from")] = ""
    """Folder of a pretrained world model (coplay pretrain world-model) to start from; its sizes
    then count."""

    inherited_only_if: ClassVar[Mapping[str, OnlyIf]] = {
        one.name: only_if(".from", "") for one in dataclasses.fields(WorldModelConfig)
    }


@dataclass(frozen=True)
class ImaginationConfig(Config):
    """Imagined steps that PPO learns from beside the real ones."""

    share: ShareBelowOne = 0.0
    """Share of imagined steps with the real co-players in each PPO update; 0: none."""
    strangers: ShareBelowOne = 0.5
    """Share of steps imagined among strangers in each PPO update: co-players whose goal is one of
    the learned prototypes, sampled for each game; 0: none."""
    over: Annotated[Literal["model", "game"], only_if(".active")] = "game"
    """What imagined games step: the world model, or the game itself."""
    after: Annotated[NonNegativeInt, only_if(".active")] = 0
    """Updates before imagined steps count. A world model that begins untrained needs some 20."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.share + self.strangers < 1:
            raise UserError("imagination.share and imagination.strangers must be below 1 together")

    @property
    def active(self) -> bool:
        """Whether there are imagined steps."""
        return self.share > 0 or self.strangers > 0


@dataclass(frozen=True)
class HistoryConfig(Config):
    """The encoder of the own history, by which HOP+ infers goals where it uses its own view
    alone."""

    units: PositiveInt = 64
    """Width of its memory."""
    epochs: PositiveInt = 4
    """Passes of encoder and decoder over each rollout."""
    view_weight: NonNegativeFloat = 1.0
    """Weight of the error of others' views, as reconstructed from their codes."""
    code_weight: NonNegativeFloat = 1.0
    """Weight of the distance of a code from the one that the co-player's own past tells."""


@dataclass(frozen=True)
class ParticlesConfig(Config):
    """What a planner believes of what its seat does not see, where it uses its own view alone:
    full states that agree with what it saw."""

    number: PositiveInt = 128
    """States imagined for each game copy. A search starts from search.draws of them."""
    goals: Literal["particle", "history"] = "particle"
    """Where a search takes co-players' goals from. particle: in each imagined state from what they
    saw and did there, by prototypes. history: the codes that the own history tells."""


@dataclass(frozen=True)
class ModelTrainingConfig(Config):
    """How goals, opponent model and world model learn from their buffers."""

    chunk_length: PositiveInt = 16
    """Steps of one player, in their order, that goals and opponent model learn from at a time; must
    divide the rollout."""
    buffer_chunks: PositiveInt = 2048
    """Chunks kept for goals and opponent model. Steps of players that left are in no loss."""
    buffer_transitions: Annotated[PositiveInt, only_if("uses_world_model")] = 32_768
    """Own steps in the game kept for the world model."""
    updates: NonNegativeInt = 8
    """Gradient steps of the models after a rollout."""
    every: PositiveInt = 1
    """Models learn after every so many rollouts."""
    batch_chunks: PositiveInt = 128
    """Chunks in a gradient step of goals and opponent model."""
    batch_transitions: Annotated[PositiveInt, only_if("uses_world_model")] = 1024
    """Own steps in a gradient step of the world model."""
    learning_rate: PositiveFloat = 1e-3
    """Step size of Adam."""
    learn_opponents: bool = False
    """Let goals and opponent model go on learning in self-play. What they knew of other kinds of
    players fades then."""
    learn_world: Annotated[bool, only_if("uses_world_model")] = True
    """Let the world model learn."""


@dataclass(frozen=True)
class HopPlusConfig(PPOConfig):
    """HOP+: goals inferred as codes, an opponent model, a world model, PPO, imagination."""

    parameters: Literal["separate", "shared", "shared+id"] = "shared"
    """Actors and critics of the seats: one set each; one for all; one for all with the seat's
    number as an additional input. Models are always one for all."""
    views: Literal["auto", "own"] = "auto"
    """What it may use: everything where the game shows everything; or its own view and history
    alone, as in games that do not."""
    planner: Literal["none", "one-step", "search"] = "none"
    """How it acts: by its actor; by looking one step ahead; by search."""
    plan_over: Annotated[Literal["game", "model"], PLANS] = "game"
    """What a planner steps: the game itself, or the world model."""
    plan_while_learning: Annotated[bool, PLANS] = False
    """Plan also while learning (PPO then corrects for the policy that acted); off: only afterwards,
    in evaluation and play."""
    keep_memory: bool = False
    """Keep the whole memory of co-players from one episode to the next; while learning, also that
    of imagined strangers, who then stay for a rollout. Instead of belief.inter."""
    learn_policy: bool = True
    """Let actor and critic learn."""

    discount: Share = 0.95
    """Discount of future rewards."""

    network: NetworkConfig = field(default_factory=lambda: NetworkConfig(kind="centred"))
    goals: GoalsConfig = field(default_factory=GoalsConfig)
    recordings: Annotated[RecordingsConfig, only_if("goals.from_", "")] = field(
        default_factory=RecordingsConfig
    )
    belief: Annotated[HopPlusBeliefConfig, only_if("goals.inference", "prototypes")] = field(
        default_factory=HopPlusBeliefConfig
    )
    world_model: Annotated[LearnedWorldModelConfig, only_if("uses_world_model")] = field(
        default_factory=LearnedWorldModelConfig
    )
    imagination: ImaginationConfig = field(default_factory=ImaginationConfig)
    search: Annotated[SearchConfig, PLANS] = field(
        default_factory=lambda: SearchConfig(discount=0.97)
    )
    particles: Annotated[ParticlesConfig, PLANS] = field(default_factory=ParticlesConfig)
    models: ModelTrainingConfig = field(default_factory=ModelTrainingConfig)
    history: HistoryConfig = field(default_factory=HistoryConfig)

    adapt_defaults: ClassVar[dict[str, Any]] = PPOConfig.adapt_defaults | {
        "models.chunk_length": 8,
        "models.buffer_chunks": 96,
        "models.buffer_transitions": 1024,
        "models.batch_chunks": 16,
        "models.batch_transitions": 256,
    }
    """Fields whose defaults differ while it adapts in a single game copy."""

    pretrained: ClassVar[tuple[str, ...]] = ("goals.from", "world_model.from")
    """Fields that name folders of pretrained models; a run keeps copies of them."""

    records_partners: ClassVar[bool] = True
    """Partners of a pack are recorded; they do not sit in the run."""
    play_fields: ClassVar[tuple[str, ...]] = (
        *("planner", "plan_over", "search", "particles", "keep_memory", "belief"),
    )
    """Fields that may be set for a player of a run, as in runs/hopp@planner=search@search.draws=4.
    A part stands for all of its fields."""

    run_defaults: ClassVar[dict[str, Any]] = {"steps": 260_000, "episodes": 2000}
    """Fields of a run whose defaults differ from those of learners without models."""

    play_defaults: ClassVar[dict[str, Any]] = {
        "planner": "search",
        "search.simulations": 64,
        "search.draws": 16,
        "search.scenarios": True,
    }
    """Fields whose defaults differ for a player of a run."""

    audit_defaults: ClassVar[dict[str, Any]] = {
        "recordings.samples": 0,
        "models.learn_opponents": True,
    }
    """Fields whose defaults differ in the wiring audit, so that everything learns that can."""

    learn_opponents_field: ClassVar[str] = "models.learn_opponents"
    """The field that lets goals and opponent model learn."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.imagination.strangers > 0 and self.goals.inference != "prototypes":
            raise UserError(
                "strangers are made of prototypes: give --imagination.strangers 0 with "
                f"--goals.inference {self.goals.inference}"
            )
        if self.search.share_tree:
            raise UserError("share_tree is for hop: hop-plus grows one tree per sample of codes")

    def resolved(self, shape: ViewShape) -> "HopPlusConfig":
        """The same for a game with views of this shape: boards are centred only if they show the
        own cell, and are no window around it already."""
        if self.network.kind != "centred" or (shape.seat_planes and shape.full_view):
            return self
        return dataclasses.replace(self, network=dataclasses.replace(self.network, kind="mlp"))

    @property
    def inter(self) -> bool:
        """Whether beliefs are carried from episode to episode."""
        prototypes = self.goals.inference == "prototypes" and self.goals.use == "inferred"
        return prototypes and self.belief.inter and not self.keep_memory

    @property
    def corrects(self) -> bool:
        """Whether the opponent model is corrected by the actions that co-players take."""
        prototypes = self.goals.inference == "prototypes" and self.goals.use == "inferred"
        return prototypes and self.belief.corrected

    def known_numbers(self, actions: int) -> int:
        """How many numbers actor and critic see of each co-player."""
        if self.goals.use == "none":
            return 0
        return self.goals.dim + actions * self.corrects

    @property
    def memory(self) -> GRUConfig:
        """The memory of the encoder of the own history."""
        return GRUConfig(self.history.units, self.keep_memory)

    @property
    def model_epochs(self) -> int:
        """Passes of encoder and decoder over each rollout."""
        return self.history.epochs

    @property
    def model_optimiser(self) -> OptimiserConfig:
        """The optimiser of encoder and decoder."""
        return OptimiserConfig(learning_rate=self.models.learning_rate, epsilon=1e-8)

    @property
    def uses_world_model(self) -> bool:
        """Whether there is a world model."""
        planned = self.planner != "none" and self.plan_over == "model"
        imagined = self.imagination.active and self.imagination.over == "model"
        return imagined or planned or bool(self.world_model.from_)

    def search_config(self, actions: int) -> SearchConfig:
        """How it searches. Looking one step ahead is a search that tries every action once."""
        if self.planner != "one-step":
            return self.search
        return dataclasses.replace(self.search, simulations=actions, depth=1, kind="puct")
