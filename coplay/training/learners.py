"""The learners of a run, and the seatings they learn in."""

from typing import Any

from coplay.algorithms.registry import LEARNERS, learner_parts, new_learner
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.learner import Learner
from coplay.games.adapters.worker_game import WorkerGame
from coplay.nn.networks import view_shape
from coplay.training.config import TrainConfig
from coplay.training.seating import is_learner, learner_config, split_seating


def plan_seatings(config: TrainConfig, game: Game) -> list[tuple[int, tuple[str, ...]]]:
    """From which game step on who sits where: (step, entries [seat]), in order."""
    text = config.run.seating or ",".join(_everybody(config, game))
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
    return seatings


def plan_learners(config: TrainConfig, game: Game) -> dict[str, Learner]:
    """Entry -> learner, with parameters for every seat it has in any phase."""
    seatings = [entries for _, entries in plan_seatings(config, game)]
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
        _check_copies(config.run.copies, settings)
        made = new_learner(
            learner,
            config=settings,
            shape=shape,
            game_seats=game.seats,
            seats=order,
            active=order,
        )
        made.check(game)
        if config.seated_partners:
            _check_partners(name, made, game)
        made.check_rollout(config.run.rollout)
        learners[entry] = made
    if not learners:
        raise UserError(
            f"nobody learns: no seat of '{','.join(seatings[0])}' holds '{config.player}'; put it "
            "in a seat, or use coplay play to let these players play"
        )
    return learners


def copies_unit(settings: Any) -> int:
    """The number that a learner's game copies are a multiple of."""
    return int(getattr(settings, "minibatches", 1) * getattr(settings, "library", 1))


def _check_copies(copies: int, settings: Any) -> None:
    """An error if game copies cannot be split as a learner needs them."""
    minibatches, library = getattr(settings, "minibatches", 1), getattr(settings, "library", 1)
    if copies % copies_unit(settings):
        words = f"minibatches ({minibatches})" + f" times library ({library})" * (library > 1)
        raise UserError(
            f"copies ({copies}) must be a multiple of {words}: a minibatch is made of whole game "
            "copies"
        )


def _everybody(config: TrainConfig, game: Game) -> list[str]:
    """Who sits where if no seating is given: the learner in every seat, or among partners."""
    if not config.seated_partners:
        return [config.player] * game.seats
    drawn = "any" if config.run.company == "alike" else "each"
    return [config.player, *[f"{config.run.partners}@partner={drawn}"] * (game.seats - 1)]


def _check_partners(name: str, learner: Learner, game: Game) -> None:
    """An error if a learner cannot train with partners, or not in this game."""
    if not learner.meets_partners:
        able = ", ".join(
            name for name, (_, kind) in LEARNERS.items() if getattr(kind, "meets_partners", False)
        )
        raise UserError(
            f"'{name}' does not train with --partners, because its memory cannot be emptied when "
            f"they change; learners that do: {able}"
        )
    if game.seats < 2 or not game.symmetric or isinstance(game, WorkerGame):
        raise UserError(
            f"--partners needs a compiled game whose seats can be renumbered, such as stag-hunt; "
            f"{game.name} is none: name players in --seating"
        )


def _parse_switch(text: str, game: Game) -> tuple[int, int, str]:
    step, _, change = text.partition(":")
    seat, _, entry = change.partition("=")
    if not (step.isdigit() and seat.isdigit() and entry):
        raise UserError(f"switch '{text}': expected STEP:SEAT=PLAYER, e.g. 200000:0=ppo")
    if int(seat) >= game.seats:
        raise UserError(f"switch '{text}': seats are 0 to {game.seats - 1}")
    return int(step), int(seat), entry
