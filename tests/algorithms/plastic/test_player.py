"""PLASTIC: beliefs about known partners, and who acts by them."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.algorithms.plastic.player import PlasticMemory, PlasticPlayer, polynomial_weights
from coplay.core.player import View
from coplay.games.diagnostic import HiddenKind, HiddenKindConfig, KindState
from coplay.nn.config import NetworkConfig
from coplay.nn.networks import make_network, view_shape

GAME = HiddenKind(HiddenKindConfig(players=3, choices=3))
ENTRIES, COPIES, ETA = 3, 2, 0.5


def networks(outputs: int, favourite: Any) -> Any:
    """One network for each entry, whose outputs are constant: `favourite(entry)` is the largest."""

    def one(entry: int) -> Any:
        shape = view_shape(GAME)
        made = make_network(NetworkConfig(hidden=()), shape, outputs, jax.random.key(entry), 0.0)
        return eqx.tree_at(lambda net: net.head.bias, made, 2.0 * favourite(entry))

    made = [one(entry) for entry in range(ENTRIES)]
    return jax.tree.map(lambda *x: jnp.stack(x), *made)


def player(learning: bool = False) -> PlasticPlayer:
    """Entry k: its partner mostly does k, and its answer is k."""
    actor = networks(3, lambda entry: jnp.eye(3)[entry])
    model = networks(6, lambda entry: jnp.tile(jnp.eye(3)[entry], 2))
    return PlasticPlayer(actor, model, ENTRIES, ETA, learning=learning)


def view(alive: list[bool], copies: int = COPIES) -> View:
    state = jax.vmap(GAME.reset)(jax.random.split(jax.random.key(0), copies))
    seen = jax.tree.map(lambda x: x[:, 0], jax.vmap(GAME.observe)(state))
    zeros = jnp.zeros(copies, jnp.int32)
    return View(seen, jnp.array(alive), state, zeros, zeros, zeros, jnp.zeros(copies))


@pytest.mark.slow
def test_beliefs_fall_by_what_was_held_improbable() -> None:
    mine = player()
    memory = PlasticMemory(jnp.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]]))
    after = KindState(jnp.array([[0, 2, 1], [0, 2, 1]]), jnp.ones(COPIES, jnp.int32))
    over = jnp.zeros(COPIES, bool)
    new = mine.notice(GAME, view([True, False]), after, over, memory).weights
    likely = np.exp(2.0) / (np.exp(2.0) + 2)
    p = np.where(np.eye(3), likely, (1 - likely) / 2)  # [entry, action]
    weights = np.array([0.5, 0.3, 0.2])
    for action in (2, 1):
        weights = weights * (1 - ETA * (1 - p[:, action]))
        weights /= weights.sum()
    np.testing.assert_allclose(new[0], weights, rtol=1e-5)
    np.testing.assert_allclose(new[1], [0.5, 0.3, 0.2], rtol=1e-6)  # who is out learns nothing


def test_a_surprise_rules_nothing_out() -> None:
    weights = polynomial_weights(jnp.array([0.5, 0.5]), jnp.array([0.0, 1.0]), 0.2)
    np.testing.assert_allclose(weights, np.array([0.8, 1.0]) / 1.8, rtol=1e-6)


def test_the_answer_is_that_of_the_likeliest_entry() -> None:
    memory = PlasticMemory(jnp.array([[0.1, 0.7, 0.2], [0.3, 0.3, 0.4]]))
    logits, _ = player().act(GAME, jax.random.key(0), view([True, True]), memory)
    np.testing.assert_array_equal(np.argmax(logits, axis=-1), [1, 2])


def test_while_learning_every_entry_acts_in_its_own_copies() -> None:
    mine = player(learning=True)
    logits, _ = mine.act(GAME, jax.random.key(0), view([True] * 6, 6), mine.start(6))
    np.testing.assert_array_equal(np.argmax(logits, axis=-1), [0, 0, 1, 1, 2, 2])
