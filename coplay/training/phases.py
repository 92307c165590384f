"""The phases of a run: who sits where, from which step on.

A run without switches is one phase. Learners keep their parameters over the whole run; in a phase
they act and learn only in the seats they have there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coplay.core.config import get_field
from coplay.core.game import Game
from coplay.core.group import Group, group_players
from coplay.core.learner import Learner
from coplay.core.player import Player
from coplay.training.config import TrainConfig
from coplay.training.learners import plan_learners, plan_seatings
from coplay.training.players import make_player
from coplay.training.pretrained import load_models
from coplay.training.run import load_learner
from coplay.training.seating import is_learner


@dataclass(frozen=True)
class Phase:
    """From game step `start` on: `entries` [seat] name the players.

    learners: all learners of the run, each with its active seats in this phase (maybe none).
    others: groups of the players that do not learn.
    parts: what each learner begins with (`Learner.init`), by the path of its field; none: nothing.
    """

    start: int
    entries: tuple[str, ...]
    learners: tuple[Learner, ...]
    others: tuple[Group, ...]
    parts: tuple[Mapping[str, Any], ...] = ()


def plan_phases(config: TrainConfig, game: Game) -> list[Phase]:
    """The phases of a run, in order; everything about seats is validated here."""
    learners = plan_learners(config, game)
    parts = tuple(load_parts(learner.config, game) for learner in learners.values())
    return [
        Phase(
            start=start,
            entries=entries,
            learners=tuple(
                learner.seated(_seats(entries, entry)) for entry, learner in learners.items()
            ),
            others=_others(entries, game),
            parts=parts,
        )
        for start, entries in plan_seatings(config, game)
    ]


def load_parts(config: Any, game: Game) -> dict[str, Any]:
    """Everything that a learner's configuration says to begin with, by the path of the field:
    pretrained models, and (learner, state) of runs."""
    runs = {path: get_field(config, path) for path in getattr(config, "taken_over", ())}
    return load_models(config, game) | {
        path: load_learner(entry) for path, entry in runs.items() if entry
    }


def _seats(entries: tuple[str, ...], entry: str) -> tuple[int, ...]:
    return tuple(seat for seat, other in enumerate(entries) if other == entry)


def _others(entries: tuple[str, ...], game: Game) -> tuple[Group, ...]:
    """Groups of the players that do not learn, with the seats of the game."""
    seats = [seat for seat, entry in enumerate(entries) if not is_learner(entry)]
    players: list[Player] = [make_player(entries[seat], game, seat) for seat in seats]
    return tuple(
        Group(group.player, tuple(seats[index] for index in group.seats), group.shared)
        for group in group_players(players)
    )
