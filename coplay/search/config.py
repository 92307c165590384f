"""The options of a search, whoever plans by it."""

from dataclasses import dataclass
from typing import Annotated, Literal

from coplay.core.config import Config, NonNegativeFloat, PositiveInt, Share, only_if
from coplay.core.errors import UserError
from coplay.search.mctx_backend import require_mctx


@dataclass(frozen=True)
class SearchConfig(Config):
    """How to search, and how to act by what a search finds.

    A learner that has this part says by its field `planner` whether it searches.
    """

    kind: Annotated[Literal["puct", "gumbel"], only_if("planner", "search")] = "puct"
    """How a search selects actions: PUCT as in the paper, or Gumbel search."""
    simulations: Annotated[PositiveInt, only_if("planner", "search")] = 16
    """Simulations of each search (the paper: 200)."""
    draws: PositiveInt = 2
    """Samples of what the co-players are after, with a search for each (the paper: 5)."""
    depth: Annotated[PositiveInt, only_if("planner", "search")] = 8
    """The longest simulated future, in steps."""
    discount: Share = 0.95
    """Discount of future rewards in searches."""
    exploration: Annotated[NonNegativeFloat, only_if(".kind", "puct")] = 1.25
    """c of PUCT (the paper: 1 in Stag Hunt, 15 in Snowdrift, both with raw Q)."""
    backend: Literal["coplay", "mctx"] = "coplay"
    """Whose trees grow: our own, or those of mctx, which are slower (an extra: mctx). Both
    find the same."""
    resample: bool = False
    """Sample co-players' actions at each visit instead of once per edge. It is slower, and it does
    not plan against known coin flips, which makes values optimistic."""
    scenarios: Annotated[bool, only_if(".resample", False)] = False
    """Sample co-players' actions by numbers that depend on the tree and the depth alone, as in
    DESPOT: all own actions meet the same luck, so fewer draws tell them apart. Off: each edge has
    luck of its own (the paper)."""
    share_tree: bool = False
    """With resample: one tree of simulations * draws simulations, each with its own sample of what
    the co-players are after, instead of one tree per sample (the paper)."""
    raw_q: Annotated[bool, only_if(".kind", "puct")] = False
    """PUCT adds raw Q, as in the paper, instead of Q scaled to 0 … 1 among siblings."""
    backup: Literal["mean", "best"] = "mean"
    """Q of an action: the mean of its simulations (the paper), or the best future found."""
    beta: NonNegativeFloat = 10.0
    """Actions are taken with probability proportional to exp(beta * Q)."""
    normalise_q: bool = True
    """Scale Q of the root to 0 … 1 among legal actions before beta; off: raw Q (the paper, with
    beta 2)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.resample and (self.kind == "gumbel" or self.backup != "mean"):
            raise UserError("resample goes with kind=puct and backup=mean only")
        if self.share_tree and not self.resample:
            raise UserError(
                "share_tree needs resample: without it, a tree samples its steps only once"
            )
        if self.resample and self.backend == "mctx":
            raise UserError("resample has trees of its own: leave out backend=mctx")
        if self.backend == "mctx":
            require_mctx()

    @property
    def trees(self) -> int:
        """How many trees a decision grows."""
        return 1 if self.share_tree else self.draws

    @property
    def simulations_per_tree(self) -> int:
        """How many simulations each of these trees makes."""
        return self.simulations * self.draws if self.share_tree else self.simulations
