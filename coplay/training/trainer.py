"""The training loop: a plain Python loop around compiled blocks that logs, saves and evaluates.

While a block computes, the numbers of the one before are logged. A run's state after any number of
iterations is a function of its configuration alone, so a resumed run ends bit for bit where an
uninterrupted one ends.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coplay.core.compilation import use_cache
from coplay.core.config import inert_fields
from coplay.core.errors import Interrupted, RunStopped, WorkerFailed, system_error
from coplay.core.files import write_json
from coplay.core.game import Game
from coplay.core.group import group_players
from coplay.core.machine import machine
from coplay.core.player import Player
from coplay.games.adapters.trusted import naming
from coplay.games.adapters.worker_game import WorkerGame
from coplay.matches.match import Match, play_match
from coplay.training import checkpoints
from coplay.training.best_learners import BestLearners
from coplay.training.block import (
    Counts,
    TrainState,
    enter_phase,
    init_state,
    state_shapes,
)
from coplay.training.compiling import compile_block
from coplay.training.config import TrainConfig
from coplay.training.continuity import (
    differences,
    require_same,
    stated_files,
    statement,
    tell_resumed,
)
from coplay.training.devices import Devices
from coplay.training.evaluations import Evaluations
from coplay.training.loggers.registry import OtherLogs, check_installed
from coplay.training.logs import Logs, is_logged
from coplay.training.metrics import blame
from coplay.training.opened import OpenedRun
from coplay.training.phases import Phase, plan_phases
from coplay.training.players import make_player
from coplay.training.preparation import check_taught, prepare_goals, records
from coplay.training.records import note_in_history
from coplay.training.rows import metrics_of
from coplay.training.run import RunFolder, make_game_of
from coplay.training.signals import StopRequest
from coplay.training.summary import summary_of
from coplay.training.watching import Report, Watcher
from coplay.training.worker_blocks import WorkerBlocks


@dataclass
class Clock:
    """Wall-clock seconds of a run, over all its processes."""

    training: float = 0.0
    compiling: float = 0.0


class Trainer:
    """One run in progress. `run` does everything; the other methods are its steps."""

    def __init__(
        self,
        config: TrainConfig,
        out: Path,
        watcher: Watcher,
        resume: bool = False,
        force: bool = False,
    ):
        """Validates all of the configuration before anything is written.

        The folder is locked from here to the end of `run`. force: go on although the configuration
        or the version is not that of the checkpoint.
        """
        use_cache()
        self.folder, self.watcher = RunFolder(out), watcher
        opened = OpenedRun(out) if resume else None
        try:
            self._plan(config, resume)
            if opened is None:
                self.folder.refuse_if_taken()
                opened = OpenedRun(out)
                self.folder.refuse_if_taken()  # by a process that was quicker
            self.opened = opened
            if not opened.lock.kept:
                watcher.say("note: this file system has no locks: do not train here twice at once")
            if self.goes_on:
                self._restore(force)
            else:
                self._begin()
        except BaseException:
            if opened is not None:
                opened.close(discard=True)
            raise

    def _plan(self, config: TrainConfig, resume: bool) -> None:
        """Everything that follows from the configuration."""
        self.saved = self.folder.checkpoints(config.run.keep)
        self.goes_on = resume and bool(self.saved.all())
        self.given = config
        config = self.folder.begun(config) if self.goes_on else config
        self.config = config
        self.game: Game = make_game_of(config)
        run = config.run
        check_installed(run.log)
        if not self.goes_on:
            check_taught(config, self.game)
        self.phases = plan_phases(config, self.game)
        self.per_iteration = run.copies * run.rollout
        self.total = math.ceil(run.steps / self.per_iteration)
        self.seeds = [run.seed + index for index in range(run.seeds)]
        # [seed] keys to begin with, and keys that every iteration folds its number into.
        seed_keys = jax.vmap(jax.random.key)(jnp.array(self.seeds))
        self.init_keys, self.keys = jnp.moveaxis(jax.vmap(jax.random.split)(seed_keys), 1, 0)
        self.streams = jnp.arange(self.game.seats)
        self.devices = Devices(run, self.game)
        self.evaluations = Evaluations(self.folder.evaluations_file, run.evaluate_every)
        self.clock = Clock()
        self.iteration = self.logged = 0
        self.mark = time.perf_counter()
        self.phase = 0
        self.best = BestLearners(self.saved.best, run.seeds)
        self.rewards = [math.nan] * self.game.seats
        self.versions = checkpoints.versions(config.game_name)
        self.stop = StopRequest()
        self.show: Callable[[], None] | None = None
        self.workers: WorkerBlocks | None = None
        self.ready: Any = None  # the first block, compiled before the run begins
        if isinstance(self.game, WorkerGame):
            self.workers = WorkerBlocks(self.game, run, self.seeds, self.watcher.say)
        # Nothing is gained by long blocks where every step leaves the compiled program.
        self.block = 1 if self.workers else run.block
        for note in (*self.game.notes, *self._notes_on_fields()):
            self.watcher.say(f"note: {note}")

    # --- beginning and going on ----------------------------------------------------------------

    def _begin(self) -> None:
        """The first checkpoint."""
        if records(self.config.learner):
            watcher = self.watcher
            prepare_goals(self.config, self.game, self.folder, watcher.say, watcher.work)
            self.config = self.folder.begun(self.config)
            self.phases = plan_phases(self.config, self.game)
        if not self.workers:  # a run that cannot fit is refused before it leaves anything
            shapes = state_shapes(self.config, self.game, self.phases[0])
            self.ready = self._compile(self.phases[0], shapes)
        self.state = self._start()
        self.folder.write_config(self.given)
        self.logs = Logs(self.folder.path, self.seeds, others=self._other_logs())
        self.evaluations.begin()
        made_by = {"versions": self.versions, "machine": machine()}
        note_in_history(self.folder.path, "begun", 0, **made_by)
        self._save()

    def _start(self) -> TrainState:
        phase, copies = self.phases[0], self.config.run.copies

        @jax.jit
        def all_seeds(game: Game, keys: jax.Array) -> TrainState:
            return jax.lax.map(lambda key: init_state(phase, game, key, copies, self.streams), keys)

        begun = time.perf_counter()
        state = jax.block_until_ready(all_seeds(self.game, self.init_keys))
        self.clock.compiling += time.perf_counter() - begun
        return state

    def _restore(self, force: bool) -> None:
        """Take up the newest checkpoint that is whole."""
        self.force = force
        self.state, note = self.saved.newest(self._read, self.watcher.say)
        if note["versions"] != self.versions:
            self.watcher.say(
                f"note: the checkpoint was written with {note['versions']}, this is "
                f"{self.versions}; the run goes on, but not bit for bit"
            )
        self.phase, self.iteration = note["phase"], note["iteration"]
        self.logged = self.iteration
        self.clock = Clock(note["seconds"], note["compile_seconds"])
        self.best.restore(note["best_score"], self.state.learners, self.watcher.say)
        self._restore_records(note)
        self.folder.write_config(self.given)
        self.watcher.say(f"going on at step {self.step}")
        if self.workers:
            self.workers.restarts = note.get("restarts", 0)
            self.watcher.say(
                f"the state of {self.game.name} cannot be saved: its environments begin new "
                "episodes, so the run goes on, but not bit for bit"
            )

    def _read(self, path: Path) -> tuple[TrainState, dict[str, Any]]:
        """The state in a checkpoint, and its note."""
        note = checkpoints.load_note(path)
        require_same(note, self.given, self.force)
        checkpoints.check_note(note, len(self.phases), self.per_iteration, len(self.seeds))
        shapes = state_shapes(self.config, self.game, self.phases[note["phase"]])
        return checkpoints.load(path, shapes)

    def _restore_records(self, note: dict[str, Any]) -> None:
        """Cut the files that grow back to the checkpoint, and say what is not as it was."""
        stated = stated_files(note)
        record, others = stated["metrics.jsonl"], self._other_logs()
        self.logs = Logs(self.folder.path, self.seeds, record, self.step, others)
        wrong = [*self.logs.wrong, *self.evaluations.go_on(stated, self.step)]
        forced = differences(note, self.given)
        told = (self.versions, forced, wrong, self.watcher.say)
        tell_resumed(self.folder.path, self.step, note, *told)

    def _other_logs(self) -> OtherLogs:
        """Who gets the metrics beside the record and TensorBoard."""
        about, say = self.given.as_json(), self.watcher.say
        return OtherLogs(self.given.run.log, self.folder.path, about, self.seeds, say)

    @property
    def step(self) -> int:
        return self.iteration * self.per_iteration

    def _notes_on_fields(self) -> list[str]:
        """Fields that were given and do nothing."""
        notes = [
            *inert_fields(self.config.learner),
            *inert_fields(self.config.run),
            *inert_fields(self.config.game),
        ]
        if self.config.dropped:
            gone = ", ".join(self.config.dropped)
            notes.append(f"the configuration is of an older program; these fields are gone: {gone}")
        return notes

    # --- the loop ------------------------------------------------------------------------------

    def run(
        self, finish: Callable[[], None] | None = None, show: Callable[[], None] | None = None
    ) -> dict[str, Any]:
        """Train to the end, evaluate, and return the summary that is also written.

        finish: is called after that, while the folder is still locked, to draw what is drawn.
        show: is called after every checkpoint, and so after every evaluation.
        """
        self.show = show
        summary: dict[str, Any] | None = None
        try:
            self.logs.begin_others()
            with self.stop.listening():
                while self.iteration < self.total:
                    self._run_phase()
                words = "stopped after the training, in the final evaluation or drawing; "
                with self.stop.at_once(f"{words}finish it with: {self._resuming}"):
                    summary = self._summarise()
                    if finish is not None:
                        finish()
            note_in_history(self.folder.path, "finished", self.step)
            self.opened.settle()
            return summary
        except Exception as error:
            why = str(error) if isinstance(error, WorkerFailed) else system_error(error)
            if why is None:
                raise
            raise RunStopped(
                f"{why}\nThe run is saved up to step {self.saved.last_step()}; go on with: "
                f"{self._resuming}"
            ) from error
        finally:
            if self.workers:
                self.workers.close()
            self.logs.close(summary)
            self.opened.close()

    def _run_phase(self) -> None:
        """Train until the phase ends."""
        starts = [math.ceil(phase.start / self.per_iteration) for phase in self.phases]
        ends = [*starts[1:], self.total]
        if self.iteration >= ends[self.phase]:
            before, self.phase = self.phases[self.phase], self.phase + 1
            self.watcher.say(f"step {self.step}: now {','.join(self.phases[self.phase].entries)}")
            self.state = self._enter(before, self.phases[self.phase])
        end, phase, run = ends[self.phase], self.phases[self.phase], self.config.run
        words = f"stopped at step {self.step} while compiling; go on with: {self._resuming}"
        with self.stop.at_once(words):
            block, self.ready = self.ready or self._compile(phase, self.state), None
        saved_at = self.step
        pending: tuple[Counts, int] | None = None
        self._evaluate_if_due()
        self.mark = time.perf_counter()
        while self.iteration < end:
            # Blocks end at multiples of their length wherever the run was taken up.
            count = min(self.block - self.iteration % self.block, end - self.iteration)
            self.state, counts = block(
                self.game,
                phase.others,
                self.state,
                self.keys,
                np.int32(self.iteration),
                np.int32(count),
                np.int32(self.total),
                self.streams,
            )
            if pending:
                self._log(*pending)
            pending = (counts, count)
            self.iteration += count
            if self.workers:  # its blocks are done when they return
                self._log(*pending)
                pending = None
            due = self.step - saved_at >= run.checkpoint_every
            evaluate = self.evaluations.due(self.step)
            if due or evaluate or self.stop.asked or self.iteration >= end:
                if pending:
                    self._log(*pending)
                pending, saved_at = None, self.step
                self._evaluate_if_due()
                self._save()
                if self.show is not None:
                    self.show()
                self.mark = time.perf_counter()
            if self.stop.asked:
                raise Interrupted(f"stopped at step {self.step}; go on with: {self._resuming}")

    @property
    def _resuming(self) -> str:
        """The command that takes this run up."""
        own = naming(self.game.source) if isinstance(self.game, WorkerGame) else ""
        return f"coplay train {self.config.player} --resume {self.folder.path}{own}"

    def _enter(self, before: Phase, phase: Phase) -> TrainState:
        copies = self.config.run.copies
        state = self.devices.here(self.state)
        return jax.lax.map(lambda one: enter_phase(before, phase, one, copies), state)

    def _compile(self, phase: Phase, state: TrainState) -> Any:
        """The function that plays and learns blocks of the phase; see `make_block`. state: or its
        shapes."""
        begun = time.perf_counter()
        compiled: Any
        if self.workers:
            compiled = self.workers.make_block(phase, state)
        else:
            parts = (self.config, phase, self.game, state, self.keys, self.streams)
            compiled = compile_block(self.devices, *parts, self.watcher.say)
        self.clock.compiling += time.perf_counter() - begun
        return compiled

    # --- logs ----------------------------------------------------------------------------------

    def _log(self, counts: Counts, iterations: int) -> None:
        """Wait for a block's numbers, check them, write them, show them."""
        arrays = {name: np.asarray(value)[:iterations] for name, value in counts.items()}
        now = time.perf_counter()
        speed = iterations * self.per_iteration * len(self.seeds) / (now - self.mark)
        self.clock.training += now - self.mark
        self.mark = now
        self.best.count(arrays)
        rows = []
        for index in range(iterations):
            self.logged += 1
            for number, seed in enumerate(self.seeds):
                row = {
                    "step": self.logged * self.per_iteration,
                    "seed": seed,
                    "seconds": round(self.clock.training, 3),
                    "steps_per_second": round(speed),
                }
                of_seed = {name: value[index, number] for name, value in arrays.items()}
                rows.append(row | metrics_of(of_seed, self.game))
        for row in rows:
            self._check_finite(row)
        self.logs.write([row for row in rows if is_logged(row["step"] // self.per_iteration)])
        if episodes := arrays["episodes"].sum():
            self.rewards = (arrays["reward"].sum((0, 1)) / episodes).tolist()
        left = (self.total - self.logged) * self.per_iteration * len(self.seeds) / speed
        self.watcher.show(
            Report(
                self.logged * self.per_iteration,
                self.total * self.per_iteration,
                speed,
                left,
                float(np.mean(self.rewards)),
                self.rewards,
            )
        )

    def _check_finite(self, row: dict[str, Any]) -> None:
        """Stop at the first number that is none."""
        active = {seat for learner in self.phases[self.phase].learners for seat in learner.active}
        if wrong := blame(row, active):
            good = self.saved.all()
            raise RunStopped(
                f"{wrong}The last good checkpoint is {good[-1] if good else 'missing'}"
            )

    # --- checkpoints ---------------------------------------------------------------------------

    def _save(self) -> None:
        """A checkpoint of everything; the best learners so far beside it."""
        state = self.devices.here(self.state)
        self.best.keep(state.learners, self.step)
        records = [self.logs.record, self.evaluations.record]
        note = {
            "phase": self.phase,
            "iteration": self.iteration,
            "seconds": self.clock.training,
            "compile_seconds": self.clock.compiling,
            "metrics_bytes": self.logs.record.bytes,
            "best_score": self.best.noted(),
            "versions": self.versions,
        }
        if self.workers:
            note["restarts"] = self.workers.restarts
        note |= statement(self.given, {record.path.name: record.state() for record in records})
        self.saved.save(self.step, state, note)

    # --- the end -------------------------------------------------------------------------------

    def _summarise(self) -> dict[str, Any]:
        """Play the final evaluation and write the summary."""
        self.watcher.say(f"final evaluation: {self.config.run.episodes} episodes per seed")
        entries = list(self.phases[-1].entries)
        episodes = self.config.run.episodes
        last = self.phases[-1]
        matches = [self._evaluate(last, index, episodes) for index in range(len(self.seeds))]
        summary = summary_of(self.game.name, entries, self.seeds, matches) | {
            "player": self.config.player,
            "steps": self.step,
            "seconds": self.clock.training,
            "compile_seconds": self.clock.compiling,
            "steps_per_second": self.step * len(self.seeds) / self.clock.training
            if self.clock.training
            else None,
            "parameters": self._parameters(),
        }
        if self.workers:
            summary["restarts"] = self.workers.restarts
        write_json(self.folder.summary_file, summary)
        return summary

    def _parameters(self) -> int:
        """Numbers that the learners of one seed optimise."""
        learners = zip(self.phases[-1].learners, self.state.learners, strict=True)
        arrays = jax.tree.leaves([learner.parameters(state) for learner, state in learners])
        return sum(x.size for x in arrays) // len(self.seeds)

    def _evaluate_if_due(self) -> None:
        """An evaluation of all seeds, if an interval has ended."""
        if not self.evaluations.due(self.step):
            return
        episodes = self.config.run.evaluate_episodes
        phase = self.phases[self.phase]
        matches = [self._evaluate(phase, index, episodes) for index in range(len(self.seeds))]
        self.evaluations.write(self.step, self.clock.training, self.seeds, matches)

    def _evaluate(self, phase: Phase, index: int, episodes: int) -> Match:
        """The players of one seed as they stand."""
        learners = self.devices.of_seed(self.state.learners, index)
        players: list[Player] = []
        for seat, entry in enumerate(phase.entries):
            mine = [
                learner.player(state, seat)
                for learner, state in zip(phase.learners, learners, strict=True)
                if seat in learner.active
            ]
            players.append(mine[0] if mine else make_player(entry, self.game, seat))
        seed = 1_000_000 + self.seeds[index]
        match = play_match(self.game, group_players(players), episodes, seed)
        if self.workers:
            self.workers.restarts += match.restarts
        return match
