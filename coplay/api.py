"""The library from Python in a few lines: train and play. See examples/."""

import dataclasses
from pathlib import Path
from typing import Any

from coplay.algorithms.registry import learner_parts
from coplay.core.compilation import use_cache
from coplay.core.config import with_fields
from coplay.core.errors import UserError, unknown
from coplay.core.game import Game
from coplay.core.group import group_players
from coplay.core.player import Player
from coplay.evaluation.cross_play import cross_play as cross_play_of
from coplay.games.registry import game_parts, make_game
from coplay.matches.match import play_match
from coplay.training.config import RunConfig, TrainConfig, run_defaults
from coplay.training.players import make_player
from coplay.training.run import RunFolder
from coplay.training.seating import split_seating
from coplay.training.trainer import Trainer, Watcher


def play(
    game: Game | str,
    seating: str | list[str | Player],
    episodes: int = 1000,
    seed: int = 0,
    copies: int | None = None,
    greedy: bool = False,
) -> dict[str, Any]:
    """Let players play whole episodes; the result is what `coplay play --json` prints.

    seating: one player per seat: text such as "ns,ns,runs/ppo,random", or a list of such entries
        and `Player` objects.
    copies: how many game copies the episodes are spread over; each copy plays its episodes one
        after the other, which matters for players that remember.
    greedy: frozen players take their most probable action.
    """
    use_cache()
    if isinstance(game, str):
        game = make_game(game)
    entries: list[str | Player] = (
        list(split_seating(seating, game)) if isinstance(seating, str) else list(seating)
    )
    if len(entries) != game.seats:
        raise UserError(f"seating has {len(entries)} players for {game.seats} seats")
    players = [
        make_player(entry, game, seat, greedy) if isinstance(entry, str) else entry
        for seat, entry in enumerate(entries)
    ]
    match = play_match(game, group_players(players), episodes, seed, copies)
    names = [e if isinstance(e, str) else type(e).__name__ for e in entries]
    return match.record(game.name, names)


def cross_play(
    game: Game | str,
    players: list[str],
    episodes: int = 1000,
    seed: int = 0,
    copies: int | None = None,
    greedy: bool = False,
) -> dict[str, Any]:
    """Every player among every other; the result is what `coplay play --cross … --json` prints.

    players: runs (each of their seeds is one player) or other entries of a seating.
    """
    use_cache()
    if isinstance(game, str):
        game = make_game(game)
    return cross_play_of(game, players, episodes, seed, copies, greedy).as_json()


def train(
    player: str = "ppo",
    game: str | Game = "stag-hunt",
    out: str | Path = "runs/run",
    *,
    game_fields: dict[str, Any] | None = None,
    resume: bool = False,
    watcher: Watcher | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Train and return the summary, with the run's folder as "folder".

    game: a game by name, or one that is known by its name, such as `coplay.from_pettingzoo` gives.
    fields: of the run (`steps`, `seed`, `seating`, …) or of the learner (`learning_rate`, …), as
        in `coplay train PLAYER --help`. game_fields: of the game.
    resume: go on with the run in `out` (only `steps` may be given).
    """
    folder = RunFolder(Path(out))
    if resume:
        config = resumed_config(folder, fields.pop("steps", None))
        if fields or game_fields:
            raise UserError("a resumed run keeps its configuration: only steps may be given")
    else:
        name = game if isinstance(game, str) else game.name
        config = make_config(player, name, game_fields or {}, fields)
        if isinstance(game, Game):
            config = dataclasses.replace(config, game=_config_of(game, game_fields))
    summary = finished_summary(folder, config) if resume else None
    if summary is None:
        summary = Trainer(config, folder.path, watcher or Watcher(), resume).run()
    return summary | {"folder": str(folder.path)}


def _config_of(game: Game, fields: dict[str, Any] | None) -> Any:
    """The configuration of a game that is known by its name, from which a run can make it again."""
    config = getattr(game, "config", None)
    if type(config) is not game_parts(game.name)[0]:
        raise UserError(f"{game!r} is not known by its name: see coplay.games.register_game")
    if fields:
        raise UserError("game_fields go with a game by name; this one has its configuration")
    return config


def make_config(
    player: str, game: str, game_fields: dict[str, Any], fields: dict[str, Any]
) -> TrainConfig:
    """A configuration from plain fields; each belongs to the run or to the learner."""
    learner_type = learner_parts(player)[0]
    game_type = game_parts(game)[0]
    run_names = {field.name for field in dataclasses.fields(RunConfig)}
    learner_names = {field.name for field in dataclasses.fields(learner_type)}
    for name in fields:
        if name.partition(".")[0] not in run_names | learner_names:
            raise unknown("field", name, run_names | learner_names)
    game_names = [field.name for field in dataclasses.fields(game_type)]
    for name in game_fields:
        if name not in game_names:
            raise unknown(f"field of game '{game}'", name, game_names)
    return TrainConfig(
        player=player,
        game_name=game,
        learner=with_fields(
            learner_type(), {k: v for k, v in fields.items() if k not in run_names}, player
        ),
        game=game_type(**game_fields),
        run=dataclasses.replace(
            run_defaults(learner_type), **{k: v for k, v in fields.items() if k in run_names}
        ),
    )


def resumed_config(folder: RunFolder, steps: int | None) -> TrainConfig:
    """The configuration of a run to go on with, perhaps with another total of steps."""
    config = folder.read_config()
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
