"""A sweep as it goes, one live table in a terminal and lines elsewhere; and its result."""

import time
from collections.abc import Mapping
from pathlib import Path

from rich.table import Table

from coplay.core.reading import shown_in_line
from coplay.reports.progress import LiveDisplay
from coplay.reports.results import console_for_tables, print_json
from coplay.sweeps.folder import SweepState, Trial
from coplay.sweeps.space import shown_value
from coplay.sweeps.sweep import Progress, SweepWatcher

ROWS = 20
"""Trials that the live table shows: those that run, and the best of the others."""


class SweepTable(LiveDisplay, SweepWatcher):
    """All trials in one live table, on standard error."""

    def __init__(self, quiet_seconds: float = 30.0):
        super().__init__(per_second=2, transient=True)
        self.quiet_seconds, self.last = quiet_seconds, 0.0

    def show(self, state: SweepState, count: int, running: Mapping[str, Progress]) -> None:
        if self.console.is_terminal:
            self.live.update(live_table(state, count, running))
        elif time.monotonic() - self.last > self.quiet_seconds:
            self.last = time.monotonic()
            steps = state.config.run.steps
            parts = [f"{name} {one.step / steps:.0%}" for name, one in running.items()]
            self.say(f"{_counts(state, count)}; running: {', '.join(parts) or 'none'}")


def _counts(state: SweepState, count: int) -> str:
    states = [one.state for one in state.trials]
    more = [f"{states.count(name)} {name}" for name in ("pruned", "failed") if name in states]
    return ", ".join([f"{states.count('finished')} of {count} trials finished", *more])


def live_table(state: SweepState, count: int, running: Mapping[str, Progress]) -> Table:
    """The trials that run, then the best of those that are over."""
    table = Table(title=_counts(state, count))
    paths = [one.path for one in state.space]
    for name in ("trial", *paths, "state", "steps", state.sweep.objective):
        table.add_column(shown_in_line(name), overflow="fold")
    active = [one for one in state.trials if one.state == "running"]
    steps = state.config.run.steps
    for one in active[:ROWS]:
        now = running.get(one.name, Progress(0, None))
        value = "" if now.value is None else f"{now.value:.3f} so far"
        cells = [shown_value(one.setting[path]) for path in paths]
        table.add_row(one.name, *cells, "running", f"{now.step / steps:.0%}", value)
    for one in ranked(state)[: max(0, ROWS - len(active))]:
        cells = [shown_value(one.setting[path]) for path in paths]
        table.add_row(one.name, *cells, one.state, "", value_words(one))
    return table


def ranked(state: SweepState) -> list[Trial]:
    """The trials that are over: finished ones first, the best of them first."""
    sign = 1 if state.sweep.minimise else -1
    order = {"finished": 0, "pruned": 1, "failed": 2}
    over = [one for one in state.trials if one.over]
    return sorted(over, key=lambda one: (order[one.state], sign * (one.value or 0.0), one.number))


def value_words(one: Trial) -> str:
    """What a trial reached, with its interval."""
    if one.value is None:
        return ""
    span = "" if one.interval is None else f" ({one.interval[0]:.3f} to {one.interval[1]:.3f})"
    return f"{one.value:.3f}{span}"


def print_sweep(state: SweepState, out: Path, as_json: bool) -> None:
    """The result with fresh seeds first, then all trials; or everything as JSON."""
    if as_json:
        print_json(state.as_json() | {"folder": str(out)})
        return
    console = console_for_tables()
    for text in result_words(state):
        console.print(shown_in_line(text), soft_wrap=True)
    table = Table(title=f"{len(state.trials)} trials, {state.sweep.objective}")
    paths = [one.path for one in state.space]
    for name in ("trial", *paths, "state", f"{state.sweep.objective} (95 % interval)"):
        table.add_column(shown_in_line(name), overflow="fold")
    for one in ranked(state):
        cells = [shown_value(one.setting[path]) for path in paths]
        table.add_row(*map(shown_in_line, (one.name, *cells, one.state, value_words(one))))
    console.print(table)
    console.print(f"all of it with curves and maps: {out / 'index.html'}", soft_wrap=True)


def result_words(state: SweepState) -> list[str]:
    """What a sweep found, in sentences; the figure with fresh seeds first."""
    best, confirmed = state.best(), state.confirmed
    if best is None:
        return ["No trial has finished."]
    objective = state.sweep.objective
    setting = ", ".join(f"{path} {shown_value(value)}" for path, value in best.setting.items())
    found = []
    if confirmed is not None and confirmed.state == "finished":
        seeds = f"{len(confirmed.values)} fresh seed{'s' * (len(confirmed.values) > 1)}"
        found.append(f"{objective} {value_words(confirmed)} with {seeds}: {setting}.")
        found.append(
            f"The trial itself (number {best.name}) had {value_words(best)}. It was chosen by that "
            "figure out of many, so it is too good; the one with fresh seeds is not."
        )
    else:
        found.append(
            f"{objective} {value_words(best)} in trial {best.name}: {setting}. It was chosen by "
            "this figure out of many, so the figure is too good."
        )
    return found
