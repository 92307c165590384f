"""What `coplay inspect` looks at: a model of a folder, and samples it has not learned from."""

from pathlib import Path
from typing import Any, NamedTuple

from coplay.algorithms.hop_plus.learner import HopPlus
from coplay.algorithms.hop_plus.partial import PartialHopPlus
from coplay.core.errors import UserError
from coplay.core.game import Game, require_horizon
from coplay.core.loading import refuse_elsewhere
from coplay.core.reading import read_json
from coplay.matches.bayes_filter import Filtered
from coplay.matches.dataset import Dataset, Samples, load_dataset, samples_of
from coplay.models.goal_codes import GoalModel
from coplay.models.world_model import WorldModel
from coplay.training.collect import collect
from coplay.training.pretrain_goals import Predictions, best_of, chunk_samples, predict_samples
from coplay.training.pretrained import Pretrained, load_goals, load_world, read_metrics
from coplay.training.run import RunFolder, load_run


class Inspection(NamedTuple):
    """What to look at: the folder of a model or of a run.

    data: the dataset to look at it with; None: what was held out in training, or for a run so many
    samples played anew by players of the mix (empty: the game's scripted ones), with this seed.
    """

    run: Path
    data: Path | None = None
    samples: int = 20_000
    mix: str = ""
    seed: int = 0


class SeenGoals(NamedTuple):
    """A goal model and what it says of samples that it has not learned from.

    best: the Bayes filter; None if the players' policies are not known. rows: its record over
    training. title: what was looked at.
    """

    title: str
    game: Game
    kinds: tuple[str, ...]
    samples: Samples
    found: Predictions
    best: Filtered | None
    rows: list[dict[str, Any]]


class SeenWorld(NamedTuple):
    """A world model and samples that it has not learned from; otherwise like `SeenGoals`."""

    title: str
    game: Game
    model: WorldModel
    samples: Samples
    rows: list[dict[str, Any]]


def find_goals(given: Inspection) -> SeenGoals:
    """What the arguments of `coplay inspect opponent-model` and `goals` mean."""
    if _is_run(given.run):
        goals, _, dataset = _of_run(given)
        return seen_goals(str(given.run), goals, dataset, [])
    model, about = load_goals(given.run)
    rows = read_metrics(given.run)
    return seen_goals(str(given.run), model, _held_out(given, about), rows)


def seen_goals(
    title: str, model: GoalModel, dataset: Dataset, rows: list[dict[str, Any]]
) -> SeenGoals:
    samples = samples_of(dataset)
    chunks = chunk_samples(samples, require_horizon(dataset.game), model)
    return SeenGoals(
        title=title,
        game=dataset.game,
        kinds=dataset.kinds,
        samples=samples,
        found=predict_samples(model, chunks),
        best=best_of(dataset),
        rows=rows,
    )


def find_world(given: Inspection) -> SeenWorld:
    """What the arguments of `coplay inspect world-model` mean."""
    if _is_run(given.run):
        _, world, dataset = _of_run(given)
        if world is None:
            raise UserError(f"{given.run} has no world model: train with --imagination above 0")
        return SeenWorld(str(given.run), dataset.game, world, samples_of(dataset), [])
    model, about = load_world(given.run)
    rows = read_metrics(given.run)
    dataset = _held_out(given, about)
    return SeenWorld(str(given.run), dataset.game, model, samples_of(dataset), rows)


def _is_run(folder: Path) -> bool:
    """Whether a folder holds a training run."""
    run = RunFolder(folder)
    return run.exists() and "player" in read_json(run.config_file)


def _of_run(given: Inspection) -> tuple[GoalModel, WorldModel | None, Dataset]:
    """The models of a run of hop-plus, and a dataset: the one that is named, or one played now."""
    run = load_run(given.run)
    learner, state = run.learner(run.learned[0])
    if isinstance(learner, HopPlus):
        goals, world = state.goals, state.world
    elif isinstance(learner, PartialHopPlus):
        goals, world = learner.goals(state), None
    else:
        raise UserError(f"{given.run} is no run of hop-plus: it has no such models")
    if given.data is not None:
        return goals, world, load_dataset(given.data)
    mix = given.mix or ",".join([*run.game.scripted, "random"])
    name, game = run.config.game_name, run.config.game
    return goals, world, collect(name, game, mix, given.samples, given.seed)


def _held_out(given: Inspection, about: Pretrained) -> Dataset:
    """The dataset to look with: one that is named, or what was held out in training."""
    if given.data is not None:
        dataset = load_dataset(given.data)
        if (dataset.game_name, dataset.game_config) != (about.game_name, about.game):
            raise UserError(f"{given.data} is of another game than {given.run}")
        return dataset
    refuse_elsewhere(about.data, given.run, str(given.run))
    if not Path(about.data).exists():
        raise UserError(f"the dataset {about.data} is not there any more: name one by --data")
    return load_dataset(Path(about.data)).split(about.fit.held_out)[1]
