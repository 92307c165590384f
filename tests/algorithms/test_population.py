"""A population: who is drawn acts, by its own numbers, until the episode ends."""

import jax
import jax.numpy as jnp
import numpy as np

from coplay.algorithms.population import Population, PopulationMemory
from coplay.algorithms.rules import RuleParameters, make_rule_partner
from coplay.games.stag_hunt import nearest_hare, nearest_stag
from tests.algorithms.test_rules import COPIES, GAME, by, view

PREFERENCE = 50.0 * np.eye(5)[:2]  # the first hunts the stag, the second the nearest hare


def hunters() -> Population:
    nothing = np.zeros(2)
    parameters = RuleParameters(PREFERENCE, nothing, np.full(2, np.inf), *[nothing] * 3)
    return Population(make_rule_partner(GAME, parameters), 2)


def test_who_is_drawn_acts_until_the_episode_ends() -> None:
    player, first, later = hunters(), view(0), view(1)

    @jax.jit
    def play(key: jax.Array) -> tuple[jax.Array, jax.Array, PopulationMemory]:
        logits, memory = player.act(GAME, key, first, player.start(COPIES))
        memory = player.notice(GAME, first, first.state, jnp.zeros(COPIES, bool), memory)
        return logits, *player.act(GAME, jax.random.fold_in(key, 1), later, memory)

    expected = [by(nearest_stag, first), by(nearest_hare, first)]
    seen = set()
    for seed in range(4):
        begun, then, memory = play(jax.random.key(seed))
        drawn = np.asarray(memory.drawn)
        seen |= set(drawn.tolist())
        wanted = np.where(drawn[:, None] == 0, *expected)
        for logits in (begun, then):
            np.testing.assert_allclose(jax.nn.softmax(logits), wanted, atol=1e-6)
        np.testing.assert_array_equal(memory.player.since, np.full(COPIES, 2))
    assert seen == {0, 1}
