"""A sweep: settings are chosen, their runs are done, the best is run again with fresh seeds."""

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from coplay.core.errors import Interrupted, RunStopped, UserError, why_stopped
from coplay.evaluation.adaptation.protocol import AdaptConfig, make_meeting, split_against
from coplay.matches.statistics import bootstrap_interval, iqm
from coplay.sweeps.acting import refuse_inert
from coplay.sweeps.folder import OpenedSweep, SweepFolder, SweepState, Trial
from coplay.sweeps.jobs import (
    check_objective,
    evaluated,
    make_job,
    objective_values,
    with_run,
    workers_for,
)
from coplay.sweeps.samplers import make_sampler
from coplay.sweeps.space import configured, words
from coplay.sweeps.workers import (
    BREAK,
    LOSSES,
    TRIES,
    Ended,
    LocalWorkers,
    Workers,
    awaited,
)
from coplay.training.phases import plan_phases
from coplay.training.records import last_rows
from coplay.training.run import RunFolder, make_game_of

CHECKED = 200  # settings of a list that are checked before anything runs
CONFIRMED = "best"


class Progress(NamedTuple):
    """How far a running trial is. value: the team mean of the last logged update, if any."""

    step: int
    value: float | None


class SweepWatcher:
    """Gets to know what a sweep does; this one keeps it to itself."""

    def say(self, text: str) -> None:
        """A line for the user."""

    def show(self, state: SweepState, count: int, running: Mapping[str, Progress]) -> None:
        """After each change. count: trials in all. running: by the trial's name."""


Finish = Callable[[SweepState, SweepFolder], None]
"""Writes what a sweep leaves beside its own file: a table, a page."""


class Sweep:
    """A sweep in progress. `run` does everything."""

    def __init__(self, state: SweepState, folder: SweepFolder, watcher: SweepWatcher, resume: bool):
        """Validates everything that can be known; writes nothing."""
        self.state, self.folder, self.watcher = state, folder, watcher
        self.resume = resume
        run = state.config.run
        if not resume:
            folder.refuse_if_taken()
        game = make_game_of(state.config)
        check_objective(state.sweep.objective, game, state.sweep.prune)
        if against := state.sweep.against:
            make_meeting("random", split_against(against, game), game, AdaptConfig())
        self.sampler = make_sampler(state.sweep, state.space, run.seed)
        self.count = self.sampler.count
        if run.seed + run.seeds + self._fresh() > 2**31:
            raise UserError("the fresh seeds of --confirm go above 2^31 - 1: give a lower --seed")
        self._check_settings()
        self.tries_lost: dict[str, int] = {}
        self.reported: dict[str, int] = {}
        self.pruned: set[str] = set()
        self.waiting: list[Trial] = []
        self.running: dict[str, Trial] = {}
        self.shown_at = 0.0

    def _check_settings(self) -> None:
        """An error if a setting of a list cannot be run: before anything is."""
        for setting in (getattr(self.sampler, "settings", None) or [])[:CHECKED]:
            config = configured(self.state.config, setting)
            try:
                plan_phases(config, make_game_of(config))
            except UserError as error:
                raise UserError(f"--vary: with {words(setting)}: {error}") from error

    def _fresh(self) -> int:
        """Seeds with which the best setting is run again."""
        wanted = self.state.sweep.confirm
        return self.state.config.run.seeds if wanted < 0 else wanted

    # --- the whole -----------------------------------------------------------------------------

    def run(self, finish: Finish | None = None) -> SweepState:
        """Run all trials and return the sweep as it is then, which is also written."""
        opened = OpenedSweep(self.folder)
        begun = False
        workers: Workers | None = None
        try:
            if not self.resume:
                self.folder.refuse_if_taken()  # by a process that was quicker
            workers = workers_for(self.state.sweep, self.folder.path, self.count)
            if not self.resume:
                self._prepare(workers)
            begun = True
            self._take_up()
            opened.write(self.state)
            self._loop(opened, workers)
            self._confirm(opened, workers)
            if finish is not None:
                finish(self.state, self.folder)
            opened.manifest.settle()
            return self.state
        except KeyboardInterrupt:
            self.watcher.say("stopping: the runs save what they have")
            if workers is not None:
                workers.close()
            if begun:
                opened.write(self.state)
                raise Interrupted(f"stopped; go on with: {self._resuming}") from None
            raise
        except Exception as error:
            why = why_stopped(error)
            if why is None or not begun:
                raise
            raise RunStopped(f"{why}\nGo on with: {self._resuming}") from error
        finally:
            if workers is not None:
                workers.close()
            opened.close(discard=not begun)

    @property
    def _resuming(self) -> str:
        return f"coplay sweep --resume {self.folder.path}"

    def _prepare(self, workers: Workers) -> None:
        """Refuse fields that change nothing; say what is to come."""
        sweep, run = self.state.sweep, self.state.config.run
        if sweep.audit:
            refuse_inert(self.state.config, self.state.space, self.watcher.say)
        told = f"{self.count} trials of {run.seeds} seeds and {run.steps:,} steps"
        told += f", {workers.slots} at a time"
        told += ", files come back through Ray" if getattr(workers, "returned", False) else ""
        if sweep.measure and (seconds := self._measure()) is not None:
            rounds = -(-self.count // workers.slots) + (self._fresh() > 0)
            told += f": about {_duration(rounds * seconds)}, by a short run"
        self.watcher.say(told)

    def _measure(self) -> float | None:
        """Seconds of one trial, by a short run of the first setting; None: the runs themselves are
        that short."""
        run = self.state.config.run
        block = run.block * run.copies * run.rollout
        if run.steps <= 4 * block:
            return None
        self.watcher.say("timing a short run")
        config = with_run(self.state.config, steps=2 * block, checkpoint_every=2 * block)
        home = Path(tempfile.mkdtemp(prefix="coplay-sweep-"))
        workers = LocalWorkers(1, self.state.sweep.cpus)
        try:
            began = time.monotonic()
            out = home / "run"
            workers.start(make_job("short", config, out, home / "short.json", home / "log"))
            while not (ended := workers.poll()):
                time.sleep(BREAK / 4)
            wall = time.monotonic() - began
            if ended[0].code:
                raise RunStopped(f"a short run to begin with failed:\n{ended[0].words}")
            summary = RunFolder(out).read_summary() or {}
        finally:
            workers.close()
            shutil.rmtree(home, ignore_errors=True)
        training = float(summary["seconds"])
        self.state.measured = {
            "seconds_per_step": training / int(summary["steps"]),
            "overhead": max(0.0, wall - training),
        }
        return self.state.measured["overhead"] + run.steps * training / int(summary["steps"])

    def _take_up(self) -> None:
        """Tell the sampler what earlier processes did. What they left undone waits; what failed is
        tried again."""
        for trial in self.state.trials:
            if trial.state in ("running", "failed"):
                trial.state, trial.tries, trial.words = "waiting", 0, ""
            self.sampler.take_up(trial.number, trial.setting, trial.state, trial.value)
            if not trial.over:
                self.waiting.append(trial)

    # --- trials --------------------------------------------------------------------------------

    def _loop(self, opened: OpenedSweep, workers: Workers) -> None:
        """Run trials until there are no more."""
        minutes = self.state.sweep.minutes
        end = time.monotonic() + 60 * minutes if minutes else float("inf")
        while True:
            late = time.monotonic() > end
            while len(self.running) < workers.slots and (trial := self._next(late)) is not None:
                if not self._start(trial, opened, workers):
                    break
            if not self.running and (late or not self.waiting):
                break
            ended = awaited(workers)
            for one in ended:
                self._ended(one)
            if ended:
                opened.write(self.state)
            self._prune(workers)
            self._show(bool(ended))
        if late and (left := self.count - sum(one.over for one in self.state.trials)):
            self.watcher.say(f"{left} trials are left out: {minutes:g} minutes are over")

    def _next(self, late: bool) -> Trial | None:
        """The trial to begin next; None: there is none."""
        if self.waiting:
            return self.waiting.pop(0)
        if late or len(self.state.trials) >= self.count:
            return None
        number = len(self.state.trials)
        trial = Trial(number, self.sampler.ask(number))
        self.state.trials.append(trial)
        return trial

    def _start(self, trial: Trial, opened: OpenedSweep, workers: Workers) -> bool:
        """Begin or take up a trial; False: its folder is still being written, so it waits."""
        name = trial.name
        config = configured(self.state.config, trial.setting)
        run, log = self.folder.run(trial), self.folder.log(name)
        if not workers.start(
            make_job(name, config, run, self.folder.setting(name), log, *self._more())
        ):
            self.waiting.append(trial)
            return False
        trial.state = "running"
        self.running[name] = trial
        opened.write(self.state)
        return True

    def _more(self) -> tuple[str, ...]:
        """Options of `coplay train` beside the configuration."""
        sweep = self.state.sweep
        adapts = ("--adapts", sweep.against) if sweep.against else ()
        return adapts if sweep.pictures else (*adapts, "--no-pictures")

    def _ended(self, one: Ended) -> None:
        """A run is over: what it gave, or why it failed."""
        trial, run = self.running.pop(one.name), self.folder.path / "trials" / one.name
        if one.code == 0:
            self._finished(trial, run)
        elif one.name in self.pruned:
            trial.state, trial.words = "pruned", "worse than the median of the others"
            points = evaluated(run, self.state.sweep.objective, self.state.config.run.seeds)
            trial.value, trial.steps = (points[-1][1], points[-1][0]) if points else (None, 0)
        elif one.lost and self.tries_lost.setdefault(one.name, 0) < LOSSES:
            self.tries_lost[one.name] += 1
            trial.state = "waiting"
            self.waiting.insert(0, trial)
            self.watcher.say(f"trial {one.name}: its machine is lost; it goes on elsewhere")
            return
        else:
            trial.tries += 1
            # Exit code 2 says that the input is wrong: it will be wrong again.
            if trial.tries < TRIES and one.code != 2:
                trial.state = "waiting"
                self.waiting.append(trial)
                self.watcher.say(f"trial {one.name} failed ({_reason(one)}); it is tried again")
                return
            trial.state, trial.words = "failed", one.words or _reason(one)
            self.watcher.say(
                f"trial {one.name} failed {trial.tries} times and is left out: {_reason(one)}; "
                f"its log is {self.folder.log(one.name)}"
            )
        self.sampler.tell(trial.number, trial.state, trial.value)
        if trial.state == "finished":
            self.watcher.say(f"trial {one.name}: {trial.value:.4g}  {words(trial.setting)}")

    def _finished(self, trial: Trial, run: Path) -> None:
        values = objective_values(run, self.state.sweep.objective)
        summary = RunFolder(run).read_summary() or {}
        trial.state, trial.values, trial.value = "finished", values, iqm(values)
        trial.interval = list(bootstrap_interval(values)) if len(values) > 1 else None
        trial.steps = int(summary["steps"])
        trial.seconds = float(summary["seconds"]) + float(summary["compile_seconds"])
        trial.words = ""

    def _prune(self, workers: Workers) -> None:
        """Stop the trials that are worse than the others were at the same step."""
        if not self.state.sweep.prune:
            return
        seeds = self.state.config.run.seeds
        for name, trial in self.running.items():
            points = evaluated(self.folder.run(trial), self.state.sweep.objective, seeds)
            for step, value in points:
                if name in self.pruned or step <= self.reported.get(name, -1):
                    continue
                self.reported[name] = step
                if self.sampler.hopeless(trial.number, step, value):
                    self.pruned.add(name)
                    workers.ask_to_stop(name)
                    self.watcher.say(f"trial {name} is stopped at step {step}: {value:.4g}")

    def _show(self, changed: bool) -> None:
        if not changed and time.monotonic() - self.shown_at < 1.0:
            return
        self.shown_at = time.monotonic()
        running = {name: progress(self.folder.run(one)) for name, one in self.running.items()}
        self.watcher.show(self.state, self.count, running)

    # --- the best ------------------------------------------------------------------------------

    def _confirm(self, opened: OpenedSweep, workers: Workers) -> None:
        """Run the best setting once more with fresh seeds: the figure of the chosen trial is too
        good, because it was chosen by it."""
        best, fresh = self.state.best(), self._fresh()
        if best is None or not fresh:
            return
        before = self.state.confirmed
        if before is not None and before.over and before.number == best.number:
            return
        if before is not None and before.number != best.number:
            shutil.rmtree(self.folder.best, ignore_errors=True)
        run = self.state.config.run
        config = configured(self.state.config, best.setting)
        config = with_run(config, seed=run.seed + run.seeds, seeds=fresh)
        trial = Trial(best.number, best.setting, "running")
        self.state.confirmed = trial
        opened.write(self.state)
        self.watcher.say(f"the best is trial {best.name}: once more with {fresh} fresh seeds")
        setting, log = self.folder.setting(CONFIRMED), self.folder.log(CONFIRMED)
        job = make_job(CONFIRMED, config, self.folder.best, setting, log, *self._more())
        lost = 0
        while not trial.over:
            while not workers.start(job):
                time.sleep(BREAK)
            while not (ended := workers.poll()):
                time.sleep(BREAK)
            if ended[0].code == 0:
                self._finished(trial, self.folder.best)
            elif ended[0].lost and lost < LOSSES:
                lost += 1
            else:
                trial.tries += 1
                if trial.tries == TRIES or ended[0].code == 2:
                    trial.state, trial.words = "failed", ended[0].words
                    self.watcher.say(f"the run with fresh seeds failed; its log is {log}")
        opened.write(self.state)


def progress(folder: Path) -> Progress:
    """How far a run is."""
    try:
        rows = last_rows(folder / "metrics.jsonl")
    except UserError:
        rows = []
    step = rows[-1].get("step", 0) if rows else 0
    means = [row["team_mean"] for row in rows if isinstance(row.get("team_mean"), int | float)]
    return Progress(
        step if isinstance(step, int) else 0, sum(means) / len(means) if means else None
    )


def _reason(one: Ended) -> str:
    """Why a run ended, in a line."""
    last = one.words.splitlines()[-1] if one.words else ""
    if one.code < 0:
        return f"it was killed by signal {-one.code}"
    return last or f"exit code {one.code}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 1):.0f} seconds"
    minutes = seconds / 60
    return f"{minutes:.0f} minutes" if minutes < 100 else f"{minutes / 60:.1f} hours"
