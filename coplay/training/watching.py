"""Who gets to know how a run, or other long work, goes on."""

from typing import NamedTuple

from coplay.core.game import Game
from coplay.training.run import RunFolder


class Report(NamedTuple):
    """What a watcher of a run sees after each block.

    rewards: [seat] per episode, over the episodes that ended in the last block in which any did.
    """

    step: int
    steps: int
    steps_per_second: float
    seconds_left: float
    team_mean: float
    rewards: list[float]


class Watcher:
    """Gets to know what a run does; this one keeps it to itself."""

    def say(self, text: str) -> None:
        """A line for the user."""

    def show(self, report: Report) -> None:
        """After each block."""

    def work(self, what: str, done: int | float, total: int | float) -> None:
        """Of long work that is no training run: `done` of `total` parts are done."""

    def trained(self, folder: RunFolder, game: Game, title: str) -> None:
        """After a run that something else needed, such as a best response."""
