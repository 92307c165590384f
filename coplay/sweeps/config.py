"""What a sweep is, apart from the runs: how settings are chosen, where they run, what is best."""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from coplay.core.config import Config, NonNegativeFloat, NonNegativeInt, PositiveInt, Range
from coplay.core.errors import UserError

ADAPTED = "adapted"
"""The objective that is the normalised score of an adaptation."""


@dataclass(frozen=True)
class SweepConfig(Config):
    """How a sweep chooses settings, where it runs them, and what it calls the best."""

    sampler: Literal["auto", "grid", "random", "optuna"] = "auto"
    """How settings are chosen: all combinations of lists (grid), at random, or by Optuna's TPE,
    which learns from the trials before. auto: a grid if every field has a list, else random."""
    trials: NonNegativeInt = 0
    """Settings to run; 0: the whole grid, or 20 of other samplers."""
    objective: str = "team_mean"
    """What makes a setting good, of the final evaluation: team_mean, a seat's reward (seat_0), or a
    score of the game such as won; or adapted, the normalised score of an adaptation (--against)."""
    against: str = ""
    """With --objective adapted: the co-players that every run's players adapt to, one per other
    seat, as in nh,nh,nh."""
    minimise: bool = False
    """The smallest objective is the best."""
    prune: bool = False
    """Stop a trial whose evaluations are worse than the median of the others at the same step
    (Optuna's MedianPruner). Without --evaluate-every ten evaluations are made."""
    confirm: int = -1
    """Fresh seeds with which the best setting is run once more; that figure is the result. -1: as
    many as --seeds; 0: none."""
    minutes: NonNegativeFloat = 0.0
    """No trial begins after so many minutes; 0: no limit."""
    on: str = "local"
    """Where trials run: local:K (K worker processes on this machine; local: as many as cores),
    ray (the Ray cluster that is there, or one on this machine), or ray:ADDRESS."""
    cpus: PositiveInt = 1
    """Cores of each trial; local: its threads, with K = cores / cpus."""
    gpus: NonNegativeFloat = 0.0
    """GPUs of each trial on Ray; parts such as 0.25 share one."""
    files: Literal["auto", "shared", "returned"] = "auto"
    """On Ray, how files of a trial come to --out: the folder is on a disk that all nodes share, or
    they are returned through Ray. auto: asks every node whether it sees the folder."""
    pictures: bool = True
    """Every trial leaves its page, a replay, a learning curve and a film, as a run does."""
    audit: bool = True
    """First ask whether every varied field changes the program; fields that do not are refused."""
    measure: bool = True
    """First time a short run and say how long the sweep will take."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.confirm < -1:
            raise UserError(f"confirm must be at least -1, not {self.confirm}")
        if (self.objective == ADAPTED) != bool(self.against):
            raise UserError("--objective adapted and --against nh,nh,nh belong together: give both")
        Place.of(self.on)


@dataclass(frozen=True)
class Place:
    """Where trials run. kind: local or ray. workers: processes on this machine, 0: by its cores.
    address: of a Ray cluster; empty: the one that is there."""

    kind: Literal["local", "ray"]
    workers: Annotated[int, Range(least=0)] = 0
    address: str = ""

    @staticmethod
    def of(text: str) -> "Place":
        """The place that `--on` names."""
        kind, _, rest = text.partition(":")
        if kind == "ray":
            return Place("ray", 0, text if text.startswith("ray://") else rest)
        if kind == "local" and re.fullmatch(r"[0-9]{0,4}", rest) and rest not in ("0", "00"):
            return Place("local", int(rest) if rest else 0)
        raise UserError(f"--on '{text}': expected local, local:2, ray or ray:ADDRESS")
