"""Who sits where: seatings written as text, and players made from it.

random                     uniform over legal actions
ns, nh, …                  a scripted player of the game
switcher:ns:nh:step=8      one player, then another, from a step of every episode on
switcher:ns:nh:episode=20  one player, then another, in turn every 20 episodes
mix:ns:nh:random           one of the players, drawn anew for each episode
runs/hop@planner=off       a run's player with fields of its learner set anew (hop)
runs/ppo@seat=2@seed=3@best   the player of a run (default: same seat, first seed, last checkpoint)
ppo, ppo:learning_rate=3e-4   a learner (only in a training run)
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from coplay.config import parse_fields
from coplay.errors import UserError, unknown
from coplay.games.game import Game
from coplay.players.hop import HOP
from coplay.players.hop_config import HOPConfig
from coplay.players.hop_plus import HopPlus
from coplay.players.hop_plus_config import HopPlusConfig
from coplay.players.hyper_config import HyperMAPPOConfig
from coplay.players.hyper_mappo import HyperMAPPO
from coplay.players.learner import Learner
from coplay.players.mappo import MAPPO
from coplay.players.mappo_config import MAPPOConfig
from coplay.players.player import Player
from coplay.players.ppo import PPO, PPOConfig
from coplay.players.ppo_gru import RecurrentPPO, RecurrentPPOConfig
from coplay.players.scripted import Mix, Random, Scripted, Switcher

LEARNERS: dict[str, tuple[type, Callable[..., Learner]]] = {
    "ppo": (PPOConfig, PPO),
    "ppo-gru": (RecurrentPPOConfig, RecurrentPPO),
    "hop": (HOPConfig, HOP),
    "hop-plus": (HopPlusConfig, HopPlus),
    "mappo": (MAPPOConfig, MAPPO),
    "hyper-mappo": (HyperMAPPOConfig, HyperMAPPO),
}
"""name -> (configuration, learner); see `Learner` for how a learner is made."""


def register_learner(name: str, config: type, learner: Callable[..., Learner]) -> None:
    """Make a learner of one's own known by a name, to `coplay.train`, seatings and audits.

    config: a frozen dataclass; learner: made as said in `Learner`.
    """
    LEARNERS[name] = (config, learner)


def learner_parts(name: str) -> tuple[type, Callable[..., Learner]]:
    """The configuration and the class of a learner, or an error with the nearest name."""
    if name not in LEARNERS:
        raise unknown("player to train", name, LEARNERS)
    return LEARNERS[name]


def split_seating(text: str, game: Game, where: str = "--seating") -> list[str]:
    """The entries of a seating such as `ppo,ns,ns,ns`, one per seat."""
    entries = [entry.strip() for entry in text.split(",")]
    if len(entries) != game.seats or not all(entries):
        raise UserError(
            f"{where} '{text}' names {len([e for e in entries if e])} players; "
            f"{game.name} has {game.seats} seats here"
        )
    return entries


def is_learner(entry: str) -> bool:
    """Whether a seating's entry names a learner."""
    return entry.split(":")[0] in LEARNERS


def learner_config(entry: str, config: Any) -> Any:
    """The configuration of an entry like `ppo:learning_rate=3e-4`, over the run's own."""
    return parse_fields(config, entry.split(":")[1:], f"'{entry}'")


def make_player(entry: str, game: Game, seat: int = 0, greedy: bool = False) -> Player:
    """A player that does not learn: scripted, or frozen from a run.

    greedy: a frozen player takes its most probable action instead of sampling.
    """
    name, *options = entry.split(":")
    if name == "random" and not options:
        return Random()
    if name in game.scripted and not options:
        return Scripted(game.scripted[name])
    if name == "switcher":
        return _switcher(entry, options, game, seat, greedy)
    if name == "mix":
        if len(options) < 2:
            raise UserError(f"'{entry}': expected mix:PLAYER:PLAYER…, at least two players")
        return Mix(tuple(make_player(option, game, seat, greedy) for option in options))
    if is_run(entry):
        # Runs hold learners, which need everything above: the import waits until it is needed.
        from coplay.training.run import load_player

        return load_player(entry, game, seat, greedy)
    if is_learner(entry):
        raise UserError(
            f"'{entry}' learns, so it can only sit in a training run (coplay train {name} …); "
            "to play with a trained one give the path of its run"
        )
    valid = ["random", *game.scripted, "switcher:A:B:step=N", "switcher:A:B:episode=N", "mix:A:B…"]
    error = unknown("player", entry, [*valid, *LEARNERS])
    raise UserError(f"{error}, or the path of a run")


def is_run(entry: str) -> bool:
    """Whether a seating's entry is the path of a run."""
    path = entry.split("@")[0]
    return "/" in path or "@" in entry or Path(path).is_dir()


def _switcher(entry: str, options: list[str], game: Game, seat: int, greedy: bool) -> Switcher:
    form = "switcher:FIRST:SECOND:step=N or switcher:FIRST:SECOND:episode=N, N at least 1"
    if len(options) != 3:
        raise UserError(f"'{entry}': expected {form}")
    first, second, rule = options
    unit, _, number = rule.partition("=")
    if unit not in ("step", "episode") or not number.isdigit() or int(number) < 1:
        raise UserError(f"'{rule}' in '{entry}': expected {form}")
    return Switcher(
        make_player(first, game, seat, greedy),
        make_player(second, game, seat, greedy),
        "step" if unit == "step" else "episode",
        int(number),
    )
