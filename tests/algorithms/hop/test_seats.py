"""HOP's seats: whose networks they share, and that it does not matter who sits where."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coplay.algorithms.hop.data import append
from coplay.core.config import with_fields
from coplay.models.personas import PersonaSeed
from coplay.nn import categorical
from tests.algorithms.hop.test_learner import (
    ACTIONS,
    GAME,
    SEATS,
    SHAPE,
    learner,
    played,
    state_of,
)


def same(first: Any, second: Any) -> bool:
    """Whether all arrays are equal bit for bit."""
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def test_seats_with_the_random_persona_act_by_its_rates() -> None:
    hop = learner((0, 1), {"personas.share": 1.0, "personas.episodes": 1})
    trajectory = played(hop)[1]
    seeds = state_of(hop).persona_seed
    who = np.asarray(hop._personas(seeds, jnp.asarray(trajectory.episode)))  # [time, copy, own]
    acted = 0
    for seat in hop.active:
        seed = PersonaSeed(*(x[seat] for x in seeds))
        rates = hop.config.personas.rates(seed, jnp.asarray(trajectory.episode), ACTIONS)
        wanted = categorical.log_policy(
            rates, jnp.asarray(trajectory.observation.legal[:, :, seat])
        )
        random = (who[..., seat] == SHAPE.personas) & trajectory.alive[:, :, seat]
        found = trajectory.log_policy[:, :, seat][random]
        np.testing.assert_allclose(found, np.asarray(wanted)[random], atol=1e-5)
        acted += random.sum()
    assert acted > 20


def test_seats_share_networks_where_they_are_alike() -> None:
    hop = learner((0, 1, 2), {})
    assert not hop.separate and len(hop.set_rows) == 1
    unlike = dataclasses.replace(hop, shape=dataclasses.replace(hop.shape, alike=False))
    assert unlike.separate and list(unlike.set_rows) == [0, 1, 2]
    assert not dataclasses.replace(
        unlike, config=with_fields(unlike.config, {"parameters": "shared"})
    ).separate


def test_who_sits_where_changes_nothing_that_is_learned() -> None:
    """What seats share is learned bit for bit the same when all move on by one seat."""
    hop = learner((0, 1, 2), {"parameters": "shared", "replay.updates": 2})
    state = state_of(hop)
    rows = hop.training_data(GAME, jax.tree.map(jnp.asarray, played(hop)[1]))[0]
    rows = rows._replace(target=jax.random.normal(jax.random.key(0), rows.target.shape))
    replay = append(state.replay, rows, np.arange(SEATS))
    state = state._replace(replay=replay, filled=jnp.int32(rows.alive.shape[0]))

    def moved(x: jax.Array) -> jax.Array:
        return jnp.roll(x, 1, axis=1)

    seeds = state.persona_seed._replace(seat=jnp.roll(state.persona_seed.seat, 1))
    other = state._replace(replay=jax.tree.map(moved, replay), persona_seed=seeds)
    learn = jax.jit(lambda state: hop._learn(jax.random.key(1), state, jnp.float32(0.0))[0])
    first, second = learn(state), learn(other)
    assert not same(state.networks, first.networks)
    assert same(first.networks, second.networks)
    # Without their streams the seats are summed in another order.
    assert not same(first.networks, learn(other._replace(persona_seed=state.persona_seed)).networks)
