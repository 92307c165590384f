"""Programs that `coplay bench peers` puts beside ours do what they are there for: they learn."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.bench import peers, plain_ppo, plain_search, plain_teams
from coplay.bench.measure import Speed, Work, ratio_words
from coplay.games.registry import make_game


def test_ratios_are_by_turns() -> None:
    def speed(name: str, *turns: float) -> Speed:
        return Speed(Work(name, "steps", 6, lambda: None, ()), turns[1], 1.0, turns)

    row = peers.row(speed("ours", 1.0, 2.0, 3.0), speed("theirs", 2.0, 8.0, 3.0))
    assert (row["ratio"], row["range"]) == (2.0, [1.0, 4.0])
    assert (row["ours"], row["theirs"]) == (3.0, 0.75)
    assert ratio_words(row) == "2.00 (1.00 to 4.00)"


@pytest.mark.slow
def test_plain_ppo_learns_to_hunt() -> None:
    game = make_game("stag-hunt", height=3, width=3, players=2, hares=2, horizon=10)
    carry = plain_ppo.begin(game, jax.random.key(0), 64, (32,))

    @jax.jit
    def several(carry: Any) -> Any:
        return jax.lax.scan(
            lambda carry, _: (plain_ppo.update(game, carry, 16, 4, 4), None), carry, None, 60
        )[0]

    learned = several(carry)
    seen, legal = plain_ppo.views(game, learned.state)  # on whose prey somebody may stand

    def chance(parameters: Any) -> float:
        """Of hunting, where that is legal."""
        policy = jax.nn.softmax(plain_ppo.both(parameters, seen, legal)[0])
        hunts = legal[..., 5:].any(-1)
        return float(jnp.sum(jnp.where(hunts, policy[..., 5:].sum(-1), 0)) / jnp.sum(hunts))

    assert chance(learned.parameters) > chance(carry.parameters) + 0.2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ippo", "mappo"])
def test_the_mirror_of_jaxmarl_s_scripts_learns(kind: Any) -> None:
    pytest.importorskip("jaxmarl")
    env = make_game("jaxmarl:MPE_simple_spread_v3").env  # type: ignore[attr-defined]
    carry = plain_teams.begin(env, kind, jax.random.key(0), 64)

    @jax.jit
    def several(carry: Any) -> Any:
        return jax.lax.scan(
            lambda carry, _: plain_teams.update(env, kind, carry, 25, 4, 4), carry, None, 300
        )

    _, rewards = several(carry)
    assert np.mean(rewards[-30:]) > np.mean(rewards[:30]) + 0.03


@pytest.mark.slow
def test_a_plain_search_visits_legal_actions() -> None:
    pytest.importorskip("mctx")
    game = make_game("stag-hunt")
    state = jax.vmap(game.reset)(jax.random.split(jax.random.key(0), 8))
    networks = plain_search.new_networks(game, jax.random.key(1))
    weights = plain_search.plain_search(game, networks, jax.random.key(2), state, 16)
    legal = jax.vmap(game.observe)(state).legal[:, 0]
    assert not np.any(np.where(legal, 0, weights))
    np.testing.assert_allclose(np.sum(weights, axis=1), 1.0, rtol=1e-5)
