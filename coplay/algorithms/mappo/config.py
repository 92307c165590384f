"""The configurations of MAPPO and HyperMAPPO."""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from coplay.core.config import (
    Config,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    Share,
    ShareBelowOne,
    only_if,
)
from coplay.core.errors import UserError
from coplay.nn.config import NetworkConfig
from coplay.nn.layers import Activation
from coplay.nn.recurrent_cells import MemoryKind
from coplay.rl.optimisers import OptimiserConfig


@dataclass(frozen=True)
class MAPPONetworkConfig(NetworkConfig):
    """Actor and critic of MAPPO, before their memory."""

    kind: Literal["mlp", "cnn", "entities"] = "mlp"
    """Encoder of the view: flattened planes; 3x3 convolutions before the hidden layers; or lists of
    foods, units and the like as sets, in games that say which of their numbers are such lists."""
    activation: Activation = "relu"
    """Function between the layers."""
    layer_norm: bool = True
    """Normalise the inputs and the output of each layer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.hidden:
            raise UserError("hidden must hold at least one layer")


@dataclass(frozen=True)
class MemoryConfig(Config):
    """Memory of actor and critic."""

    kind: MemoryKind = "none"
    """None, a gated recurrent unit, or a long short-term memory. An episode begins with an empty
    one."""
    units: Annotated[PositiveInt, only_if(".kind", "gru", "lstm")] = 64
    """Width of the memory."""
    told: Annotated[bool, only_if(".kind", "gru", "lstm")] = False
    """Give the actor its last action and reward, too, and whether an episode begins: what a
    hypernetwork is given."""
    chunk_length: PositiveInt = 8
    """Steps through which gradients go back if anything has a memory (a hypernetwork always has):
    rollouts are cut into such chunks, which hold all seats together and begin with the memories as
    they were. Must divide --rollout."""


@dataclass(frozen=True)
class MAPPOConfig(Config):
    """Multi-agent PPO: actors that see their own views, a critic that may see all."""

    parameters: Literal["shared", "shared+id", "separate"] = "shared"
    """Parameters of the actors: one set for all seats; one for all with the seat's number as an
    additional input; one set each (and one critic each)."""
    critic_input: Literal["own", "global", "agent-specific"] = "agent-specific"
    """What the critic sees: the seat's own view (independent PPO); the global state, or all seats'
    views where a game has none; both. All but own come with the seat's number."""
    rewards: Literal["own", "team"] = "own"
    """What agents maximise: their own rewards, or the mean of those of all agents that learn."""
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    """Memory of actor and critic."""
    network: MAPPONetworkConfig = field(default_factory=MAPPONetworkConfig)
    """Actor and critic."""
    optimiser: OptimiserConfig = field(
        default_factory=lambda: OptimiserConfig(learning_rate=7e-4, max_grad_norm=10.0)
    )
    """Optimiser of each part (actor, critic), each with its own gradient norm."""
    critic_learning_rate: PositiveFloat | None = None
    """Step size of the critic; none: that of the optimiser."""
    value_norm: bool = True
    """The critic predicts values normalised by a running mean and variance of its targets."""
    discount: Share = 0.99
    """Discount of future rewards."""
    gae_lambda: Share = 0.95
    """Lambda of the generalised advantage estimation."""
    epochs: PositiveInt = 5
    """Passes over each rollout."""
    minibatches: PositiveInt = 1
    """Parts into which each pass is split, made of whole game copies, or of their chunks if there
    is a memory; must divide their number."""
    clip: PositiveFloat = 0.2
    """Limit of the probability ratio in the policy loss."""
    value_clip: PositiveFloat | None = 0.2
    """The critic may gain from moving at most so far away from its old value; none: no limit."""
    huber: PositiveFloat | None = 10.0
    """Errors of the critic above this count linearly and not by their square; none: never."""
    value_weight: NonNegativeFloat = 1.0
    """Weight of the value loss."""
    entropy_weight: NonNegativeFloat = 0.01
    """Weight of the entropy bonus."""
    perturbation: ShareBelowOne = 0.0
    """Share of actions that are drawn by chance while training, beside the entropy bonus. Learning
    counts with the same mixture, so that ratios begin at 1; evaluations play without it."""
    align_weight: NonNegativeFloat = 0.0
    """Weight of KL(old policy || new policy) in the loss, exact."""

    run_defaults: ClassVar[dict[str, Any]] = {"copies": 128, "checkpoint_every": 200_000}
    """Fields of a run whose defaults are others than elsewhere."""
    adapt_defaults: ClassVar[dict[str, Any]] = {"minibatches": 1, "optimiser.schedule": "constant"}
    """Fields whose defaults are others while it adapts in a single game copy."""


@dataclass(frozen=True)
class HypernetworkConfig(Config):
    """The network that makes increments of the actor's weights from a context."""

    context: Literal["local", "team", "slow"] = "local"
    """What the hypernetwork knows when agents act: the agent's own history in the episode; that of
    all agents, by attention; the same over all episodes, the context frozen during an episode."""
    use: Literal["weights", "input"] = "weights"
    """What becomes of the context: weights; or, as a control, an input of the actor."""
    layers: Annotated[Literal["last", "all"], only_if(".use", "weights")] = "last"
    """Generated layers: increments of the last layer and scales of the hidden ones, or increments
    of all of them. A memory's own weights are never generated."""
    increments: Literal["agent", "team"] = "agent"
    """Increments of each agent, or one for the team (not with context=local)."""
    ids: bool = True
    """Tell the hypernetwork (never the actor) the agents' numbers."""
    latent: PositiveInt = 8
    """Numbers of a context."""
    accumulation: Share = 0.0
    """rho: contexts are c = rho c_before + z within an episode; 1 adds up all increments so far."""
    width: PositiveInt = 32
    """Width of the encoder and of the attention."""
    attention: Annotated[Literal["plain", "transformer"], only_if(".context", "team", "slow")] = (
        "plain"
    )
    """How agents hear each other: attention alone, or a Transformer layer, which normalises before
    it and has a feed-forward part of twice the width after it."""
    attention_heads: Annotated[PositiveInt, only_if(".context", "team", "slow")] = 1
    """Heads of the attention; must divide the width."""
    memory: Literal["gru", "lstm", "window", "policies"] = "gru"
    """The hypernetwork's own memory: a gated recurrent unit, a long short-term memory, simply what
    was known in the last steps, or that fused: the nearer the policy of a past step to the last
    one, the more the step counts."""
    units: Annotated[PositiveInt, only_if(".memory", "gru", "lstm")] = 32
    """Width of that memory."""
    window: Annotated[PositiveInt, only_if(".memory", "window", "policies")] = 3
    """Steps that memory=window or policies holds, the present one among them."""
    temperature: Annotated[PositiveFloat, only_if(".memory", "policies")] = 1.0
    """Past steps count by exp(-KL(last policy || policy of that step) / temperature)."""
    learning_rate: PositiveFloat = 3e-4
    """Step size of the hypernetwork (with epsilon 1e-8)."""
    acting: Literal["current", "target"] = "current"
    """Which copy acts: the one that learns, or a slow one (an experiment). With target, learning
    does not begin with the policy that acted: the metric ratio_error says how far off it is."""
    acting_every: Annotated[PositiveInt, only_if(".acting", "target")] = 100
    """Gradient steps after which the copy that acts is brought up to date; it is the slow copy of
    anchor_weight, too."""
    generate_critic: bool = False
    """Also generate increments of the critic's last layer (an experiment)."""


@dataclass(frozen=True)
class HyperMAPPOConfig(MAPPOConfig):
    """MAPPO whose actor's weights are a base plus increments that a hypernetwork makes from what
    agents saw, did and got."""

    parameters: Literal["hyper", "shared", "shared+id", "separate"] = "hyper"  # type: ignore[assignment]
    """Parameters of the actors: a shared base plus generated increments; all others are MAPPO, the
    very same program."""
    hypernetwork: Annotated[HypernetworkConfig, only_if("parameters", "hyper")] = field(
        default_factory=HypernetworkConfig
    )
    """The hypernetwork (only with parameters=hyper)."""
    align_weight: NonNegativeFloat = 0.05
    """beta: weight of KL(old policy || new policy) in the loss, exact."""
    smooth_weight: Annotated[NonNegativeFloat, only_if("parameters", "hyper")] = 0.1
    """alpha: weight of the mean ‖θ_t - θ_{t-1}‖² within episodes, summed over the generated
    parameters."""
    anchor_weight: Annotated[NonNegativeFloat, only_if("parameters", "hyper")] = 0.0
    """Weight of the mean squared distance of the generated parameters from those that a slow copy
    of the hypernetwork generates; above 0 there is such a copy, which does not act unless
    hypernetwork.acting says so."""
    anchor_every: Annotated[PositiveInt, only_if("anchor_weight")] = 100
    """Gradient steps after which the slow copy is brought up to date, unless it acts."""
    warm_start: str = ""
    """A run of hyper-mappo, perhaps on a simpler task, whose hypernetwork to begin with, e.g.
    runs/hyper or runs/hyper@seed=3: all of its arrays that have the same shapes here. It may have
    been trained with another number of agents, also with one."""

    taken_over: ClassVar[tuple[str, ...]] = ("warm_start",)
    """Fields that matter only when a run begins."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.parameters != "hyper":
            return
        hyper = self.hypernetwork
        if hyper.increments == "team" and hyper.context == "local":
            raise UserError(
                "increments=team needs context=team or slow: with context=local no agent knows "
                "what the others know"
            )
        if hyper.context == "slow" and hyper.accumulation:
            raise UserError("context=slow is frozen during an episode: leave out accumulation")
        if hyper.width % hyper.attention_heads:
            raise UserError(
                f"hypernetwork.attention_heads ({hyper.attention_heads}) must divide "
                f"hypernetwork.width ({hyper.width})"
            )
        if hyper.memory == "policies" and hyper.window < 3:
            raise UserError("hypernetwork.memory=policies needs a window of at least 3 steps")
        if hyper.use == "input" and (self.anchor_weight or hyper.generate_critic):
            raise UserError("use=input generates nothing: leave out anchor_weight, generate_critic")
