"""Sweeps from Python."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coplay.api.arguments import Entry, seating_text
from coplay.api.training import make_config
from coplay.core.config import with_fields
from coplay.core.errors import UserError
from coplay.core.files import new_folder
from coplay.core.game import Game
from coplay.core.invocation import invocation
from coplay.core.loading import loaded
from coplay.reports.sweep_page import write_sweep
from coplay.reports.sweep_table import SweepTable
from coplay.sweeps.config import SweepConfig
from coplay.sweeps.folder import SweepFolder, SweepState
from coplay.sweeps.space import dimensions
from coplay.sweeps.sweep import Sweep, SweepWatcher
from coplay.training.config import TrainConfig

EVALUATIONS = 10
"""Evaluations of a run where trials are pruned and nothing is said."""


def sweep(
    player: str = "ppo",
    game: str | Game = "stag-hunt",
    out: str | Path | None = None,
    *,
    vary: Mapping[str, str | Sequence[Any]] | None = None,
    seating: str | Sequence[Entry] = "",
    game_fields: Mapping[str, Any] | None = None,
    resume: bool = False,
    quiet: bool = False,
    watcher: SweepWatcher | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Run every setting of some fields and return what came out, with the folder as "folder".

    vary: field -> values, or a range as on the command line. out: the folder of the sweep; default:
        a new one below runs/. player, game, seating, game_fields: as in `coplay.train`.
    fields: of the run, of the learner, or of the sweep (`sampler`, `trials`, `objective`, `prune`,
        `on`, …), as in `coplay sweep PLAYER --help`.
    resume: go on with the sweep in `out`; only `on`, `cpus`, `gpus`, `files` and `minutes` may be
        given.
    quiet: show no progress. watcher: is told of the progress instead of the user.

        found = coplay.sweep(
            "ppo", vary={"discount": [0.9, 0.99]}, seeds=5, steps=200_000, out="sweeps/discount"
        )
        print(found["confirmed"]["value"], found["trials"][found["best"]]["setting"])
    """
    own = {name: fields.pop(name) for name in sweep_names() if name in fields}
    if resume:
        if out is None:
            raise UserError("resume goes on with the sweep in a folder: name it by out")
        if fields or vary or game_fields or seating:
            raise UserError("a resumed sweep keeps its settings: only where it runs may be given")
        state = resumed_sweep(SweepFolder(Path(out)), own)
        folder = SweepFolder(Path(out))
    else:
        name = game if isinstance(game, str) else game.name
        folder = SweepFolder(Path(out) if out is not None else new_folder("sweep", player, name))
        given = fields | ({"seating": seating_text(seating)} if seating else {})
        config = make_config(player, game, game_fields or {}, given)
        state = new_sweep(config, with_fields(SweepConfig(), own, "the sweep"), vary or {})
    if watcher is not None or quiet:
        done = run_sweep(state, folder, resume, watcher or SweepWatcher())
    else:
        with SweepTable() as table:
            done = run_sweep(state, folder, resume, table)
    return done.as_json() | {"folder": str(folder.path)}


def sweep_names() -> list[str]:
    """The fields of a sweep that are not those of its runs."""
    return [field.name for field in dataclasses.fields(SweepConfig)]


def new_sweep(
    config: TrainConfig, sweep: SweepConfig, vary: Mapping[str, str | Sequence[Any]]
) -> SweepState:
    """A sweep that has not begun."""
    if sweep.prune and not config.run.evaluate_every:
        every = max(1, config.run.steps // EVALUATIONS)
        run = dataclasses.replace(config.run, evaluate_every=every)
        config = dataclasses.replace(config, run=run)
    return SweepState(config, sweep, dimensions(config, vary), invocation(), loaded())


PLACES = ("on", "cpus", "gpus", "files", "minutes")
"""Fields of a sweep that may be others when it is taken up."""


def resumed_sweep(folder: SweepFolder, own: Mapping[str, Any]) -> SweepState:
    """A sweep to go on with, perhaps elsewhere."""
    if wrong := [name for name in own if name not in PLACES]:
        raise UserError(
            f"a resumed sweep keeps its settings: {wrong[0]} cannot be given, only "
            f"{', '.join(PLACES)}"
        )
    state = folder.read()
    return dataclasses.replace(state, sweep=with_fields(state.sweep, own, "the sweep"))


def run_sweep(
    state: SweepState, folder: SweepFolder, resume: bool, watcher: SweepWatcher
) -> SweepState:
    """Run a sweep to its end, with its table and its page."""
    return Sweep(state, folder, watcher, resume).run(write_sweep)
