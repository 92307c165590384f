"""The mix: one player per episode, drawn for each copy and seat on its own."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.algorithms.scripted import (
    AVOIDED,
    Habitual,
    Mix,
    Random,
    Scripted,
    draw_habits,
)
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.group import group_players
from coplay.core.player import Memory, Player, View
from coplay.core.trajectory import Trajectory
from coplay.games.stag_hunt import STAY, StagHunt, StagHuntConfig
from coplay.matches.rollout import Table, new_table, rollout
from coplay.nn import categorical
from coplay.nn.categorical import NEVER
from coplay.training.players import make_player

GAME = StagHunt(StagHuntConfig(height=3, width=3, players=3, stags=1, hares=1, horizon=4))
STEPS, COPIES, SEATS, ACTIONS = 48, 64, 3, 7


class Stay(Player):
    """Never moves, and counts its steps and those it noticed."""

    def start(self, copies: int) -> Memory:
        return jnp.zeros((copies, 2), jnp.int32)

    def act(self, game: Game, key: jax.Array, view: View, memory: Memory) -> tuple[jax.Array, Any]:
        stay = jnp.arange(ACTIONS) == STAY
        logits = jnp.broadcast_to(jnp.where(stay, 0.0, NEVER), view.observation.legal.shape)
        return logits, memory.at[:, 0].add(1)

    def notice(self, game: Game, view: View, after: Any, over: jax.Array, memory: Memory) -> Memory:
        return memory.at[:, 1].add(1)


class Move(Player):
    """Does anything but stay; action 1 more often than the others."""

    def act(self, game: Game, key: jax.Array, view: View, memory: Memory) -> tuple[jax.Array, Any]:
        kinds = jnp.arange(ACTIONS)
        logits = jnp.where(kinds == STAY, -200.0, jnp.where(kinds == 1, 1.0, 0.0))
        return jnp.broadcast_to(logits, view.observation.legal.shape), memory


def test_habits_have_a_favourite_each_and_actions_that_they_avoid() -> None:
    logits = draw_habits(ACTIONS, 2000, 0)
    favourite = np.arange(2000) % ACTIONS
    np.testing.assert_array_equal(np.argmax(logits, axis=1), favourite)
    strength = logits[np.arange(2000), favourite]
    assert 1.0 <= strength.min() < 1.2 and 5.8 < strength.max() <= 6.0
    others = np.delete(logits.ravel(), np.arange(2000) * ACTIONS + favourite)
    assert set(others) == {0.0, -AVOIDED} and abs((others < 0).mean() - 0.25) < 0.02
    np.testing.assert_array_equal(draw_habits(ACTIONS, 3, 5), draw_habits(ACTIONS, 3, 5))
    assert (draw_habits(ACTIONS, 3, 5) != draw_habits(ACTIONS, 3, 6)).any()


def test_a_habitual_player_does_the_same_whatever_it_sees() -> None:
    logits = jnp.arange(ACTIONS, dtype=jnp.float32)
    groups = group_players([Habitual(logits)] * SEATS)
    table = new_table(GAME, groups, jax.random.key(0), 8)
    found = rollout(GAME, groups, table, jax.random.key(1), 4, jnp.arange(SEATS))[1]
    wanted = categorical.log_policy(
        jnp.broadcast_to(logits, found.log_policy.shape), found.observation.legal
    )
    np.testing.assert_allclose(found.log_policy, wanted, atol=1e-6)


@cache
def played() -> tuple[Table, Trajectory]:
    mix = Mix((Stay(), Move(), Random()))
    groups = group_players([mix] * SEATS)
    assert len(groups) == 1

    @jax.jit
    def play(key: jax.Array) -> Any:
        start = new_table(GAME, groups, key, COPIES)
        return rollout(GAME, groups, start, key, STEPS, jnp.arange(SEATS))

    return jax.tree.map(np.asarray, play(jax.random.key(0)))


def drawn() -> tuple[np.ndarray, np.ndarray]:
    """[time, copy, seat] who acts, told from its probabilities; [time, copy] the episode."""
    trajectory = played()[1]
    stay = trajectory.log_policy[..., STAY]
    who = np.where(stay > -1e-3, 0, np.where(stay < -100, 1, 2))
    over = trajectory.over.cumsum(0)
    return who, np.concatenate([np.zeros_like(over[:1]), over[:-1]])


def draws() -> np.ndarray:
    """[episode of any copy, seat] who acted."""
    who, episode = drawn()
    return np.array(
        [
            who[np.argmax(episode[:, copy] == number), copy]
            for copy in range(COPIES)
            for number in range(episode[-1, copy] + 1)
        ]
    )


@pytest.mark.slow
def test_the_same_player_through_an_episode_and_another_in_the_next() -> None:
    who, episode = drawn()
    alive = played()[1].alive
    for copy in range(COPIES):
        for number in range(episode[-1, copy] + 1):
            for seat in range(SEATS):
                rows = (episode[:, copy] == number) & alive[:, copy, seat]
                assert len(set(who[rows, copy, seat])) == 1
    first, later = draws()[:-1], draws()[1:]
    assert 0.2 < np.mean(first == later) < 0.47


@pytest.mark.slow
def test_players_are_drawn_alike_and_independently() -> None:
    found = draws()
    count = len(found)
    assert count > 500
    for seat in range(SEATS):
        share = np.bincount(found[:, seat], minlength=3) / count
        assert np.abs(share - 1 / 3).max() < 4 * np.sqrt(2 / 9 / count)
    for one, other in [(0, 1), (0, 2), (1, 2)]:
        pairs = np.zeros((3, 3))
        np.add.at(pairs, (found[:, one], found[:, other]), 1)
        expected = count / 9
        chi_square = ((pairs - expected) ** 2 / expected).sum()
        assert chi_square < 26.1, "8 degrees of freedom, one chance in a thousand"


@pytest.mark.slow
def test_probabilities_are_those_of_the_drawn_player() -> None:
    trajectory = played()[1]
    who, _ = drawn()
    legal = trajectory.observation.legal
    kinds = np.arange(ACTIONS)
    weights = np.stack(
        [
            np.broadcast_to(kinds == STAY, legal.shape) + 0.0,
            np.where(kinds == STAY, 0.0, np.where(kinds == 1, np.e, 1.0)) * legal,
            legal + 0.0,
        ]
    )
    expected = np.take_along_axis(weights, who[None, ..., None], axis=0)[0]
    expected = expected / expected.sum(-1, keepdims=True)
    alive = trajectory.alive
    np.testing.assert_allclose(np.exp(trajectory.log_policy)[alive], expected[alive], atol=1e-6)


def test_only_the_drawn_player_remembers() -> None:
    table, _ = played()
    who, _ = drawn()
    # A seat that left is recognised no more, so only seats that never did are counted.
    counts = table.memory[0].players[0]
    steps = (who == 0).sum(0)
    stayed = played()[1].alive.all(0)
    assert stayed.any() or (counts[..., 0] <= STEPS).all()
    assert (counts[..., 0] == counts[..., 1]).all()
    assert 0.2 < counts[..., 0].mean() / STEPS < 0.47
    assert (steps == counts[..., 0].T)[stayed].all()


def test_a_mix_by_name() -> None:
    mix = make_player("mix:ns:nh:random", GAME)
    assert isinstance(mix, Mix)
    ns, nh = (Scripted(GAME.scripted[name]) for name in ("ns", "nh"))
    assert mix.players[:2] == (ns, nh) and isinstance(mix.players[2], Random)
    with pytest.raises(UserError, match="at least two"):
        make_player("mix:ns", GAME)
    with pytest.raises(UserError, match="learns"):
        make_player("mix:ns:ppo", GAME)
    with pytest.raises(UserError, match="nx"):
        make_player("mix:ns:nx", GAME)
