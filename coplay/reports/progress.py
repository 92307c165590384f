"""Long work as it goes: one live line in a terminal, a line now and then elsewhere. On stderr."""

import math
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from coplay.core.game import Game
from coplay.core.reading import shown
from coplay.reports.curves import learning_curve
from coplay.training.records import read_rows
from coplay.training.run import RunFolder
from coplay.training.trainer import Report, Watcher

LONG = 120.0
"""Seconds from which a run is long: how long is said when it begins."""


class LiveDisplay:
    """A place on standard error that changes while work goes on, in a terminal."""

    def __init__(self, per_second: float, transient: bool):
        """per_second: how often it changes. transient: it disappears when the work is done."""
        self.console = Console(stderr=True)
        self.live = Live(
            "", console=self.console, refresh_per_second=per_second, transient=transient
        )

    def __enter__(self) -> Self:
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


class ProgressLine(LiveDisplay, Watcher):
    """Of a run: steps, share done, steps per second, time left, team mean, reward of every seat. Of
    other long work: share done and time left."""

    def __init__(self, quiet_seconds: float = 5.0, transient: bool = False):
        """transient: the line disappears when the work is done."""
        super().__init__(per_second=8, transient=transient)
        self.quiet_seconds = quiet_seconds
        self.last = 0.0
        self.pace = Pace("", 0.0, 0.0)
        self.warned = False

    def show(self, report: Report) -> None:
        if report.seconds_left > LONG and not self.warned:
            self.warned = True
            self.say(f"about {report.seconds_left / 60:.0f} minutes at this speed")
        self._put(line(report), report.step >= report.steps)

    def work(self, what: str, done: int | float, total: int | float) -> None:
        now = time.monotonic()
        if what != self.pace.what or done < self.pace.done:
            self.pace, self.warned = Pace(what, done, now), False
            self.last = max(self.last, now) if done == 0 else self.last
        self.pace.count(done, now)
        # The first part compiles: it says nothing of the others.
        if len(self.pace.marks) > 2 and not self.warned and self.pace.seconds(total) > LONG:
            self.warned = True
            self.say(f"{what}: about {self.pace.seconds(total) / 60:.0f} minutes at this speed")
        self._put(f"{what}: {done:,.0f} of {total:,.0f}{self.pace.left(total)}", False)

    def _put(self, text: str, last: bool) -> None:
        """Show a line in the terminal; elsewhere print it now and then, and the last one."""
        if self.console.is_terminal:
            self.live.update(Text(text))
        elif time.monotonic() - self.last > self.quiet_seconds or last:
            self.last = time.monotonic()
            self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def trained(self, folder: RunFolder, game: Game, title: str) -> None:
        learning_curve(folder.curve_file, read_rows(folder.metrics_file), game.seats, title)


class Pace:
    """How fast work goes on, from what was done when it was first heard of. The first part is left
    out where there are others: it compiles."""

    def __init__(self, what: str, done: float, began: float):
        self.what, self.done = what, done
        self.marks = [(done, began)]

    def count(self, done: float, now: float) -> None:
        """`done` parts are done at `now`."""
        if done > self.done:
            self.done = done
            self.marks = [*self.marks[:2], (done, now)]

    def left(self, total: float) -> str:
        """Words about share and time left; empty before anything is done."""
        if len(self.marks) < 2:
            return ""
        return f" ({self.done / total:.0%})  {clock(self.seconds(total))} left"

    def seconds(self, total: float) -> float:
        """How long the rest takes, if it goes on like this; something has been done."""
        first = self.marks[1] if len(self.marks) > 2 else self.marks[0]
        (before, began), (done, now) = first, self.marks[-1]
        return max((now - began) / (done - before) * (total - done), 0.0)


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
