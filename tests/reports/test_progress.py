"""Runs and other long work in one line."""

import io
import math

import pytest
from rich.console import Console

from coplay.reports import progress
from coplay.reports.progress import ProgressLine, clock, line
from coplay.training.watching import Report


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (61, "1:01"), (3661, "1:01:01")]
)
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_a_line_tells_how_far_and_how_well() -> None:
    report = Report(5000, 20_000, 1234.5, 75.0, 2.5, [2.0, 3.0])
    said = line(report)
    assert said == (
        "5,000 of 20,000 steps (25%)  1,234 steps/s  1:15 left  team 2.50  seats 2.00 3.00"
    )
    assert "no episode has ended yet" in line(report._replace(team_mean=math.nan))


def test_other_work_tells_how_long_it_takes_still(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    shown = ProgressLine(quiet_seconds=5.0)
    text = io.StringIO()
    shown.console = Console(file=text, width=200)
    # Compiling takes 60 seconds, every further part 10.
    for done, seconds in ((0, 0), (1, 60), (2, 10), (4, 20)):
        now[0] += seconds
        shown.work("samples", done, 10)
    assert text.getvalue().splitlines() == [
        "samples: 1 of 10 (10%)  9:00 left",
        "samples: 2 of 10 (20%)  1:20 left",
        "samples: 4 of 10 (40%)  1:00 left",
    ]
    now[0] += 6
    shown.work("blocks", 7, 9)  # it goes on: what was done before took no time
    assert text.getvalue().splitlines()[3:] == ["blocks: 7 of 9"]
    now[0] += 1
    shown.work("epochs", 0, 3)
    assert len(text.getvalue().splitlines()) == 4, "plain and quiet"


def test_minutes_are_said_once_for_each_long_part(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    shown = ProgressLine(quiet_seconds=1e9)
    text = io.StringIO()
    shown.console = Console(file=text, width=200)
    for what in ("fields", "training runs"):
        for done in range(5):
            now[0] += 60.0
            shown.work(what, done, 10)
    assert text.getvalue().splitlines() == [
        "fields: about 8 minutes at this speed",
        "training runs: about 8 minutes at this speed",
    ]
