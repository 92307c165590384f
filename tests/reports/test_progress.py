"""A run in one line."""

import math

import pytest

from coplay.reports.progress import clock, line
from coplay.training.trainer import Report


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
