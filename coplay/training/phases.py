"""The phases of a run: who sits where, from which step on.

A run without switches is one phase. Learners keep their parameters over the whole run; in a phase
they act and learn only in the seats they have there.
"""

from dataclasses import dataclass
from typing import Any

from coplay.errors import UserError
from coplay.games.game import Game
from coplay.minds.networks import view_shape
from coplay.players.learner import Learner
from coplay.players.player import Group, Player, group_players
from coplay.players.seating import (
    is_learner,
    learner_config,
    learner_parts,
    make_player,
    split_seating,
)
from coplay.training.config import TrainConfig


@dataclass(frozen=True)
class Phase:
    """From game step `start` on: `entries` [seat] name the players.

    learners: all learners of the run, each with its active seats in this phase (maybe none).
    others: groups of the players that do not learn.
    """

    start: int
    entries: tuple[str, ...]
    learners: tuple[Learner, ...]
    others: tuple[Group, ...]


def plan_phases(config: TrainConfig, game: Game) -> list[Phase]:
    """The phases of a run, in order; everything about seats is validated here."""
    text = config.run.seating or ",".join([config.player] * game.seats)
    seatings = [(0, tuple(split_seating(text, game)))]
    for start, seat, entry in sorted(_parse_switch(text, game) for text in config.run.switch):
        if start >= config.run.steps:
            raise UserError(
                f"switch at step {start}: the run ends at step {config.run.steps} (--steps)"
            )
        entries = list(seatings[-1][1])
        entries[seat] = entry
        if start == seatings[-1][0]:
            seatings.pop()
        seatings.append((start, tuple(entries)))
    learners = _learners(config, game, [entries for _, entries in seatings])
    if not learners:
        raise UserError(
            f"nobody learns: no seat of '{text}' holds '{config.player}'; put it in a seat, or use "
            "coplay play to let these players play"
        )
    return [
        Phase(
            start=start,
            entries=entries,
            learners=tuple(
                learner.seated(_seats(entries, entry)) for entry, learner in learners.items()
            ),
            others=_others(entries, game),
        )
        for start, entries in seatings
    ]


def _parse_switch(text: str, game: Game) -> tuple[int, int, str]:
    step, _, change = text.partition(":")
    seat, _, entry = change.partition("=")
    if not (step.isdigit() and seat.isdigit() and entry):
        raise UserError(f"switch '{text}': expected STEP:SEAT=PLAYER, e.g. 200000:0=ppo")
    if int(seat) >= game.seats:
        raise UserError(f"switch '{text}': seats are 0 to {game.seats - 1}")
    return int(step), int(seat), entry


def _seats(entries: tuple[str, ...], entry: str) -> tuple[int, ...]:
    return tuple(seat for seat, other in enumerate(entries) if other == entry)


def _learners(
    config: TrainConfig, game: Game, seatings: list[tuple[str, ...]]
) -> dict[str, Learner]:
    """Entry -> learner, with parameters for every seat it has in any phase."""
    shape = view_shape(game)
    seats: dict[str, set[int]] = {}
    for entries in seatings:
        for seat, entry in enumerate(entries):
            if is_learner(entry):
                seats.setdefault(entry, set()).add(seat)
    learners = {}
    for entry, mine in seats.items():
        name = entry.split(":")[0]
        kind, learner = learner_parts(name)
        base: Any = config.learner if name == config.player else kind()
        order = tuple(sorted(mine))
        settings = learner_config(entry, base)
        copies, minibatches = config.run.copies, getattr(settings, "minibatches", 1)
        if copies % minibatches:
            raise UserError(
                f"copies ({copies}) must be a multiple of minibatches ({minibatches}): a minibatch "
                "is made of whole game copies"
            )
        made = learner(
            config=settings, shape=shape, game_seats=game.seats, seats=order, active=order
        )
        made.check(game)
        made.check_rollout(config.run.rollout)
        learners[entry] = made
    return learners


def _others(entries: tuple[str, ...], game: Game) -> tuple[Group, ...]:
    """Groups of the players that do not learn, with the seats of the game."""
    seats = [seat for seat, entry in enumerate(entries) if not is_learner(entry)]
    players: list[Player] = [make_player(entries[seat], game, seat) for seat in seats]
    return tuple(
        Group(group.player, tuple(seats[index] for index in group.seats), group.shared)
        for group in group_players(players)
    )
