"""A run's folder: configuration, logs, checkpoints, summary; and players loaded from it.

config.json   metrics.jsonl   evaluations.jsonl   tensorboard/   checkpoints/   summary.json
index.html   replay.html   learning_curve.png   episode.gif   began_with/
"""

import dataclasses
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coplay.algorithms.registry import LEARNERS
from coplay.core.config import get_field, parse_fields, with_fields
from coplay.core.errors import UserError, unknown
from coplay.core.files import write_json
from coplay.core.game import Game
from coplay.core.learner import Learner, init_learner
from coplay.core.loading import loaded, name_folder, refuse_elsewhere
from coplay.core.player import Player
from coplay.core.reading import check_folder, read_field, read_json
from coplay.core.version import VERSION
from coplay.games.registry import GAMES, game_parts
from coplay.matches.stepped_player import SteppedPlayer
from coplay.nn.networks import ViewShape, view_shape
from coplay.training import checkpoints
from coplay.training.config import TrainConfig
from coplay.training.learners import plan_learners, plan_seatings
from coplay.training.partner_packs import is_pack, pack_checksum
from coplay.training.play_defaults import play_fields, playing
from coplay.training.pretrained import copy_pretrained, load_models
from coplay.training.records import read_rows
from coplay.training.seating import is_learner, is_run, unknown_names
from coplay.training.stored import read_summary


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

    @property
    def replay_file(self) -> Path:
        return self.path / "replay.html"

    @property
    def card_file(self) -> Path:
        """What a player that was imported says about itself; no run that was trained has one."""
        return self.path / "card.json"

    @property
    def page_file(self) -> Path:
        return self.path / "index.html"

    def checkpoints(self, keep: int = 3) -> checkpoints.Checkpoints:
        return checkpoints.Checkpoints(self.path / "checkpoints", keep)

    def stamp(self) -> tuple[tuple[str, int], ...]:
        """What changes whenever the configuration or a checkpoint does."""
        files = [self.config_file, *(self.path / "checkpoints").glob("*")]
        return tuple((str(file), file.stat().st_mtime_ns) for file in files if file.exists())

    def exists(self) -> bool:
        return self.config_file.exists()

    def refuse_if_taken(self) -> None:
        """A folder that holds a run already is an error; so is one that no seating could name."""
        if wrong := [sign for sign in ",@:" if sign in self.path.name]:
            raise UserError(
                f"{str(self.path)!r} holds '{wrong[0]}', which has its own meaning in seatings: "
                "choose another --out"
            )
        if self.exists():
            raise UserError(
                f"{self.path} already holds a run; go on with it by --resume {self.path}, or "
                "choose another --out"
            )
        if self.path.exists() and not self.path.is_dir():
            raise UserError(f"{self.path} is a file; choose another --out")
        if self.path.exists():
            check_folder(self.path)

    def write_config(self, config: TrainConfig) -> None:
        """Also copies the pretrained models that the run begins with (`pretrained` of a learner's
        configuration), so that the run can be moved and they may be deleted."""
        for path in getattr(config.learner, "pretrained", ()):
            source, copy = get_field(config.learner, path), self.model_folder(path)
            if source and not (self.exists() and copy.exists()):
                copy_pretrained(Path(source), copy)
        for path in named_paths(config):
            name_folder(path)  # a run that this process writes is its user's
        loads = list(dict.fromkeys([*self.loads(), *loaded()]))
        about: dict[str, Any] = {"coplay": VERSION} | ({"loads": loads} if loads else {})
        if config.run.partners:
            about["partners"] = self._same_partners(config.run.partners)
        write_json(self.config_file, about | config.as_json())

    def loads(self) -> list[str]:
        """The user's own files and modules (`--load`) that the run was made with."""
        if not self.exists():
            return []
        about = {"loads": []} | read_json(self.config_file)
        return [str(name) for name in read_field(about, "loads", list, str(self.config_file))]

    def keep_model(self, path: str, source: Path) -> None:
        """Copy a model that the run begins with, for the field at `path`."""
        copy_pretrained(source, self.model_folder(path))

    def partners(self) -> dict[str, str] | None:
        """The pack that the run is trained with, as {"path", "checksum"}; None: with none."""
        about = read_json(self.config_file) if self.exists() else {}
        if "partners" not in about:
            return None
        where = str(self.config_file)
        stated = read_field(about, "partners", dict, where)
        return {name: read_field(stated, name, str, where) for name in ("path", "checksum")}

    def _same_partners(self, path: str) -> dict[str, str]:
        """What `partners` gives, for a pack as it is; an error if the run began with another."""
        now = {"path": path, "checksum": pack_checksum(Path(path))}
        if self.partners() not in (None, now):
            raise UserError(
                f"{path} does not hold the partners that {self.path} is trained with: put the pack "
                "back as it was, or begin a new run"
            )
        return now

    def model_folder(self, path: str) -> Path:
        """Where the run keeps the model that the field at `path` names, such as goals.from."""
        return self.path / "began_with" / path.partition(".")[0]

    def read_config(self) -> TrainConfig:
        if not self.exists():
            raise UserError(f"{self.path} holds no run: there is no {self.config_file}")
        check_folder(self.path)
        missing = [name for name in self.loads() if name not in loaded()]
        if not missing:
            return read_config(self.config_file)
        try:
            config = read_config(self.config_file)
            entries = [text.partition("=")[2] for text in config.run.switch]
            entries += config.run.seating.split(",") if config.run.seating else []
            if unknown := unknown_names(entries, make_game_of(config)):
                raise UserError(f"unknown player '{unknown[0]}'")
        except UserError as error:
            options = " ".join(f"--load {name}" for name in missing)
            raise UserError(
                f"{self.path} was made with own parts: add {options} if you trust them ({error})"
            ) from error
        return config

    def begun(self, config: TrainConfig) -> TrainConfig:
        """A run's configuration as it is once the run has begun: it needs nothing outside of its
        folder. Pretrained models are its own copies, of which only the shapes matter now, and what
        else it took over (`taken_over`) is in its checkpoints."""
        learner = config.learner
        own = {path: str(self.model_folder(path)) for path in getattr(learner, "pretrained", ())}
        own = {path: copy for path, copy in own.items() if Path(copy).exists()}
        taken = {path: "" for path in getattr(learner, "taken_over", ())}
        return dataclasses.replace(config, learner=with_fields(learner, own | taken))

    def read_summary(self) -> dict[str, Any] | None:
        if not self.summary_file.exists():
            return None
        return read_summary(self.summary_file)


def read_config(path: Path) -> TrainConfig:
    """A run's configuration from its file."""
    config = TrainConfig.from_json(read_json(path), str(path))
    for named in named_paths(config):
        refuse_elsewhere(named, path.parent, str(path))
    return config


def named_paths(config: TrainConfig) -> list[str]:
    """The folders that a configuration names: other runs, pretrained models."""
    texts = [config.run.seating, *(text.partition("=")[2] for text in config.run.switch)]
    entries = [part for text in texts for part in re.split("[,:]", text) if part and is_run(part)]
    learner = config.learner
    fields = (*getattr(learner, "pretrained", ()), *getattr(learner, "taken_over", ()))
    entries += [get_field(learner, field) for field in fields] + [config.run.partners]
    return [entry.strip().split("@")[0] for entry in entries if entry]


def make_game_of(config: TrainConfig) -> Game:
    return game_parts(config.game_name)[1](config.game)


class Run:
    """A training run, opened once: what film, summary, inspection and seatings read.

    folder: where its files lie. config: its configuration. game: made from that. best: its states
    are those of the best checkpoint, else of the last.

        run = coplay.load_run("runs/ppo")
        print(run.config.learner, run.summary["team_mean"])
        player = run.player(seat=0)
        action = player.act(observation)
    """

    def __init__(self, folder: RunFolder, best: bool = False):
        self.folder, self.best = folder, best
        self.config = folder.begun(folder.read_config())
        self.game = make_game_of(self.config)

    @cached_property
    def learners(self) -> tuple[Learner, ...]:
        """Its learners."""
        return tuple(plan_learners(self.config, self.game).values())

    @cached_property
    def states(self) -> tuple[Any, ...]:
        """The state of each learner, [seed, ...]."""
        return load_learners(self.folder, self.config, self.game, self.best)[0]

    @property
    def seeds(self) -> list[int]:
        """The seeds that were trained side by side."""
        return [self.config.run.seed + index for index in range(self.config.run.seeds)]

    @property
    def learned(self) -> list[int]:
        """The seats with a learner; with partners it takes every seat of the game."""
        if self.config.seated_partners:
            return list(range(self.game.seats))
        return sorted(seat for learner in self.learners for seat in learner.seats)

    def learned_in(self, seat: int) -> int:
        """Where the player of a seat learned: in that seat; with partners in seat 0 of the program,
        which stands for every seat of the game."""
        return 0 if self.config.seated_partners else seat

    @property
    def summary(self) -> dict[str, Any] | None:
        """The result of the final evaluation; None: the run is not finished."""
        return self.folder.read_summary()

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """What was logged, a row for each update and seed."""
        return read_rows(self.folder.metrics_file)

    def curve(self, metric: str) -> tuple[np.ndarray, np.ndarray]:
        """A metric over training: [row] the steps, and [seed, row] its values; NaN where it was not
        logged.

            steps, values = coplay.load_run("runs/ppo").curve("reward/seat_0")
            plt.plot(steps, values.mean(axis=0))
        """
        rows = self.metrics
        names = dict.fromkeys(name for row in rows for name in row)
        if metric not in names:
            raise unknown(f"metric of {self.folder.path}", metric, names)
        found = {(row["seed"], row["step"]): row.get(metric) for row in rows}
        steps = sorted({step for _, step in found})
        values = [[found.get((seed, step)) for step in steps] for seed in self.seeds]
        return np.array(steps), np.array(values, float)

    @property
    def entries(self) -> list[str]:
        """[seat] the seating at the end of the run, with its own path in the seats that learned; in
        all seats if it learned with partners that are not here."""
        pack = self.config.seated_partners
        if pack and not is_pack(pack):
            return [str(self.folder.path)] * self.game.seats
        last = plan_seatings(self.config, self.game)[-1][1]
        return [str(self.folder.path) if is_learner(entry) else entry for entry in last]

    def learner(self, seat: int, seed: int | None = None) -> tuple[Learner, Any]:
        """The learner of a seat, and its state of one seed (default: the first)."""
        seed = self.seeds[0] if seed is None else seed
        if seed not in self.seeds:
            raise UserError(f"'{self.folder.path}': the run has the seeds {self.seeds}")
        index = self.seeds.index(seed)
        seat = self.learned_in(seat)
        for learner, states in reversed(list(zip(self.learners, self.states, strict=True))):
            if seat in learner.seats:
                return learner, jax.tree.map(lambda x: x[index], states)
        raise UserError(
            f"'{self.folder.path}': nobody learned in seat {seat} of this run; choose one of "
            f"{self.learned} by @seat="
        )

    def player(
        self, seat: int = 0, *, seed: int | None = None, greedy: bool = False, random_seed: int = 0
    ) -> SteppedPlayer:
        """The player of a seat as it plays after training, to be asked observation by observation.

        seed: which of the run's seeds; default: the first. greedy: it takes its most probable
        action. random_seed: of what it draws.
        """
        learner, state = self.learner(seat, seed)
        learner = dataclasses.replace(
            learner, config=playing(learner.config, learner.play_defaults)
        )
        player = learner.player(state, self.learned_in(seat), greedy)
        return SteppedPlayer(player, self.game, seat, random_seed)


def load_run(path: str | Path, best: bool = False) -> Run:
    """Open the run in a folder; see `Run`.

    best: take the checkpoint with the highest team mean instead of the last.

        player = coplay.load_run("runs/ppo").player(seat=0)
        action = player.act(observation)
    """
    return Run(RunFolder(Path(path)), best)


class RunEntry(NamedTuple):
    """An entry like `runs/ppo@seat=2@seed=3@best`, taken apart.

    text: the entry. run: opened. seat, seed: None where it does not say. fields: options that are
    the learner's own.
    """

    text: str
    run: Run
    seat: int | None
    seed: int | None
    fields: list[str]


def open_entry(text: str) -> RunEntry:
    """An entry of a seating that names a run."""
    path, *options = text.split("@")
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
    about = read_json(folder.config_file) if folder.exists() else {}
    makers = GAMES.get(str(about.get("game_name"))), LEARNERS.get(str(about.get("player")))
    run = _opened(path, str(Path.cwd()), best, makers, folder.stamp())
    return RunEntry(text, run, choice["seat"], choice["seed"], fields)


@lru_cache(maxsize=4)
def _opened(path: str, where: str, best: bool, makers: Any, stamp: Any) -> Run:
    """A run that several seats ask for is opened once: as long as its files (`stamp`), the current
    folder (`where`) and what its names mean (`makers`) stay the same."""
    return load_run(path, best)


def load_player(entry: str, game: Game, seat: int, greedy: bool = False) -> Player:
    """The player of a run, from an entry like `runs/ppo@seat=2@seed=3@best`."""
    return _player(open_entry(entry), game, seat, greedy)


def load_seat(entry: str, game: Game, seat: int) -> tuple[Learner, Any, int]:
    """The learner that an entry names, with the fields set that the entry sets anew; its state;
    and the seat whose player is meant: `seat`, unless the entry says."""
    return _of_seat(open_entry(entry), game, seat)


def load_players(entry: str, game: Game, greedy: bool = False) -> list[Player]:
    """[seat] the players of a run for all seats: of the same seat, or of the first that learned
    where nobody learned in that one."""
    opened = open_entry(entry)
    learned = opened.run.learned
    return [
        _player(opened, game, seat if seat in learned else learned[0], greedy)
        for seat in range(game.seats)
    ]


def load_learner(entry: str) -> tuple[Learner, Any]:
    """The first learner of a run and its state, from an entry like `runs/ppo@seed=3@best`."""
    opened = open_entry(entry)
    seat = opened.run.learned[0] if opened.seat is None else opened.seat
    return opened.run.learner(seat, opened.seed)


def _player(opened: RunEntry, game: Game, seat: int, greedy: bool) -> Player:
    learner, state, seat = _of_seat(opened, game, seat, frozen=True)
    return learner.valued(learner.player(state, seat, greedy), state, seat)


def _of_seat(
    opened: RunEntry, game: Game, seat: int, frozen: bool = False
) -> tuple[Learner, Any, int]:
    """frozen: it plays and does not learn."""
    entry = opened.text
    seat = seat if opened.seat is None else opened.seat
    learner, state = opened.run.learner(seat, opened.seed)
    shape = _shape_there(opened, game, frozen)
    settable = play_fields(learner)
    for option in opened.fields:
        if option.partition("=")[0].replace("-", "_") not in settable:
            valid = ["seat=N", "seed=N", "best", *(f"{path}=…" for path in settable)]
            raise unknown(f"option in '{entry}'", option, valid)
    config = playing(learner.config, learner.play_defaults)
    if opened.fields:
        config = parse_fields(config, opened.fields, f"'{entry}'")
    kind: Any = learner  # all have a shape, see `Learner`
    return dataclasses.replace(kind, config=config, shape=shape), state, opened.run.learned_in(seat)


def load_learners(
    folder: RunFolder, config: TrainConfig, game: Game, best: bool
) -> tuple[tuple[Any, ...], tuple[Learner, ...]]:
    """The states of a run's learners, [seed, ...], from its last (or best) checkpoint."""
    learners = tuple(plan_learners(config, game).values())
    shapes = tuple(learner_shapes(learner, config, game) for learner in learners)
    saved = folder.checkpoints()
    if best and saved.best.exists():
        try:
            return checkpoints.load(saved.best, shapes)[0], learners
        except checkpoints.DamagedCheckpoint as error:
            raise UserError(f"damaged checkpoint: {error}; leave out @best") from error
    # The table differs from phase to phase; the learners do not.
    states, _ = saved.newest(lambda path: checkpoints.load(path, shapes, part=".learners"))
    return states, learners


def learner_shapes(learner: Learner, config: TrainConfig, game: Game) -> Any:
    """The shapes of a learner's state, with the [seed] axis of a run."""
    parts = load_models(learner.config, game)
    one = jax.eval_shape(
        lambda key: init_learner(learner, key, jnp.arange(game.seats), parts), jax.random.key(0)
    )
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((config.run.seeds, *x.shape), x.dtype), one)


def _shape_there(opened: RunEntry, game: Game, frozen: bool) -> ViewShape:
    """The shape of ego views in the game to be played: what a player is shown must be of the shapes
    that it was trained on. The state that a critic sees alone may be another one for those that are
    frozen, as in a team of another size."""
    config = opened.run.config
    mine, theirs = view_shape(opened.run.game), view_shape(game)
    there = dataclasses.replace(mine, hidden=theirs.hidden)
    critic = mine.global_state if frozen else theirs.global_state
    if config.game_name == game.name and there == dataclasses.replace(theirs, global_state=critic):
        return there
    raise UserError(
        f"'{opened.text}' was trained on a different game: {config.game_name} with {_words(mine)}; "
        f"this is {game.name} with {_words(theirs)}"
    )


def _words(shape: ViewShape) -> str:
    height, width, planes = shape.planes
    return (
        f"{height}x{width} cells, {planes} planes, {shape.features} features, "
        f"{shape.actions} actions"
    )
