"""Beliefs about what is out of sight, against Bayes' rule over all states in plain Python."""

import copy
from collections import defaultdict
from itertools import permutations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coplay.core.game import Observation
from coplay.core.hidden import Imagined
from coplay.games.registry import make_game
from coplay.models.particles import CoPlayers, Particles, begin, draw, follow
from coplay.nn import categorical
from tests.games import reference

SEEN, UNSEEN = [1, 5, 2, 3, 4, 1, 6], [4, 1, 3, 2, 1, 2, 1]
"""Weights of the co-player's actions where it sees the other player, and where it does not."""
RULES = reference.Rules(height=2, width=5, players=2, stags=0, hares=2, horizon=6, view=1)


class ByWeights(CoPlayers):
    """A co-player that takes legal actions by the weights."""

    def judge(self, views: Observation, joint: Any, memory: Any) -> tuple[Any, Any]:
        sees = jnp.any(views.planes[..., 1], axis=(-1, -2))
        weights = jnp.where(sees[..., None], jnp.array(SEEN), jnp.array(UNSEEN))
        log_probs = categorical.log_policy(jnp.log(weights.astype(jnp.float32)), views.legal)
        return categorical.take(log_probs, joint[..., 0]), memory


def chance_of(board: reference.Board, action: int) -> float:
    """The same in plain Python: the probability that player 1 acts so."""
    legal = reference.legal_actions(board, 1)
    sees = any(cell[1] for row in reference.observe_planes(board, 1) for cell in row)
    weights = SEEN if sees else UNSEEN
    return (action in legal) * weights[action] / sum(weights[one] for one in legal)


Situation = tuple[int, int, bool, tuple[int, ...]]
"""The own cell, the other's, whether it is in the game, and the cells of the hares."""


def situation(board: reference.Board) -> Situation:
    def number(cell: tuple[int, int]) -> int:
        return cell[0] * RULES.width + cell[1]

    me, other = board.players
    where = number(other.cell) if other.in_game else -1
    return number(me.cell), where, other.in_game, tuple(sorted(map(number, board.hares)))


def exact(views: list[Any], joint: list[list[int]]) -> dict[Situation, float]:
    """What a seat believes that saw these views and knows who did what between them: all situations
    that an episode may begin with, one after the other."""
    cells = [(row, column) for row in range(RULES.height) for column in range(RULES.width)]
    found: defaultdict[Situation, float] = defaultdict(float)
    for me, other, *hares in permutations(cells, 4):
        board = reference.Board(
            RULES, [reference.Player(me), reference.Player(other)], set(), set(hares)
        )
        weight = float(reference.observe_planes(board, 0) == views[0])
        for done, seen in zip(joint, views[1:], strict=True):
            if board.players[1].in_game:
                weight *= chance_of(board, done[1])
            elif done[1] != board.players[1].last:
                weight = 0.0
            if not weight:
                break
            board = copy.deepcopy(board)
            reference.step(board, list(done))
            weight *= reference.observe_planes(board, 0) == seen
        found[situation(board)] += weight
    total = sum(found.values())
    return {one: weight / total for one, weight in found.items() if weight}


def believed(particles: Particles) -> dict[Situation, float]:
    """The weights of all situations in the belief about the only copy."""
    state = jax.tree.map(lambda x: np.asarray(x)[0], particles.imagined.state)
    found: defaultdict[Situation, float] = defaultdict(float)
    for row, weight in enumerate(np.asarray(particles.weights)[0]):
        alive = bool(state.alive[row, 1])
        hares = sorted(state.prey[row][state.prey_alive[row]].tolist())
        where = int(state.cell[row, 1]) if alive else -1
        found[int(state.cell[row, 0]), where, alive, tuple(hares)] += float(weight)
    return found


GAME = make_game("stag-hunt", height=2, width=5, players=2, stags=0, hares=2, horizon=6, view=1)
NUMBER = 20_000


def own_view(state: Any) -> Observation:
    seen = jax.tree.map(lambda x: x[None, 0], GAME.observe(state))
    return seen


@jax.jit
def begun(key: Any, state: Any) -> Particles:
    nothing = jnp.zeros((1, NUMBER, 1, 0))
    return begin(GAME, key, own_view(state), nothing, NUMBER)


@jax.jit
def followed(key: Any, particles: Particles, after: Any, reward: Any) -> Particles:
    return follow(GAME, ByWeights(), key, particles, own_view(after), reward[None])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_beliefs_are_those_of_bayes_rule(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state: Any = GAME.reset(jax.random.key(seed))
    particles = begun(jax.random.key(1), state)
    views = [np.asarray(own_view(state).planes[0]).astype(int).tolist()]
    joint: list[list[int]] = []
    compared = 0
    for time in range(4):
        wanted, found = exact(views, joint), believed(particles)
        apart = sum(abs(wanted.get(one, 0.0) - found.get(one, 0.0)) for one in {*wanted, *found})
        assert apart / 2 < 0.04, f"step {time}: {len(wanted)} situations"
        compared += len(wanted) > 1
        legal = np.asarray(GAME.observe(state).legal)
        moves = np.flatnonzero(legal[0, :5])  # it stays in the game
        weights = legal[1] * np.array(SEEN)
        done = [int(rng.choice(moves)), int(rng.choice(7, p=weights / weights.sum()))]
        key = jax.random.key(100 + time)
        state, outcome = GAME.step(key, state, jnp.array(done))
        particles = followed(key, particles, state, outcome.reward[0])
        joint.append(np.asarray(state.last).tolist())
        views.append(np.asarray(own_view(state).planes[0]).astype(int).tolist())
    assert compared > 1, "a belief about one situation says nothing"


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0.01, 1.0), min_size=8, max_size=8), st.integers(0, 1000))
def test_particles_are_drawn_as_often_as_they_weigh(weights: list[float], seed: int) -> None:
    numbers = jnp.arange(8)[None]
    particles = Particles(
        Imagined(numbers, numbers), jnp.log(jnp.array([weights])), numbers, jnp.ones(1)
    )
    drawn, memory = draw(jax.random.key(seed), particles, 16)
    count = np.bincount(np.asarray(drawn)[:, 0], minlength=8)
    assert (np.abs(count - 16 * np.array(weights) / np.sum(weights)) < 1.001).all()
    np.testing.assert_array_equal(drawn, memory)
