"""A run's folder: configuration, logs, checkpoints, summary; and players loaded from it.

config.json   metrics.jsonl   evaluations.jsonl   tensorboard/   checkpoints/   summary.json
learning_curve.png   episode.gif   began_with/
"""

import dataclasses
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from coplay.core.config import get_field, leaves, parse_fields, with_fields
from coplay.core.errors import UserError, unknown
from coplay.core.files import write_json
from coplay.core.game import Game
from coplay.core.learner import Learner, init_learner
from coplay.core.player import Player
from coplay.core.version import VERSION
from coplay.games.registry import game_parts
from coplay.nn.networks import ViewShape, view_shape
from coplay.training import checkpoints
from coplay.training.config import TrainConfig
from coplay.training.learners import plan_learners
from coplay.training.pretrained import load_models


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
    def evaluations_file(self) -> Path:
        return self.path / "evaluations.jsonl"

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
        """Also copies the pretrained models that the run begins with (`pretrained` of a learner's
        configuration), so that the run can be moved and they may be deleted."""
        for path in getattr(config.learner, "pretrained", ()):
            source, copy = get_field(config.learner, path), self._copy(path)
            if source and not (self.exists() and copy.exists()):
                shutil.copytree(source, copy, dirs_exist_ok=True)
        write_json(self.config_file, {"coplay": VERSION} | config.as_json())

    def _copy(self, path: str) -> Path:
        """Where the run keeps the model that the field at `path` names, such as goals.from."""
        return self.path / "began_with" / path.partition(".")[0]

    def read_config(self) -> TrainConfig:
        if not self.exists():
            raise UserError(f"{self.path} holds no run: there is no {self.config_file}")
        return read_config(self.config_file)

    def begun(self, config: TrainConfig) -> TrainConfig:
        """A run's configuration as it is once the run has begun: it needs nothing outside of its
        folder. Pretrained models are its own copies, of which only the shapes matter now, and what
        else it took over (`taken_over`) is in its checkpoints."""
        learner = config.learner
        own = {path: str(self._copy(path)) for path in getattr(learner, "pretrained", ())}
        own = {path: copy for path, copy in own.items() if Path(copy).exists()}
        taken = {path: "" for path in getattr(learner, "taken_over", ())}
        return dataclasses.replace(config, learner=with_fields(learner, own | taken))

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


def make_game_of(config: TrainConfig) -> Game:
    return game_parts(config.game_name)[1](config.game)


def load_player(entry: str, game: Game, seat: int, greedy: bool = False) -> Player:
    """The player of a run, from an entry like `runs/ppo@seat=2@seed=3@best`."""
    return _player(_open(entry), game, seat, greedy)


def load_seat(entry: str, game: Game, seat: int) -> tuple[Learner, Any, int]:
    """The learner that an entry names, with the fields set that the entry sets anew; its state;
    and the seat whose player is meant: `seat`, unless the entry says."""
    return _of_seat(_open(entry), game, seat)


def load_players(entry: str, game: Game, greedy: bool = False) -> list[Player]:
    """[seat] the players of a run for all seats: of the same seat, or of the first that learned
    where nobody learned in that one."""
    opened = _open(entry)
    learned = opened.learned
    return [
        _player(opened, game, seat if seat in learned else learned[0], greedy)
        for seat in range(game.seats)
    ]


def load_learner(entry: str) -> tuple[Learner, Any]:
    """The first learner of a run and its state, from an entry like `runs/ppo@seed=3@best`."""
    opened = _open(entry)
    return opened.of_seat(opened.learned[0])[:2]


class _Opened(NamedTuple):
    """A run as an entry names it. learners: with their states for one seed. seat: the one that the
    entry names. fields: options that are the learner's own."""

    entry: str
    run: TrainConfig
    learners: list[tuple[Learner, Any]]
    seat: int | None
    fields: list[str]

    @property
    def learned(self) -> list[int]:
        """The seats with a learner."""
        return sorted(seat for learner, _ in self.learners for seat in learner.seats)

    def of_seat(self, seat: int) -> tuple[Learner, Any, int]:
        """The learner of a seat, its state, and the seat, which the entry may name itself."""
        wanted = seat if self.seat is None else self.seat
        for learner, state in reversed(self.learners):
            if wanted in learner.seats:
                return learner, state, wanted
        raise UserError(
            f"'{self.entry}': nobody learned in seat {wanted} of this run; choose one of "
            f"{self.learned} by @seat="
        )


def _player(opened: _Opened, game: Game, seat: int, greedy: bool) -> Player:
    learner, state, seat = _of_seat(opened, game, seat)
    return learner.player(state, seat, greedy)


def _of_seat(opened: _Opened, game: Game, seat: int) -> tuple[Learner, Any, int]:
    entry = opened.entry
    learner, state, seat = opened.of_seat(seat)
    _check_same_game(entry, opened.run, make_game_of(opened.run), game)
    settable = play_fields(learner)
    for option in opened.fields:
        if option.partition("=")[0].replace("-", "_") not in settable:
            valid = ["seat=N", "seed=N", "best", *(f"{path}=…" for path in settable)]
            raise unknown(f"option in '{entry}'", option, valid)
    config = playing(learner.config)
    if opened.fields:
        config = parse_fields(config, opened.fields, f"'{entry}'")
    return dataclasses.replace(learner, config=config), state, seat


def playing(config: Any) -> Any:
    """A learner's configuration with its defaults for playing, where the run left them alone."""
    usual = {leaf.path: leaf.default for leaf in leaves(config)}
    better = getattr(config, "play_defaults", {})
    left = {path: value for path, value in better.items() if get_field(config, path) == usual[path]}
    return with_fields(config, left)


def play_fields(learner: Learner) -> list[str]:
    """The fields that may be set for a player of a run, those of parts one by one."""
    return [
        leaf.path
        for leaf in leaves(learner.config)
        if any(f"{leaf.path}.".startswith(f"{path}.") for path in learner.play_fields)
    ]


def _open(entry: str) -> _Opened:
    path, *options = entry.split("@")
    choice: dict[str, int | None] = {"seat": None, "seed": None}
    best, fields = False, []
    for option in options:
        name, _, value = option.partition("=")
        if option == "best":
            best = True
        elif name in choice and value.isdigit():
            choice[name] = int(value)
        else:
            fields.append(option)
    folder = RunFolder(Path(path))
    config = folder.begun(folder.read_config())
    seeds = [config.run.seed + index for index in range(config.run.seeds)]
    seed = seeds[0] if choice["seed"] is None else choice["seed"]
    if seed not in seeds:
        raise UserError(f"'{entry}': the run has the seeds {seeds}")
    states, learners = load_learners(folder, config, make_game_of(config), best)
    of_seed = jax.tree.map(lambda x: x[seeds.index(seed)], states)
    return _Opened(entry, config, list(zip(learners, of_seed, strict=True)), choice["seat"], fields)


def load_learners(
    folder: RunFolder, config: TrainConfig, game: Game, best: bool
) -> tuple[tuple[Any, ...], tuple[Learner, ...]]:
    """The states of a run's learners, [seed, ...], from its last (or best) checkpoint."""
    learners = tuple(plan_learners(config, game).values())
    shapes = tuple(_shapes(learner, config, game) for learner in learners)
    saved = folder.checkpoints()
    if best and saved.best.exists():
        try:
            return checkpoints.load(saved.best, shapes)[0], learners
        except checkpoints.DamagedCheckpoint as error:
            raise UserError(f"damaged checkpoint: {error}; leave out @best") from error
    # The table differs from phase to phase; the learners do not.
    last: Exception = UserError(f"no checkpoint in {saved.folder}")
    for path in reversed(saved.all()):
        try:
            return checkpoints.load(path, shapes, part=".learners")[0], learners
        except checkpoints.DamagedCheckpoint as error:
            last = error
    raise UserError(f"no usable checkpoint in {saved.folder}: {last}")


def _shapes(learner: Learner, config: TrainConfig, game: Game) -> Any:
    """The shapes of a learner's state, with the [seed] axis of a run."""
    parts = load_models(learner.config, game)
    one = jax.eval_shape(
        lambda key: init_learner(learner, key, jnp.arange(game.seats), parts), jax.random.key(0)
    )
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((config.run.seeds, *x.shape), x.dtype), one)


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
