"""The options of HOP."""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from jaxtyping import Array, Int

from coplay.core.errors import UserError
from coplay.models.personas import PersonaSeed, assign_personas
from coplay.nn.layers import Activation
from coplay.search.mctx_backend import require_mctx
from coplay.search.simulator import SearchConfig


@dataclass(frozen=True)
class HOPConfig:
    """HOP: opponent modelling and planning."""

    parameters: Literal["separate", "shared"] = "separate"
    """Networks of the seats: their own for each, or one set for all."""
    opponents: Literal["separate", "shared"] = "separate"
    """Opponent models of a seat: one per co-player, or one for all of them."""
    network: Literal["centred", "mlp", "cnn"] = "centred"
    """Encoder of the board: planes shifted so that the own cell is in the middle, planes as they
    are, or 3x3 convolutions before the hidden layers."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the hidden layers of actor, critic and opponent models."""
    channels: tuple[int, ...] = (16, 32)
    """Channels of the convolutions (only with network=cnn)."""
    activation: Activation = "tanh"
    """Function between the layers of the networks."""
    warm_start: str = ""
    """A run of ppo whose actor and critic to begin with, e.g. runs/ppo or runs/ppo@seed=3; it must
    have the same network (coplay train ppo --network centred), hidden layers and activation."""

    planner: Literal["on", "off"] = "on"
    """off: act by the actor alone, without search."""
    simulations: int = 16
    """Simulations of each search (the paper: 200). A player of a run makes 64 unless told
    otherwise."""
    draws: int = 2
    """Goals are drawn so many times, with a search for each (the paper: 5). A player of a run draws
    16 times unless told otherwise."""
    depth: int = 8
    """The longest future a search looks at, in steps."""
    search: Literal["puct", "gumbel"] = "puct"
    """How a search picks actions to try: PUCT as in the paper, or Gumbel search."""
    backend: Literal["coplay", "mctx"] = "coplay"
    """Whose trees searches grow: our own, or those of mctx, slower (an extra: coplay[mctx]); both
    find the same."""
    resample: bool = False
    """Draw co-players' actions anew at each visit instead of once per edge; slower, without the
    optimism of planning against known coin flips."""
    share_tree: bool = False
    """With resample: one tree for all draws of goals, of simulations * draws simulations, each with
    goals of its own, instead of a tree per draw (the paper)."""
    exploration: float = 1.25
    """c of PUCT (the paper: 1 in Stag Hunt, 15 in Snowdrift, both with raw Q)."""
    raw_puct: bool = False
    """PUCT adds raw Q, as in the paper, instead of Q between 0 and 1 among siblings."""
    backup: Literal["mean", "best"] = "mean"
    """Q of an action from the mean of its simulations (the paper), or from the best future found;
    mean only with resample."""
    discount: float = 0.95
    """Discount of future rewards, in searches and returns. A player of a run searches with 0.9
    unless told otherwise."""
    beta: float = 10.0
    """Actions are taken with probability proportional to exp(beta * Q)."""
    normalise_q: bool = True
    """Q of the root between 0 and 1 before beta; off: raw Q (the paper, with beta 2)."""
    q_range: float = 0.05
    """With normalise_q: a range of Q below this counts as this, so that noise is not stretched."""
    evaluation: Literal["greedy", "boltzmann"] = "greedy"
    """How players of a run act when they learn no more: the best action, or as in training."""

    inter: bool = True
    """Carry beliefs about habits from episode to episode."""
    intra: bool = True
    """Update beliefs about goals within an episode by Bayes."""
    direct_om: bool = False
    """Model co-players without goals."""
    aimless: bool = True
    """Reckon with co-players that follow no goal and act by chance, beside the goals of the game
    (the paper does not)."""
    characters: float = 0.5
    """Self-play: share of the game copies in which seats take on characters: they value only a part
    of the rewards, or act by chance; 0: all are always themselves (the paper)."""
    characters_from: int = 0
    """How many episodes of each of these copies are played without characters first. With
    guides=False about 150 are needed: among strangers from the start, players that follow no guides
    settle for what needs nobody (in Stag Hunt for hares)."""
    school: int = 0
    """So many first episodes of every copy all seats have the same drive, by turns. Where chance
    hardly ever brings what a drive is after (a stag on a large board), it is learned there."""
    character_episodes: int = 16
    """How many episodes a seat keeps a character."""
    character_beta: float = 40.0
    """beta of characters: who wants one thing only goes for it straight."""
    guides: bool = True
    """Search also tries what the player would do with each of the drives it knows from its
    characters, and judges a position by the most hopeful of them. While learning, too: who is
    itself hopes for what characters have learned to get, and meets others that hope for it."""
    prior: Literal["dirichlet", "exponential"] = "dirichlet"
    """Beliefs about habits: counts over a concentration, or the paper's exponential form."""
    remember: float = 0.9
    """How much of what was seen before remains after each episode (the paper: exponential with
    0.995 in Stag Hunt and 0.98 in Snowdrift)."""
    concentration: float = 0.5
    """With prior=dirichlet: what each habit counts before anything is seen."""
    goal_change: float = 0.01
    """Share of the prior mixed into a belief at each step, because goals may change; 0: never."""

    replay: int = 32_768
    """Steps of game copies kept to learn from."""
    updates: int = 32
    """Gradient steps after each rollout."""
    batch: int = 256
    """Steps of each seat in each gradient step, drawn from the replay while it was in the game, as
    many of the one character as of the other."""
    learning_rate: float = 1e-3
    """Step size of Adam (the paper: 5e-4)."""
    schedule: Literal["linear", "constant"] = "linear"
    """Step size over a run: linear to 0, or constant (the paper)."""
    gradient_clip: float = 1.0
    """Largest norm of each network's gradient."""
    trace: float = 1.0
    """Lambda of the returns the critic learns: 1 the discounted return, below it more of its own
    values."""
    learn_policy: bool = True
    """Let actor and critic learn."""
    learn_opponents: bool = True
    """Let the opponent models learn."""

    run_defaults: ClassVar[dict[str, Any]] = {
        "steps": 100_000,
        "copies": 32,
        "rollout": 32,
        "checkpoint_every": 20_000,
        "episodes": 1000,
    }
    """Fields of a run whose defaults are others than for learners without search."""

    adapt_defaults: ClassVar[dict[str, Any]] = {
        "replay": 1024,
        "updates": 8,
        "batch": 128,
        "schedule": "constant",
    }
    """Fields whose defaults are others while it adapts in a single game copy."""

    play_defaults: ClassVar[dict[str, Any]] = {
        "simulations": 64,
        "draws": 16,
        "discount": 0.9,
    }
    """What a player of a run does otherwise where the run has the defaults: it thinks longer than
    when it learned, where a million of decisions count and not one. Each draw is also another luck
    of the others; among players that act by chance that counts for more than deeper trees. And it
    trusts far futures less, which trees that plan against known coin flips are apt to overrate."""

    taken_over: ClassVar[tuple[str, ...]] = ("warm_start",)
    """Fields that matter only when a run begins."""

    play_fields: ClassVar[tuple[str, ...]] = (
        *(
            "planner",
            "simulations",
            "draws",
            "depth",
            "search",
            "backend",
            "resample",
            "share_tree",
            "exploration",
            "backup",
        ),
        *("raw_puct", "discount", "beta", "normalise_q", "q_range", "evaluation", "guides"),
        *("inter", "intra", "prior", "remember", "concentration", "goal_change"),
    )
    """What may be set anew for a player of a run, as in runs/hop@planner=off@draws=5."""

    def __post_init__(self) -> None:
        positive = (
            "character_episodes",
            "simulations",
            "draws",
            "depth",
            "replay",
            "updates",
            "batch",
        )
        for name in (*positive, "learning_rate", "gradient_clip", "q_range", "concentration"):
            if getattr(self, name) <= 0:
                raise UserError(f"{name} must be above 0, not {getattr(self, name)}")
        for name in ("discount", "trace", "goal_change", "characters"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"{name} must be between 0 and 1, not {getattr(self, name)}")
        if not 0 <= self.remember < 1 + (self.prior == "dirichlet") * 1e-9:
            raise UserError(
                f"remember must be between 0 and 1 (below 1 if exponential), not {self.remember}"
            )
        if any(width <= 0 for width in (*self.hidden, *self.channels)):
            raise UserError("hidden and channels must be above 0")
        if self.resample and (self.search == "gumbel" or self.backup != "mean"):
            raise UserError("resample goes with search=puct and backup=mean only")
        if self.share_tree and not self.resample:
            raise UserError(
                "share_tree needs resample: elsewhere the steps of a tree are drawn once"
            )
        if self.resample and self.backend == "mctx":
            raise UserError("resample has trees of its own: leave out backend=mctx")
        if self.backend == "mctx":
            require_mctx()

    @property
    def search_config(self) -> SearchConfig:
        return SearchConfig(
            simulations=self.simulations * (self.draws if self.share_tree else 1),
            shared=self.share_tree,
            depth=self.depth,
            discount=self.discount,
            exploration=self.exploration,
            method=self.search,
            backend=self.backend,
            resample=self.resample,
            normalise=not self.raw_puct,
            backup=self.backup,
        )

    @property
    def trees(self) -> int:
        """How many trees a decision grows."""
        return 1 if self.share_tree else self.draws

    @property
    def expects_random(self) -> bool:
        """Whether acting by chance is a candidate beside the goals."""
        return self.aimless and not self.direct_om

    def who(
        self,
        persona_seed: PersonaSeed,
        episode: Int[Array, "*batch copy"],
        personas: int,
        seats: int,
    ) -> Int[Array, "*batch copy"]:
        """Characters by these settings, see `coplay.models.personas`."""
        return assign_personas(
            persona_seed,
            episode,
            share=self.characters,
            first=self.characters_from,
            school=self.school if self.characters else 0,
            lasting=self.character_episodes,
            personas=personas,
            seats=seats,
        )

    @property
    def apart(self) -> "HOPConfig":
        """The same with networks of their own for every seat."""
        return dataclasses.replace(self, parameters="separate")
