"""The options of HOP+."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from coplay.algorithms.ppo.config import PPOConfig
from coplay.core.errors import UserError
from coplay.models.goal_codes import GoalConfig
from coplay.models.world_model import WorldConfig
from coplay.search.simulator import SearchConfig


@dataclass(frozen=True)
class HopPlusConfig(PPOConfig):
    """HOP+: goals inferred as codes, a model of others, a model of the world, PPO, imagination."""

    parameters: Literal["separate", "shared", "shared+id"] = "shared"
    """Actors and critics of the seats: one set each; one for all; one for all with the seat's
    number as an additional input. Models are always one for all."""
    goal: Literal["inferred", "zero", "none"] = "inferred"
    """What the policy and the opponent model are told of co-players: their inferred goal codes;
    codes that are always 0; nothing (the policy has no such inputs, the opponent model gets 0)."""
    goals: str = ""
    """Folder of pretrained goals (coplay pretrain goals) to begin with; their sizes and their loss
    count then."""
    world_model: str = ""
    """Folder of a pretrained world model to begin with; its sizes count then."""

    goal_loss: Literal["action", "reconstruction"] = "action"
    """What goal codes must be good for: foreseeing actions, or drawing the board again."""
    goal_dim: int = 16
    """Numbers of a goal code."""
    inference: Literal["prototypes", "gru"] = "prototypes"
    """How codes are inferred: by how well each of some learned codes has foreseen the past, or by a
    recurrent network."""
    prototypes: int = 8
    """How many codes are learned for that."""
    goal_units: int = 64
    """Width of the memory of the recurrent network."""
    goal_width: int = 64
    """Width of the hidden layers of the goal networks."""
    opponent_hidden: tuple[int, ...] = (256, 128)
    """Widths of the hidden layers of the opponent model, rounded up to multiples of 8."""
    kl_weight: float = 1e-3
    """Weight of the KL of a board's code to N(0, 1)."""
    match_weight: float = 1e-4
    """Weight of the KL of the inferred code to the code of the selected board."""
    ahead: int = 5
    """How many of the next boards the selector chooses the goal from."""
    selector: Literal["optimistic", "conservative"] = "optimistic"
    """Which of them is the goal: the one of the highest or of the lowest value for the others."""
    world_channels: int = 48
    """Numbers the world model keeps for every cell."""

    imagination: float = 0.0
    """Share of imagined steps in each PPO update; 0: none."""
    strangers: float = 0.0
    """Share of steps imagined among strangers in each PPO update: co-players that are after what
    one of the learned prototypes is after, drawn anew for each game; 0: none."""
    imagine_over: Literal["model", "game"] = "model"
    """What imagined games step: the world model, or the game itself."""
    imagine_after: int = 20
    """Updates before imagined steps count: a world model that has learned nothing dreams nonsense.
    Give 0 with a pretrained one."""
    planner: Literal["none", "one-step", "search"] = "none"
    """How it acts: by its actor; by looking one step ahead; by search."""
    plan_over: Literal["game", "model"] = "game"
    """What a planner steps: the game itself, or the world model."""
    plan_training: bool = False
    """Plan also while learning (PPO then corrects for the policy that acted); off: only afterwards,
    in evaluation and play."""
    simulations: int = 16
    """Simulations of each search."""
    draws: int = 2
    """Goal codes are drawn so many times, with a search for each."""
    depth: int = 8
    """The longest future a search looks at, in steps."""
    plan_discount: float = 0.97
    """Discount of future rewards in a planner's search; that of learning is discount."""
    search: Literal["puct", "gumbel"] = "puct"
    """How a search picks actions to try."""
    exploration: float = 1.25
    """c of PUCT."""
    beta: float = 10.0
    """A planner's actions are taken with probability proportional to exp(beta * Q), Q between 0 and
    1 among the legal actions; greedily once it learns no more."""
    q_range: float = 0.05
    """A range of Q below this counts as this, so that noise is not stretched."""
    keep_memory: bool = False
    """Keep the memory of co-players from one episode to the next; while learning, also that of
    imagined strangers, who then stay for a rollout."""

    line: int = 16
    """Steps of one player that goals and opponent model learn from at a time, in their order; must
    divide the rollout."""
    buffer_lines: int = 2048
    """Lines kept for goals and opponent model. Steps of players that left are in no line's loss."""
    buffer_steps: int = 32_768
    """Own steps in the game kept for the world model."""
    model_updates: int = 8
    """Gradient steps of the models after a rollout."""
    model_every: int = 1
    """Models learn after every so many rollouts."""
    model_lines: int = 128
    """Lines in a gradient step of goals and opponent model."""
    model_steps: int = 1024
    """Steps in a gradient step of the world model."""
    model_rate: float = 1e-3
    """Step size of Adam for the models."""
    learn_opponents: bool = True
    """Let goals and opponent model learn."""
    learn_world: bool = True
    """Let the world model learn."""
    learn_policy: bool = True
    """Let actor and critic learn."""

    adapt_defaults: ClassVar[dict[str, Any]] = {
        "minibatches": 1,
        "optimiser.schedule": "constant",
        "line": 8,
        "buffer_lines": 96,
        "buffer_steps": 1024,
        "model_lines": 16,
        "model_steps": 256,
    }
    """Fields whose defaults are others while it adapts in a single game copy."""

    pretrained: ClassVar[tuple[str, ...]] = ("goals", "world_model")
    """Fields that name folders of pretrained models; a run keeps copies of them."""

    play_fields: ClassVar[tuple[str, ...]] = (
        *("planner", "plan_over", "simulations", "draws", "depth", "plan_discount", "search"),
        *("exploration", "beta", "q_range", "keep_memory"),
    )
    """What may be set anew for a player of a run, as in runs/hopp@planner=search@draws=4."""

    play_defaults: ClassVar[dict[str, Any]] = {"simulations": 64, "draws": 16}
    """Fields whose defaults are others for a player of a run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive = (
            "simulations",
            "draws",
            "depth",
            "line",
            "buffer_lines",
            "buffer_steps",
            "q_range",
        )
        for name in (*positive, "model_every", "model_lines", "model_steps", "model_rate"):
            if getattr(self, name) <= 0:
                raise UserError(f"{name} must be above 0, not {getattr(self, name)}")
        for name in ("imagination", "strangers"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"{name} must be from 0 to below 1, not {getattr(self, name)}")
        if not self.imagination + self.strangers < 1:
            raise UserError("imagination and strangers must be below 1 together")
        if self.strangers > 0 and self.inference != "prototypes":
            raise UserError("strangers are made of prototypes: leave out --inference gru")
        if not 0 <= self.plan_discount <= 1:
            raise UserError(f"plan_discount must be between 0 and 1, not {self.plan_discount}")
        for name in ("model_updates", "imagine_after"):
            if getattr(self, name) < 0:
                raise UserError(f"{name} must not be negative, not {getattr(self, name)}")

    @property
    def has_world(self) -> bool:
        """Whether there is a world model."""
        planned = self.planner != "none" and self.plan_over == "model"
        imagined = self.imagines and self.imagine_over == "model"
        return imagined or planned or bool(self.world_model)

    @property
    def imagines(self) -> bool:
        """Whether there are imagined steps."""
        return self.imagination > 0 or self.strangers > 0

    @property
    def goal_config(self) -> GoalConfig:
        return GoalConfig(
            loss=self.goal_loss,
            goal_dim=self.goal_dim,
            inference=self.inference,
            prototypes=self.prototypes,
            units=self.goal_units,
            width=self.goal_width,
            opponent_hidden=self.opponent_hidden,
            kl_weight=self.kl_weight,
            match_weight=self.match_weight,
            ahead=self.ahead,
            selector=self.selector,
            discount=self.discount,
        )

    @property
    def world_config(self) -> WorldConfig:
        return WorldConfig(channels=self.world_channels)

    def search_config(self, actions: int) -> SearchConfig:
        """One step ahead is a search that tries every action once."""
        ahead = self.planner == "one-step"
        return SearchConfig(
            simulations=actions if ahead else self.simulations,
            depth=1 if ahead else self.depth,
            discount=self.plan_discount,
            exploration=self.exploration,
            method="puct" if ahead else self.search,
        )
