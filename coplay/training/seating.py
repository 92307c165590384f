"""Who sits where: seatings written as text.

random                     uniform over legal actions
ns, nh, …                  a scripted player of the game, or one of `coplay.register_player`
switcher:ns:nh:step=8      one player, then another, from a step of every episode on
switcher:ns:nh:episode=20  one player, then another, in turn every 20 episodes
mix:ns:nh:random           one of the players, drawn anew for each episode
runs/hop@planner=none      a run's player with fields of its learner set anew (hop)
runs/ppo@seat=2@seed=3@best   the player of a run (default: same seat, first seed, last checkpoint)
packs/sh4@partner=3        a partner of a pack, by its number or its name
packs/sh4/train@response=3  the best response to that partner, where a pack holds them
packs/sh4@partner=any      one of its partners, drawn; the same in all seats with this entry
packs/sh4@partner=each     one of its partners, drawn for each seat
ppo, ppo:optimiser.learning_rate=3e-4   a learner (only in a training run)
"""

from pathlib import Path
from typing import Any

from coplay.algorithms.registry import LEARNERS, PLAYERS
from coplay.core.config import parse_fields
from coplay.core.errors import UserError
from coplay.core.game import Game


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
    """The configuration of an entry like `ppo:optimiser.learning_rate=3e-4`, over the run's own."""
    return parse_fields(config, entry.split(":")[1:], f"'{entry}'")


def is_run(entry: str) -> bool:
    """Whether a seating's entry is the path of a run."""
    path = entry.split("@")[0]
    return "/" in path or "@" in entry or Path(path).is_dir()


def unknown_names(entries: list[str], game: Game) -> list[str]:
    """Names in entries of a seating that nothing is known by."""
    known = {"random", "switcher", "mix", *game.scripted, *PLAYERS, *LEARNERS}
    parts = [part for entry in entries if not is_run(entry) for part in entry.split(":")]
    return [part for part in parts if part not in known and "=" not in part and not is_run(part)]
