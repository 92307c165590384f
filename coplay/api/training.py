"""Training from Python."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coplay.algorithms.registry import is_unregistered, learner_parts
from coplay.api.arguments import (
    Entry,
    game_and_config,
    game_fields_of,
    seating_text,
    share_fields,
    watching,
)
from coplay.core.errors import UserError, see
from coplay.core.files import new_folder
from coplay.core.game import Game
from coplay.reports.results import after_training
from coplay.reports.run_page import KeptPage
from coplay.sweeps.config import SweepConfig
from coplay.sweeps.seeds import train_seeds
from coplay.training.config import TrainConfig, run_defaults
from coplay.training.opened import OpenedRun
from coplay.training.presets import from_preset, preset_game, presets
from coplay.training.processes import is_first, own_folder
from coplay.training.records import HISTORY, note_in_history, read_rows
from coplay.training.run import RunFolder
from coplay.training.trainer import Trainer, Watcher


def train(
    player: str = "ppo",
    game: str | Game | None = None,
    out: str | Path | None = None,
    *,
    seating: str | Sequence[Entry] = "",
    game_fields: Mapping[str, Any] | None = None,
    on: str = "",
    resume: bool = False,
    force: bool = False,
    quiet: bool = False,
    pictures: bool = True,
    watcher: Watcher | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Train and return the summary, with the run's folder as "folder".

    player: the learner by name. game: by name, or one that is known by its name, such as
        `coplay.from_pettingzoo` gives; default: that of the preset, else stag-hunt. out: the folder
        of the run; default: a new one below runs/.
    seating: who sits where; players of one's own may be named or given themselves.
    fields: of the run (`steps`, `seed`, …) or of the learner (`learning_rate`, …), as in
        `coplay train PLAYER --help`; nested ones by their path or as a dictionary. game_fields: of
        the game.
    on: where the seeds are trained one by one, several at a time: local:K, ray or ray:ADDRESS.
    resume: go on with the run in `out`; only `steps` may be given. force: also if its configuration
        or the version of coplay is not what the checkpoint was written with.
    quiet: show no progress. pictures: leave a page, a replay, a learning curve and a film in the
        folder.
    watcher: is told of the progress instead of the user.

        run = coplay.train("ppo", "stag-hunt", "runs/first", steps=200_000, seeds=4)
        coplay.train("hop", search={"simulations": 4}, seating=["hop", "ns", MyPlayer(), "random"])
    """
    if resume:
        if out is None:
            raise UserError("resume goes on with the run in a folder: name it by out")
        folder = RunFolder(Path(out))
        config = resumed_config(folder, fields.pop("steps", None))
        if fields or game_fields or seating:
            raise UserError("a resumed run keeps its configuration: only steps may be given")
        if (summary := finished_summary(folder, config)) is not None:
            if pictures:
                with watching(watcher, quiet) as told:
                    finish_pictures(folder, summary, told)
            return summary | {"folder": str(folder.path)}
    else:
        game = game or preset_game(fields.get("preset")) or "stag-hunt"
        name = game if isinstance(game, str) else game.name
        folder = RunFolder(Path(out) if out is not None else new_folder(player, name))
        given = fields | ({"seating": seating_text(seating)} if seating else {})
        config = make_config(player, game, game_fields or {}, given)
    with watching(watcher, quiet) as told:
        if on:
            train_seeds_on(SweepConfig(on=on), config, folder, resume, told)
        summary = run_training(config, folder, resume or bool(on), told, pictures, force)
    return summary | {"folder": str(folder.path)}


def train_seeds_on(
    where: SweepConfig, config: TrainConfig, folder: RunFolder, resume: bool, watcher: Watcher
) -> None:
    """Train the seeds of a run one by one, elsewhere. What is left is the final evaluation."""
    if resume:
        raise UserError("--on begins a run: leave out --resume, or leave out --on")
    train_seeds(config, folder.path, where, watcher.say)


def run_training(
    config: TrainConfig,
    folder: RunFolder,
    resume: bool,
    watcher: Watcher,
    pictures: bool = True,
    force: bool = False,
) -> dict[str, Any]:
    """Train to the end, draw what every finished run leaves, and return the summary."""
    learner = learner_parts(config.player)[1]
    if getattr(learner, "needs_partners", False) and not config.run.partners:
        raise UserError(
            f"'{config.player}' learns best responses to partners: give a pack by --partners"
            + see("how-to/train-with-partners")
        )
    for entry in sorted(set(config.run.seating.split(","))):
        if is_unregistered(entry):
            watcher.say(
                f"note: the player {entry} is not registered: only this process can resume the run "
                f"or load it; coplay.register_player('{entry}', …) makes it known to others"
            )
    with own_folder(folder.path) as own:
        if not is_first():
            watcher, pictures = Watcher(), False
        run = Trainer(config, own, watcher, resume, force)
        if not pictures:
            return run.run()
        return run.run(lambda: after_training(folder, watcher), KeptPage(folder, watcher.say))


def make_config(
    player: str, game: str | Game, game_fields: Mapping[str, Any], fields: Mapping[str, Any]
) -> TrainConfig:
    """A configuration from plain fields; each belongs to the run, to the learner, or (as
    `game.FIELD`) to the game."""
    learner_type = learner_parts(player)[0]
    rest, of_game = game_fields_of(dict(fields), game_fields)
    run_start, learner_start = run_defaults(learner_type), learner_type()
    if preset := rest.get("preset"):
        start = from_preset(preset, player, game if isinstance(game, str) else game.name)
        run_start, learner_start = start.run, start.learner
        if isinstance(game, str):
            of_game = presets()[preset].fields_for(game) | of_game
    name, game_config = game_and_config(game, of_game)
    run, learner = share_fields(rest, run_start, learner_start)
    return TrainConfig(player=player, game_name=name, learner=learner, game=game_config, run=run)


def resumed_config(folder: RunFolder, steps: int | None) -> TrainConfig:
    """The configuration of a run to go on with, perhaps with another total of steps."""
    config = folder.read_config()
    if folder.card_file.exists():
        raise UserError(
            f"{folder.path} is an imported player without the state of its training: it cannot be "
            f"resumed; a new run like it begins with --config {folder.config_file}"
        )
    if steps is None or steps == config.run.steps:
        return config
    longer = dataclasses.replace(config, run=dataclasses.replace(config.run, steps=steps))
    done = folder.checkpoints().last_step()
    if done >= steps + config.run.copies * config.run.rollout:
        raise UserError(
            f"{folder.path} is already at step {done}; --steps {steps} is the total of the run, "
            "not what is added to it"
        )
    return longer


def finished_summary(folder: RunFolder, config: TrainConfig) -> dict[str, Any] | None:
    """The summary of a run that has all its steps behind it, else None."""
    summary = folder.read_summary()
    return summary if summary is not None and summary["steps"] >= config.run.steps else None


def finish_pictures(folder: RunFolder, summary: dict[str, Any], watcher: Watcher) -> None:
    """Draw what a finished run lacks because it was killed after its summary."""
    history = read_rows(folder.path / HISTORY)
    last = {"event": "finished", "step": summary["steps"]}
    if any(last.items() <= row.items() for row in history):
        return
    if not history and folder.curve_file.exists():  # of a version without a history
        return
    opened = OpenedRun(folder.path)
    try:
        after_training(folder, watcher)
        note_in_history(folder.path, "finished", summary["steps"])
        opened.settle()
    finally:
        opened.close()
