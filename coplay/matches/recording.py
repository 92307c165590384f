"""Episodes with all that the players thought, as plain data: what a replay shows.

Everything is made of dictionaries, lists, texts and numbers, so that it can be written as JSON.
`docs/reference/files.md` says what each part means.
"""

import gc
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from coplay.core.errors import UserError
from coplay.core.game import Game, State
from coplay.core.goals import hindsight
from coplay.core.group import group_players
from coplay.core.player import Candidates, Insight, Plan, Player, View
from coplay.matches.episodes import Step, play_steps
from coplay.matches.foresight import Foresight
from coplay.matches.plan_tree import merged_tree, principal_variation
from coplay.matches.world_model_quality import FAULTS

SCHEMA = 1
"""The version of the records."""
DIGITS = 4
"""Digits after the point of recorded numbers."""
BLOCK = 128
"""Steps are looked back on in so many at a time."""
MANY = 24
"""Numbers from which an array is rounded as a whole: fewer are rounded one by one sooner."""
LEAST_PROBABILITY = 0.005
"""Of predicted boards, what is less probable is left out."""


class EpisodeRecord(NamedTuple):
    """One episode. number: from 0, in the order of play. steps: a record of each step, see
    `docs/reference/files.md`. states: one more than steps. actions, rewards: [time, seat].
    surprise: the mean of −log p over all actions that were predicted; None: nobody predicts."""

    number: int
    steps: list[dict[str, Any]]
    states: list[State]
    actions: np.ndarray
    rewards: np.ndarray
    surprise: float | None


def describe(
    game: Game, players: Sequence[Player], labels: Sequence[str], seed: int
) -> dict[str, Any]:
    """What is the same in all steps: the game, and who sits in the seats."""
    goals = None if game.goals is None else list(game.goals.names)
    moves = [None if move is None else list(move) for move in game.action_moves]
    return {
        "kind": "replay",
        "schema": SCHEMA,
        "game": game.name,
        "actions": list(game.action_names),
        "moves": moves,
        "goals": goals,
        "events": list(game.event_names),
        "planes": list(game.plane_names),
        "full_view": game.full_view,
        "horizon": game.horizon,
        "seed": seed,
        "seats": [
            {"player": label} | _described(player.candidates(game))
            for player, label in zip(players, labels, strict=True)
        ],
    }


def _described(candidates: Candidates | None) -> dict[str, Any]:
    if candidates is None:
        return {}
    found: dict[str, Any] = {"candidates": list(candidates.names)}
    if candidates.codes is not None:
        found["map"] = _numbers(flat_map(np.asarray(candidates.codes)))
    return found


def flat_map(codes: np.ndarray) -> np.ndarray:
    """Codes [candidate, number] on their first two principal axes: [candidate, 2]."""
    centred = codes - codes.mean(0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:2]
    # The sign of an axis is arbitrary: its largest number shall be positive.
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(1)])
    flat = centred @ (axes * signs[:, None]).T
    return np.pad(flat, ((0, 0), (0, 2 - flat.shape[1])))


def record_episodes(
    game: Game, players: Sequence[Player], episodes: int, seed: int, full_trees: bool = False
) -> list[EpisodeRecord]:
    """Play whole episodes, one after the other, and keep what happened and what was thought.

    The same games are played as without recording. full_trees: keep every node of every tree.
    """
    return records_of(
        game, list(play_steps(game, group_players(players), episodes, seed)), full_trees
    )


def records_of(game: Game, steps: list[Step], full_trees: bool = False) -> list[EpisodeRecord]:
    """The records of whole episodes that were played."""
    if not steps:
        raise UserError("no step was played")
    goals = _goals_in_hindsight(game, steps)
    with _without_collecting():
        return [
            _episode(game, [steps[index] for index in rows], goals[rows], full_trees)
            for rows in _rows_of_episodes(steps)
        ]


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Records are very many small lists without cycles. Looking for cycles among them, and among
    all that JAX holds, takes longer than making them."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _rows_of_episodes(steps: list[Step]) -> Iterator[list[int]]:
    numbers = np.array([step.episode for step in steps])
    for number in np.unique(numbers):
        yield np.flatnonzero(numbers == number).tolist()


def _goals_in_hindsight(game: Game, steps: list[Step]) -> Int[np.ndarray, "time seat"]:
    """What each seat was after in each step, as it turned out; -1: it showed no goal."""
    if game.goals is None:
        return np.full((len(steps), game.seats), -1)
    # Filled up with steps in which nothing happens, since every length is a program of its own.
    size = -(-len(steps) // BLOCK) * BLOCK
    realised, over = np.full((size, game.seats), -1), np.ones(size, bool)
    realised[: len(steps)] = [np.asarray(step.realised) for step in steps]
    over[: len(steps)] = [step.over for step in steps]
    goals = _hindsight(jnp.asarray(realised), jnp.asarray(over), game.goals.unrealised)
    return np.asarray(goals)[: len(steps)]


_hindsight = jax.jit(hindsight, static_argnames="unrealised")


def _episode(
    game: Game, steps: list[Step], goals: Int[np.ndarray, "time seat"], full_trees: bool
) -> EpisodeRecord:
    records = [_step(game, step, goal, full_trees) for step, goal in zip(steps, goals, strict=True)]
    surprises = [
        value
        for record in records
        for seat in record["seats"]
        for value in seat.get("surprise", ())
        if value is not None
    ]
    return EpisodeRecord(
        steps[0].episode,
        records,
        [*(step.state for step in steps), steps[-1].after],
        np.stack([step.actions for step in steps]),
        np.stack([step.rewards for step in steps]),
        float(np.mean(surprises)) if surprises else None,
    )


def played_step(game: Game, step: Step) -> dict[str, Any]:
    """The record of a step of an episode that goes on, in which goals are not known yet."""
    return _step(game, step, np.full(game.seats, -1), full_trees=False)


def _step(
    game: Game, step: Step, goals: Int[np.ndarray, " seat"], full_trees: bool
) -> dict[str, Any]:
    """The record of a step."""
    return {
        "kind": "step",
        "episode": step.episode,
        "time": step.time,
        "over": step.over,
        "seats": [
            _seat(game, step, seat, int(goals[seat]), full_trees) for seat in range(game.seats)
        ],
    }


def _seat(game: Game, step: Step, seat: int, goal: int, full_trees: bool) -> dict[str, Any]:
    """What one seat saw, thought, did and got in a step. What there is not is left out."""
    insight = step.insights[seat]
    record = thinking(
        bool(step.alive[seat]), step.views[seat], step.probabilities[seat], insight, full_trees
    )
    if not record["alive"]:
        return record
    record |= {"action": int(step.actions[seat]), "reward": _numbers(step.rewards[seat])}
    if goal >= 0:
        record["goal"] = goal
    if step.realised is not None and step.realised[seat] >= 0:
        record["realised"] = int(step.realised[seat])
    if step.events is not None:
        record["events"] = np.flatnonzero(step.events[seat]).tolist()
    if insight is not None and insight.action is not None:
        record["surprise"] = _surprise(insight.action, step, seat)
    if step.foresights and (foresight := step.foresights[seat]) is not None:
        record["world"] = _foreseen(foresight)
    return record


def _foreseen(foresight: Foresight) -> dict[str, Any]:
    """What the model of the world said of a step, beside what came."""
    board, reward, leaves = (np.asarray(foresight.foreseen[place]) for place in (0, 2, 3))
    shown = np.where(board < LEAST_PROBABILITY, 0.0, board)
    return {
        "board": _planes(shown),
        "true": _planes(np.asarray(foresight.came)),
        "reward": _numbers(reward),
        "leaves": _numbers(leaves),
        "error": float(f"{float(foresight.error):.3g}"),
        "impossible": [name for name, is_ in zip(FAULTS, foresight.impossible, strict=True) if is_],
    }


def thinking(
    alive: bool, view: View, probabilities: Any, insight: Insight | None, full_trees: bool = False
) -> dict[str, Any]:
    """What one seat sees and thinks before it acts. view: without an axis of copies.
    probabilities: [action] of what it does."""
    if not alive:
        return {"alive": False}
    legal = np.asarray(view.observation.legal)
    record = {
        "alive": True,
        "legal": np.flatnonzero(legal).tolist(),
        "policy": _numbers(probabilities),
        "view": _view(view),
    }
    return record | ({} if insight is None else _thought(insight, legal, full_trees))


def _thought(insight: Insight, legal: np.ndarray, full_trees: bool) -> dict[str, Any]:
    """The parts of an insight that there are."""
    found: dict[str, Any] = {}
    if insight.value is not None:
        found["value"] = _numbers(insight.value)
    if insight.belief is not None:
        found["belief"] = _numbers(insight.belief)
    if insight.action is not None:
        found["predicted"] = _numbers(insight.action)
    if insight.plan is not None:
        found |= _planned(insight.plan, legal, full_trees)
        if insight.imagined is not None:
            ahead = zip(insight.imagined, found["variation"], strict=False)
            found["imagined"] = [_planes(np.asarray(board)) for board, _ in ahead]
    if insight.context is not None:
        found["context"] = _numbers(insight.context)
    if insight.figures:
        found["figures"] = {name: _numbers(value) for name, value in insight.figures.items()}
    return found


def _surprise(predicted: Any, step: Step, seat: int) -> list[float | None]:
    """−log p of what each co-player did, the next seat first; None for those that had left."""
    seats = len(step.actions)
    found: list[float | None] = []
    for other, probabilities in enumerate(np.asarray(predicted)):
        who = (seat + 1 + other) % seats
        p = max(float(probabilities[step.actions[who]]), 1e-9)
        found.append(round(-math.log(p), DIGITS) + 0.0 if step.alive[who] else None)
    return found


def _planned(plan: Plan, legal: np.ndarray, full_trees: bool) -> dict[str, Any]:
    tree = merged_tree(plan.trees, least=1 if full_trees else 2, depth=None if full_trees else 4)
    # What the search says of actions that are not legal means nothing.
    visits = np.where(legal, np.asarray(plan.visits), 0)
    return {
        "q": [value if fine else None for value, fine in zip(_numbers(plan.q), legal, strict=True)],
        "visits": visits.astype(int).tolist(),
        "variation": principal_variation(tree),
        "tree": tree,
    }


def _view(view: View) -> dict[str, Any]:
    """The ego view: where each plane is not 0, as [row, column] or [row, column, number], and the
    features."""
    planes = np.asarray(view.observation.planes)
    found: dict[str, Any] = {"features": _numbers(view.observation.features)}
    if planes.shape[-1]:
        found["size"] = list(planes.shape[:2])
        found["planes"] = _planes(planes)
    return found


def _planes(planes: np.ndarray) -> list[list[list[float]]]:
    """Where each plane of [row, column, plane] is not 0."""
    found: list[list[list[float]]] = [[] for _ in range(planes.shape[-1])]
    places = np.argwhere(planes)
    for (row, column, plane), value in zip(
        places.tolist(), planes[planes != 0].tolist(), strict=True
    ):
        found[plane].append([row, column] if value == 1 else [row, column, _rounded(value)])
    return found


def _numbers(values: Any) -> Any:
    """Numbers as JSON has them, rounded; None for what is no number."""
    array = np.asarray(values)
    if array.size > MANY and bool(np.isfinite(array).all()):
        return (np.round(array.astype(np.float64), DIGITS) + 0.0).tolist()
    return _rounded(array.tolist())


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return round(value, DIGITS) + 0.0 if math.isfinite(value) else None
