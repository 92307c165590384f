"""A run's folder: configuration, logs, checkpoints, summary; and players loaded from it.

config.json   metrics.jsonl   tensorboard/   checkpoints/   summary.json
learning_curve.png   episode.gif
"""

import dataclasses
import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import optax

import coplay
from coplay.config import parse_fields
from coplay.errors import UserError, unknown
from coplay.files import write_json
from coplay.games import game_parts
from coplay.games.game import Game
from coplay.minds.networks import ViewShape, view_shape
from coplay.players.learner import Learner
from coplay.players.player import Player
from coplay.training import checkpoints
from coplay.training.block import TrainState, init_state
from coplay.training.config import TrainConfig
from coplay.training.phases import Phase, plan_phases


@dataclass(frozen=True)
class RunFolder:
    """Where the parts of a run lie."""

    path: Path

    @property
    def config_file(self) -> Path:
        return self.path / "config.json"

    @property
    def metrics_file(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def summary_file(self) -> Path:
        return self.path / "summary.json"

    @property
    def curve_file(self) -> Path:
        return self.path / "learning_curve.png"

    @property
    def gif_file(self) -> Path:
        return self.path / "episode.gif"

    def checkpoints(self, keep: int = 3) -> checkpoints.Checkpoints:
        return checkpoints.Checkpoints(self.path / "checkpoints", keep)

    def exists(self) -> bool:
        return self.config_file.exists()

    def refuse_if_taken(self) -> None:
        """A folder that holds a run already is an error."""
        if self.exists():
            raise UserError(
                f"{self.path} already holds a run; go on with it by --resume {self.path}, or "
                "choose another --out"
            )
        if self.path.exists() and not self.path.is_dir():
            raise UserError(f"{self.path} is a file; choose another --out")

    def write_config(self, config: TrainConfig) -> None:
        write_json(self.config_file, {"coplay": coplay.__version__} | config.as_json())

    def read_config(self) -> TrainConfig:
        if not self.exists():
            raise UserError(f"{self.path} holds no run: there is no {self.config_file}")
        return read_config(self.config_file)

    def read_summary(self) -> dict[str, Any] | None:
        if not self.summary_file.exists():
            return None
        return json.loads(self.summary_file.read_text())


def read_config(path: Path) -> TrainConfig:
    """A run's configuration from its file."""
    try:
        data = json.loads(path.read_text())
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise UserError(f"{path} is not JSON: {error}") from error
    return TrainConfig.from_json(data, str(path))


def versions() -> dict[str, str]:
    """What the numbers of a run may depend on."""
    return {
        "coplay": coplay.__version__,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "equinox": equinox.__version__,
        "optax": optax.__version__,
        "numpy": np.__version__,
        "backend": jax.default_backend(),
    }


def make_game_of(config: TrainConfig) -> Game:
    return game_parts(config.game_name)[1](config.game)


def state_shapes(config: TrainConfig, game: Game, phase: Phase) -> TrainState:
    """The shapes of a run's state in a phase, with its [seed] axis."""
    one = jax.eval_shape(
        lambda key: init_state(phase, game, key, config.run.copies, jnp.arange(game.seats)),
        jax.random.key(0),
    )
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((config.run.seeds, *x.shape), x.dtype), one)


def load_player(entry: str, game: Game, seat: int, greedy: bool = False) -> Player:
    """The player of a run, from an entry like `runs/ppo@seat=2@seed=3@best`."""
    learner, state, seat = load_seat(entry, game, seat)
    return learner.player(state, seat, greedy)


def load_seat(entry: str, game: Game, seat: int) -> tuple[Learner, Any, int]:
    """The learner that an entry names, with the fields set that the entry sets anew; its state;
    and the seat whose player is meant: `seat`, unless the entry says."""
    found = _find(entry, seat)
    _check_same_game(entry, found.run, make_game_of(found.run), game)
    learner = found.learner
    fields = [option.partition("=")[0] for option in found.fields]
    for option, name in zip(found.fields, fields, strict=True):
        if name not in learner.play_fields:
            valid = ["seat=N", "seed=N", "best", *(f"{name}=…" for name in learner.play_fields)]
            raise unknown(f"option in '{entry}'", option, valid)
    if fields:
        config = parse_fields(learner.config, found.fields, f"'{entry}'")
        learner = dataclasses.replace(learner, config=config)
    return learner, found.state, found.seat


def load_learner(entry: str) -> tuple[Learner, Any]:
    """The first learner of a run and its state, from an entry like `runs/ppo@seed=3@best`."""
    found = _find(entry, None)
    return found.learner, found.state


class _Found(NamedTuple):
    """A learner of a run, its state for one seed, and the options that are the learner's own."""

    run: TrainConfig
    learner: Learner
    state: Any
    seat: int
    fields: list[str]


def _find(entry: str, seat: int | None) -> _Found:
    """What an entry means; `seat`: whose learner, unless the entry says; None: the first."""
    path, *options = entry.split("@")
    choice = {"seat": "" if seat is None else str(seat), "seed": ""}
    best, fields = False, []
    for option in options:
        name, _, value = option.partition("=")
        if option == "best":
            best = True
        elif name in choice and value.isdigit():
            choice[name] = value
        else:
            fields.append(option)
    folder = RunFolder(Path(path))
    config = folder.read_config()
    seeds = [config.run.seed + index for index in range(config.run.seeds)]
    seed = int(choice["seed"]) if choice["seed"] else seeds[0]
    if seed not in seeds:
        raise UserError(f"'{entry}': the run has the seeds {seeds}")
    learners, phase = load_learners(folder, config, make_game_of(config), best)
    learned = sorted(s for learner in phase.learners for s in learner.seats)
    wanted = int(choice["seat"]) if choice["seat"] else learned[0]
    for learner, state in reversed(list(zip(phase.learners, learners, strict=True))):
        if wanted in learner.seats:
            of_seed = jax.tree.map(lambda x: x[seeds.index(seed)], state)
            return _Found(config, learner, of_seed, wanted, fields)
    raise UserError(
        f"'{entry}': nobody learned in seat {wanted} of this run; choose one of {learned} by @seat="
    )


def load_learners(
    folder: RunFolder, config: TrainConfig, game: Game, best: bool
) -> tuple[tuple[Any, ...], Phase]:
    """The states of a run's learners, [seed, ...], from its last (or best) checkpoint."""
    phases = plan_phases(config, game)
    shapes = state_shapes(config, game, phases[-1])
    saved = folder.checkpoints()
    if best and saved.best.exists():
        try:
            return checkpoints.load(saved.best, shapes.learners)[0], phases[-1]
        except checkpoints.DamagedCheckpoint as error:
            raise UserError(f"damaged checkpoint: {error}; leave out @best") from error
    # The table differs from phase to phase; the learners do not.
    last: Exception = UserError(f"no checkpoint in {saved.folder}")
    for path in reversed(saved.all()):
        try:
            return checkpoints.load(path, shapes.learners, part=".learners")[0], phases[-1]
        except checkpoints.DamagedCheckpoint as error:
            last = error
    raise UserError(f"no usable checkpoint in {saved.folder}: {last}")


def _check_same_game(entry: str, config: TrainConfig, own: Game, game: Game) -> None:
    """A frozen player needs ego views and actions of the shapes it was trained on."""
    mine, theirs = view_shape(own), view_shape(game)
    if config.game_name == game.name and mine == theirs:
        return
    raise UserError(
        f"'{entry}' was trained on a different game: {config.game_name} with {_words(mine)}; "
        f"this is {game.name} with {_words(theirs)}"
    )


def _words(shape: ViewShape) -> str:
    height, width, planes = shape.planes
    return (
        f"{height}x{width} cells, {planes} planes, {shape.features} features, "
        f"{shape.actions} actions"
    )
