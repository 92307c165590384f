"""Folders of pretrained models, and the models in them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import jax

from coplay.core.config import (
    Config,
    PositiveInt,
    Range,
    Seed,
    Share,
    from_json,
    get_field,
    leaves,
    with_fields,
)
from coplay.core.errors import UserError
from coplay.core.files import copy_file
from coplay.core.game import Game
from coplay.core.reading import check_folder, read_field, read_json, short
from coplay.games.registry import game_parts
from coplay.models.goal_codes import GoalModel, GoalModelConfig
from coplay.models.world_model import WorldModel, WorldModelConfig, new_world_model, refuse_unseen
from coplay.nn.networks import view_shape
from coplay.rl.optimisers import OptimiserConfig
from coplay.training import checkpoints
from coplay.training.records import read_rows
from coplay.training.upgrade import FIT, GOALS, as_of_today, is_old, upgraded

FILES = ("config.json", "metrics.jsonl", "model.npz", "summary.json")
"""What the folder of a pretrained model holds."""


@dataclass(frozen=True)
class FitConfig(Config):
    """How a model is fitted to a dataset."""

    epochs: PositiveInt = 12
    """Passes over the samples."""
    batch: PositiveInt = 2048
    """Samples in each gradient step, about."""
    optimiser: OptimiserConfig = field(
        default_factory=lambda: OptimiserConfig(
            learning_rate=2e-3, schedule="linear", max_grad_norm=1.0, epsilon=1e-7
        )
    )
    """Optimiser of the model."""
    held_out: Annotated[float, Range(above=0, below=1)] = 0.2
    """Share of the episodes that is not learned from, to measure by."""
    seed: Seed = 0
    """Seed of all randomness."""


@dataclass(frozen=True)
class PretrainedGoalsConfig(GoalModelConfig):
    """Goal codes and the opponent model that is given them, trained on a dataset."""

    anneal: Share = 0.2
    """Share of the training during which the weights of KL terms grow from 0."""
    discount: Share = 0.95
    """Discount of the rewards that the selector's value predicts."""


@dataclass(frozen=True)
class Pretrained:
    """A folder of a model that was trained on a dataset.

    part: "goals" or "world-model". data: the dataset's folder. game_name, game: of the
    dataset. kinds: its mix. model, fit: the options.
    """

    part: str
    data: str
    game_name: str
    game: Any
    kinds: tuple[str, ...]
    model: Any
    fit: FitConfig

    @property
    def made_game(self) -> Game:
        return game_parts(self.game_name)[1](self.game)


def read_pretrained(folder: Path, part: str, kind: type) -> Pretrained:
    """What a folder says about its model; `kind`: the class of the model's options."""
    if not (folder / "config.json").exists():
        raise UserError(f"{folder} holds no pretrained model; make one with coplay pretrain {part}")
    check_folder(folder)
    where = f"{folder / 'config.json'}"
    data = read_json(folder / "config.json")
    if data.get("part") != part:
        raise UserError(f"{folder} holds {short(data.get('part', 'a run'))}, not {part}")
    model, options = (read_field(data, name, dict, where) for name in ("model", "fit"))
    kinds = [str(name) for name in read_field(data, "kinds", list, where)]
    game_name = read_field(data, "game_name", str, where)
    if is_old(data.get("coplay")):
        model, options = upgraded(GOALS, model)[0], upgraded(FIT, options)[0]
    model, _ = as_of_today(model, {leaf.path for leaf in leaves(kind())})
    options, _ = as_of_today(options, {leaf.path for leaf in leaves(FitConfig())})
    return Pretrained(
        part=part,
        data=read_field(data, "data", str, where),
        game_name=game_name,
        game=from_json(game_parts(game_name)[0], data.get("game"), f"{where}: game"),
        kinds=tuple(kinds),
        model=with_fields(kind(), model, f"{where}: model"),
        fit=with_fields(FitConfig(), options, f"{where}: fit"),
    )


def load_weights(folder: Path, like: Any) -> Any:
    """The model of a folder, in the structure of `like`."""
    try:
        return checkpoints.load(folder / "model.npz", like)[0]
    except checkpoints.DamagedCheckpoint as error:
        raise UserError(f"damaged model: {error}; pretrain it anew") from error


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The rows of a folder's record."""
    rows = read_rows(folder / "metrics.jsonl")
    for row in rows:
        read_field(row, "epoch", int, str(folder / "metrics.jsonl"))
    return rows


def copy_pretrained(source: Path, copy: Path) -> None:
    """Copy the files of a model, and nothing else that lies in its folder."""
    check_folder(source)
    for name in FILES:
        if (source / name).exists():
            copy_file(source / name, copy / name)


def goals_like(folder: Path) -> tuple[Any, Pretrained]:
    """The shapes of a pretrained goal model, and what its folder says about it."""
    about = read_pretrained(folder, "goals", PretrainedGoalsConfig)
    game = about.made_game
    return jax.eval_shape(
        lambda key: GoalModel(about.model, view_shape(game), game.seats, key), jax.random.key(0)
    ), about


def load_goals(folder: Path) -> tuple[GoalModel, Any]:
    """A pretrained goal model, and what its folder says about it."""
    like, about = goals_like(folder)
    return load_weights(folder, like), about


def fresh_world(game: Game, config: WorldModelConfig, seed: int) -> WorldModel:
    refuse_unseen(game)
    planes = view_shape(game).planes[2]
    return new_world_model(config, planes, game.seats, game.actions, jax.random.key(seed))


def world_like(folder: Path) -> tuple[Any, Pretrained]:
    """The shapes of a pretrained world model, and what its folder says about it."""
    about = read_pretrained(folder, "world-model", WorldModelConfig)
    game = about.made_game
    return jax.eval_shape(lambda: fresh_world(game, about.model, 0)), about


def load_world(folder: Path) -> tuple[WorldModel, Any]:
    """A pretrained world model, and what its folder says about it."""
    like, about = world_like(folder)
    return load_weights(folder, like), about


MODELS: dict[str, Callable[[Path], tuple[Any, Any]]] = {
    "goals.from": load_goals,
    "world_model.from": load_world,
}
"""The field of a learner's configuration that names a folder -> what loads it."""

SHAPES: dict[str, Callable[[Path], tuple[Any, Pretrained]]] = {
    "goals.from": goals_like,
    "world_model.from": world_like,
}
"""The same field -> the shapes of the model in a folder, of which only the description is read."""


def load_models(config: Any, game: Game) -> dict[str, Any]:
    """The pretrained models that a learner's configuration names; an error if one is of another
    game."""
    models = {}
    for path in getattr(config, "pretrained", ()):
        if folder := get_field(config, path):
            model, about = MODELS[path](Path(folder))
            if (about.game_name, about.game) != (game.name, getattr(game, "config", None)):
                raise UserError(f"{path} '{folder}' is of another game or another board")
            models[path] = model
    return models
