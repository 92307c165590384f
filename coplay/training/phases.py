"""The phases of a run: who sits where, from which step on.

A run without switches is one phase. Learners keep their parameters over the whole run; in a phase
they act and learn only in the seats they have there.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from coplay.core.config import get_field
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.group import Group, group_players
from coplay.core.learner import Learner
from coplay.core.player import Player
from coplay.matches.population import Population
from coplay.training.config import TrainConfig
from coplay.training.learners import plan_learners, plan_seatings
from coplay.training.partner_packs import load_partner
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
    meeting: episodes after which partners are drawn anew; 0: the run is not with `--partners`.
    """

    start: int
    entries: tuple[str, ...]
    learners: tuple[Learner, ...]
    others: tuple[Group, ...]
    parts: tuple[Mapping[str, Any], ...] = ()
    meeting: int = 0

    def order(self, copies: int, seats: int) -> Int[Array, "copy seat"] | None:
        """How the seats of each copy are numbered (see `rollout`): among partners the learner is
        seat 0 of the program, and takes the seats of the game in turn from copy to copy."""
        if not self.meeting:
            return None
        return (jnp.arange(copies)[:, None] + jnp.arange(seats)) % seats


def plan_phases(config: TrainConfig, game: Game) -> list[Phase]:
    """The phases of a run, in order; everything about seats is validated here."""
    learners = plan_learners(config, game)
    parts = tuple(load_parts(learner.config, game) for learner in learners.values())
    meeting = config.run.meeting_episodes if config.seated_partners else 0
    return [
        Phase(
            start=start,
            entries=entries,
            learners=tuple(
                learner.seated(_seats(entries, entry)) for entry, learner in learners.items()
            ),
            others=_partners(config, next(iter(learners.values())), entries, game)
            if meeting
            else _others(entries, game),
            parts=parts,
            meeting=meeting,
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


def _partners(
    config: TrainConfig, learner: Learner, entries: tuple[str, ...], game: Game
) -> tuple[Group, ...]:
    """The partners of a run with `--partners`, in all seats but the learner's, which is the
    first."""
    drawn = load_partner(entries[1], game)
    assert isinstance(drawn, Population)
    drawn = dataclasses.replace(drawn, meeting=config.run.meeting_episodes)
    chosen = learner.partners_by_copy(drawn.size)
    if chosen is not None:
        if not drawn.alike:
            raise UserError(f"'{config.player}' knows companies of one kind: leave out --company")
        drawn = dataclasses.replace(drawn, place=drawn.place[np.array(chosen)], fixed=True)
    return (Group(drawn, tuple(range(1, game.seats)), True),)


def _others(entries: tuple[str, ...], game: Game) -> tuple[Group, ...]:
    """Groups of the players that do not learn, with the seats of the game."""
    seats = [seat for seat, entry in enumerate(entries) if not is_learner(entry)]
    players: list[Player] = [make_player(entries[seat], game, seat) for seat in seats]
    return tuple(
        Group(group.player, tuple(seats[index] for index in group.seats), group.shared)
        for group in group_players(players)
    )
