"""A run as it goes: one live line in a terminal, a line now and then elsewhere. On stderr."""

import math
import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from coplay.core.game import Game
from coplay.core.reading import shown
from coplay.reports.curves import learning_curve
from coplay.training.records import read_rows
from coplay.training.run import RunFolder
from coplay.training.trainer import Report, Watcher


class ProgressLine(Watcher):
    """steps, share done, steps per second, time left, team mean, reward of every seat."""

    def __init__(self, quiet_seconds: float = 5.0):
        self.console = Console(stderr=True)
        self.live = Live("", console=self.console, refresh_per_second=8, transient=False)
        self.quiet_seconds = quiet_seconds
        self.last = 0.0

    def __enter__(self) -> "ProgressLine":
        if self.console.is_terminal:
            self.live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.console.is_terminal:
            self.live.stop()

    def say(self, text: str) -> None:
        self.console.print(shown(text), highlight=False, markup=False, soft_wrap=True)

    def show(self, report: Report) -> None:
        text = line(report)
        if self.console.is_terminal:
            self.live.update(Text(text))
        elif time.monotonic() - self.last > self.quiet_seconds or report.step >= report.steps:
            self.last = time.monotonic()
            self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def trained(self, folder: RunFolder, game: Game, title: str) -> None:
        learning_curve(folder.curve_file, read_rows(folder.metrics_file), game.seats, title)


def line(report: Report) -> str:
    """A report in one line."""
    if math.isnan(report.team_mean):
        reached = "no episode has ended yet"
    else:
        seats = " ".join(f"{reward:.2f}" for reward in report.rewards)
        reached = f"team {report.team_mean:.2f}  seats {seats}"
    return (
        f"{report.step:,} of {report.steps:,} steps ({report.step / report.steps:.0%})  "
        f"{report.steps_per_second:,.0f} steps/s  {clock(report.seconds_left)} left  "
        f"{reached}"
    )


def clock(seconds: float) -> str:
    """Seconds as h:mm:ss or m:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
