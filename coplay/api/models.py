"""Datasets and the models of HOP+ from Python: collect, pretrain, inspect."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from coplay.api.arguments import Entry, game_and_config, seating_text, share_fields, watching
from coplay.core.compilation import use_cache
from coplay.core.config import PositiveInt, Seed, checked
from coplay.core.errors import UserError, unknown
from coplay.core.game import Game
from coplay.matches.dataset import Dataset, load_dataset, refuse_if_taken, save_dataset
from coplay.models.world_model import WorldModelConfig
from coplay.reports import inspect_goals, inspect_opponent, inspect_world
from coplay.reports.inspected import Inspection, find_goals, find_world
from coplay.training.collect import collect as collect_episodes
from coplay.training.preparation import GOALS_FIT
from coplay.training.pretrain_goals import pretrain_goals
from coplay.training.pretrain_world import pretrain_world
from coplay.training.pretrained import FitConfig, PretrainedGoalsConfig
from coplay.training.trainer import Watcher

FIT = {
    "goals": GOALS_FIT,
    "world-model": FitConfig(batch=1024),
}
"""Part -> how it is fitted where nothing is said."""

INSPECTED = ("opponent-model", "world-model", "goals")


def collect(
    out: str | Path,
    game: str | Game = "stag-hunt",
    mix: str | Sequence[Entry] = "ns,nh,random",
    samples: int = 107_010,
    seed: int = 0,
    game_fields: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Let players of a mix play whole episodes and keep what every seat saw and did; the result is
    what `coplay collect --json` prints.

    out: folder of the new dataset. mix: players; each seat's is drawn uniformly from them, anew for
        each episode. samples: how many steps of seats in the game.

        coplay.collect("data/small", "stag-hunt", ["ns", "nh", MyPlayer()], samples=20_000)
    """
    checked(PositiveInt, samples, "samples")
    checked(Seed, seed, "seed")
    name, config = game_and_config(game, game_fields)
    dataset = collect_dataset(Path(out), name, config, seating_text(mix), samples, seed)
    return dataset.about() | {"out": str(out)}


def collect_dataset(
    out: Path,
    game_name: str,
    game: Any,
    mix: str,
    samples: int,
    seed: int,
    watcher: Watcher | None = None,
) -> Dataset:
    """Play and keep."""
    use_cache()
    refuse_if_taken(out)
    told = (watcher or Watcher()).work
    dataset = collect_episodes(game_name, game, mix, samples, seed, told)
    save_dataset(out, dataset)
    return dataset


def pretrain(
    part: Literal["goals", "world-model"],
    data: str | Path,
    out: str | Path,
    *,
    quiet: bool = False,
    watcher: Watcher | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Train goal codes with an opponent model, or a world model, on a dataset; the result is what
    `coplay pretrain PART --json` prints.

    data: folder of the dataset. out: folder of the new model. fields: of the model and of its
        training, as in `coplay pretrain PART --help`.

        coplay.pretrain("goals", "data/small", "models/goals", epochs=4)
    """
    if part not in FIT:
        raise unknown("part to pretrain", part, FIT)
    kind = PretrainedGoalsConfig() if part == "goals" else WorldModelConfig()
    fit, model = share_fields(fields, FIT[part], kind)
    with watching(watcher, quiet) as told:
        return run_pretraining(part, Path(data), Path(out), model, fit, told)


def run_pretraining(
    part: str, data: Path, out: Path, model: Any, fit: FitConfig, watcher: Watcher
) -> dict[str, Any]:
    """Train a part on a dataset and keep it."""
    use_cache()
    refuse_if_taken(out)
    run: Any = pretrain_goals if part == "goals" else pretrain_world
    return run(data, load_dataset(data), model, fit, out, watcher.say, watcher.work)


def inspect(
    part: Literal["opponent-model", "world-model", "goals"],
    run: str | Path,
    *,
    data: str | Path | None = None,
    samples: int = 20_000,
    mix: str | Sequence[Entry] = "",
    seed: int = 0,
    out: str | Path | None = None,
) -> dict[str, Any]:
    """Look at what a model knows: a page with pictures in the folder `out`; the result is what
    `coplay inspect PART --json` prints.

    run: folder of the model, or of a run of hop-plus. data: dataset to look at it with; default:
        what was held out of the one it was trained on. samples, mix: with a run and without a
        dataset, how many samples to play for, and with whom.

        coplay.inspect("goals", "models/goals")["foreseen"]
    """
    if part not in INSPECTED:
        raise unknown("part to inspect", part, INSPECTED)
    checked(PositiveInt, samples, "samples")
    checked(Seed, seed, "seed")
    use_cache()
    folder = Path(out) if out is not None else Path(run) / f"inspect-{part}"
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; choose another --out")
    given = Inspection(
        Path(run), Path(data) if data is not None else None, samples, seating_text(mix), seed
    )
    if part == "world-model":
        return inspect_world.write(folder, find_world(given))
    if part == "goals":
        return inspect_goals.write(folder, find_goals(given))
    return inspect_opponent.write(folder, find_goals(given))
