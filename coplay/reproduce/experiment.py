"""What an experiment is: a question, the commands that answer it, and how their output is read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coplay.matches.statistics import bootstrap_interval, iqm

MAIN = "main"
"""The name of the table that a page shows where it names none."""


@dataclass(frozen=True)
class Measurement:
    """One command of an experiment.

    name: how `read` finds its output. command: the command line without the program's name; paths
        are relative to the working folder, and equal commands of several experiments run once.
    needs_json: it prints one JSON value with --json, which is its output; else it has none.
    """

    name: str
    command: str
    needs_json: bool = True

    @property
    def shown(self) -> str:
        """The command as a user types it."""
        return f"coplay {self.command}"

    @property
    def arguments(self) -> list[str]:
        return [*self.command.split(), *(["--json"] if self.needs_json else [])]


@dataclass(frozen=True)
class Findings:
    """What the outputs of all steps come to.

    answer: the answer in a sentence or two, with its figures. headlines: its main figures for a
    table of all results, each with what it is: [words, cell]. tables: name -> {"columns", "rows"},
    rows of cells. chart: what `pictures.draw` draws, None: nothing.
    """

    answer: str
    headlines: list[list[Any]]
    tables: dict[str, dict[str, Any]]
    chart: dict[str, Any] | None = None


@dataclass(frozen=True)
class Experiment:
    """A question and what answers it.

    title: of its page and its picture. seeds: the training seeds as a phrase. minutes: how long it
    takes on two cores without other work. read: output of each step by its name -> the findings;
    the second argument reads the rows of a run's metrics.jsonl by the run's path.
    """

    name: str
    title: str
    question: str
    seeds: str
    minutes: float
    steps: tuple[Measurement, ...]
    read: Callable[[Mapping[str, Any], Callable[[str], list[dict[str, Any]]]], Findings]


def over_runs(values: Sequence[float], digits: int = 3) -> dict[str, Any]:
    """A cell: the interquartile mean of one number per run (a training seed), with its 95 %
    bootstrap interval over the runs; of a single run, the number alone.

    digits: so many decimal places are shown.
    """
    cell = {"value": iqm(values), "digits": digits, "runs": [float(x) for x in values]}
    if len(values) > 1:
        low, high = bootstrap_interval(values)
        cell |= {"low": low, "high": high}
    return cell


def words(cell: Mapping[str, Any] | str | float | None) -> str:
    """A cell as text: a number with its interval, or the text itself; empty if there is none."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    if not isinstance(cell, Mapping):
        return f"{cell:g}"
    digits = cell["digits"]
    text = f"{cell['value']:.{digits}f}"
    if "low" in cell:
        text += f" ({cell['low']:.{digits}f} to {cell['high']:.{digits}f})"
    return text


def curve(rows: Sequence[Mapping[str, Any]], name: str, points: int = 60) -> dict[str, Any]:
    """A learning curve of a metric: interquartile mean over seeds with its 95 % interval, at
    `points` steps at most. rows: of metrics.jsonl; rows without a value are left out."""
    by_step: dict[int, list[float]] = {}
    for row in rows:
        if row.get(name) is not None:
            by_step.setdefault(row["step"], []).append(row[name])
    steps = sorted(by_step)
    chosen = sorted({steps[int(i)] for i in np.linspace(0, len(steps) - 1, points)})
    bands = [bootstrap_interval(by_step[step], resamples=500) for step in chosen]
    return {
        "x": chosen,
        "y": [round(iqm(by_step[step]), 4) for step in chosen],
        "low": [round(low, 4) for low, _ in bands],
        "high": [round(high, 4) for _, high in bands],
    }
