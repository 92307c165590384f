"""HOP on one board: a run of each seed, four of it together, one of it among others."""

from dataclasses import dataclass

from coplay.reproduce.experiment import Measurement

SEEDS = (2, 3)
"""Training seeds; settings were chosen with seeds 0 and 1."""


@dataclass(frozen=True)
class Board:
    """name: what its runs are called. game: the options of the game and its board."""

    name: str
    game: str

    def run(self, seed: int) -> str:
        """The run of a training seed."""
        return f"runs/{self.name}-s{seed}"

    def trained(self, seed: int) -> Measurement:
        return Measurement(
            f"{self.name}-s{seed}",
            f"train hop {self.game} --seed {seed} --episodes 100 --no-pictures "
            f"--out {self.run(seed)}",
        )

    def together(self, seed: int) -> Measurement:
        seating = ",".join([self.run(seed)] * 4)
        return Measurement(
            f"{self.name}-together-s{seed}",
            f"play {self.game} --seating {seating} --episodes 200",
        )

    def among(self, seed: int, what: str, others: str, options: str) -> Measurement:
        """One of it among three others; what: their short name. options: of `coplay adapt`."""
        name = f"{self.name}-{what}-s{seed}"
        return Measurement(
            name,
            f"adapt {self.run(seed)} --against {others} --seeds 1 {options} --out runs/{name}",
        )
