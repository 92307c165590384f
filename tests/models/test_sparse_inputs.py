"""Networks that read marks give what networks that read views give."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.algorithms.hop_plus.config import GoalsConfig, HopPlusConfig
from coplay.algorithms.hop_plus.learner import HopPlus
from coplay.bench.search import arbitrary_searches
from coplay.games.registry import make_game
from coplay.models.code_simulator import CodeSimulator, SparseCodeSimulator
from coplay.models.goal_simulator import SparseGoalSimulator
from coplay.nn.config import NetworkConfig
from coplay.nn.networks import flatten, view_shape
from coplay.search.simulator import advance, begin, co_player_cdf, own_view

GAMES: dict[str, dict[str, Any]] = {
    "stag-hunt": {"stags": 2, "hares": 3},
    "snowdrift": {"height": 5, "width": 4},
    "walls": {"stags": 1, "hares": 2, "height": 5, "width": 6, "walls": 3, "wall_maps": 8},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "centred"),
    [
        ("stag-hunt", True),
        ("walls", True),
        pytest.param("stag-hunt", False, marks=pytest.mark.slow),
        pytest.param("snowdrift", True, marks=pytest.mark.slow),
    ],
)
def test_same_outputs_after_some_steps(name: str, centred: bool) -> None:
    """In positions in which players have moved and some prey, players or drifts may be gone."""
    game = make_game("stag-hunt" if name == "walls" else name, **GAMES[name])
    simulator, state, hypothesis, seed = arbitrary_searches(game, 48, (8, 8), centred)
    simulator = dataclasses.replace(simulator, guides=True)
    quick = simulator.prepared(game)
    assert isinstance(quick, SparseGoalSimulator)
    compare(game, simulator, quick, state, hypothesis, seed)
    if name == "stag-hunt" and centred:
        one = jax.tree.map(lambda x: x[1:2], simulator.opponents)
        simulator = dataclasses.replace(simulator, opponents=one)
        compare(game, simulator, simulator.prepared(game), state, hypothesis, seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "goal", "network"),
    [
        ("stag-hunt", "inferred", "centred"),
        pytest.param("stag-hunt", "none", "mlp", marks=pytest.mark.slow),
        pytest.param("snowdrift", "inferred", "centred", marks=pytest.mark.slow),
    ],
)
def test_same_outputs_with_goal_codes(name: str, goal: Any, network: Any) -> None:
    game = make_game(name, **GAMES[name])
    _, state, _, seed = arbitrary_searches(game, 48, (8, 8))
    seats = tuple(range(game.seats))
    learner = HopPlus(
        config=HopPlusConfig(
            parameters="shared+id",
            network=NetworkConfig(kind=network, hidden=(8, 8)),
            goals=GoalsConfig(use=goal, dim=3, width=5, opponent_hidden=(16, 8)),
        ),
        shape=view_shape(game),
        game_seats=game.seats,
        seats=seats,
        active=seats,
    )
    player = learner.player(learner.init(jax.random.key(0), jnp.arange(game.seats)), 1)
    z, known = jax.random.normal(jax.random.key(1), (2, 48, game.seats - 1, 3))
    rates = jax.random.normal(jax.random.key(2), (48, game.seats - 1, game.actions))
    simulator = CodeSimulator(
        player.actor,
        player.critic,
        player.goals,
        player.identity,
        z,
        jnp.concatenate([known, rates], axis=-1),
        rates,
        goal != "none",
    )
    quick = simulator.prepared(game)
    assert isinstance(quick, SparseCodeSimulator)
    compare(game, simulator, quick, state, (), seed)
    # Co-players act by the codes they have; actor and critic see those that are known.
    views = jax.vmap(game.observe)(state)
    for one in (simulator, quick):
        others, evaluate_as = (
            one.others(game, views, state, ()),
            one.evaluate(game, own_view(views), state, ()),
        )
        more = jnp.linspace(0.0, 1.0, game.actions)
        drawn, corrected, learned = (
            dataclasses.replace(one, **{field: getattr(one, field) + change})
            for field, change in (("z", 1.0), ("corrections", more), ("told", 1.0))
        )
        for changed in (drawn, corrected):
            assert np.abs(changed.others(game, views, state, ()) - others).max() > 1e-3
            np.testing.assert_array_equal(
                changed.evaluate(game, own_view(views), state, ())[1], evaluate_as[1]
            )
        np.testing.assert_array_equal(learned.others(game, views, state, ()), others)
        moved = np.abs(learned.evaluate(game, own_view(views), state, ())[1] - evaluate_as[1]).max()
        assert (moved > 1e-3) == (goal != "none")


def compare(game: Any, simulator: Any, quick: Any, state: Any, hypothesis: Any, seed: Any) -> None:
    """Both simulators say the same in positions some steps later."""

    def play(game: Any, simulator: Any, quick: Any, state: Any, hypothesis: Any, seed: Any) -> Any:
        position, observation = begin(simulator, game, state, hypothesis, seed)

        def one(number: Any, carry: Any) -> Any:
            position, _ = carry
            action = (position.seed >> 5).astype(jnp.int32) % game.actions
            others = co_player_cdf(simulator, game, position)
            position, step = advance(simulator, game, 0.9, position, others, action)
            return position, step.observation

        position, observation = jax.lax.fori_loop(0, 12, one, (position, observation))
        mine = own_view(observation)
        alive = jax.vmap(game.alive)(position.state)
        return (
            alive,
            (
                simulator.others(game, observation, position.state, position.hypothesis),
                *simulator.evaluate(game, mine, position.state, position.hypothesis),
            ),
            (
                quick.others(game, observation, position.state, position.hypothesis),
                *quick.evaluate(game, mine, position.state, position.hypothesis),
            ),
            (flatten(observation), jax.vmap(game.sparse_view)(position.state)),
        )

    alive, plain, has_sparse_view, (view, indices) = jax.jit(play)(
        game, simulator, quick, state, hypothesis, seed
    )
    # Nobody asks what one that left would do.
    alive = np.asarray(alive)
    for found, wanted, who in zip(
        has_sparse_view, plain, (alive[:, 1:], *[alive[:, 0]] * 2), strict=True
    ):
        found, wanted = np.asarray(found)[who], np.asarray(wanted)[who]
        np.testing.assert_allclose(np.exp(found), np.exp(wanted), rtol=1e-4, atol=1e-6)
    ones = np.zeros((48, game.seats, view.shape[-1] + 1))
    tree, seat = np.ogrid[:48, : game.seats]
    np.add.at(ones, (tree[..., None], seat[..., None], np.asarray(indices)), 1)
    np.testing.assert_array_equal(
        ones[..., :-2], np.asarray(view)[..., :-1], "indices are the view"
    )
    assert (np.asarray(indices) == view.shape[-1]).any(), "something is gone by now"


@pytest.mark.slow
def test_views_of_windows_are_not_sparse() -> None:
    game = make_game("stag-hunt", view=1)
    simulator = arbitrary_searches(game, 2, (8,))[0]
    assert simulator.prepared(game) is simulator


@pytest.mark.slow
def test_guides_value_positions_by_the_best_persona() -> None:
    game = make_game("stag-hunt")
    simulator, state, hypothesis, _ = arbitrary_searches(game, 12, (8,))
    guided = dataclasses.replace(simulator, guides=True)
    mine = own_view(jax.vmap(game.observe)(state))
    log_policy, value = guided.evaluate(game, mine, state, hypothesis)
    each = [
        simulator.evaluate_as(game, mine, state, jnp.full(12, persona))
        for persona in range(-1, simulator.personas)
    ]
    np.testing.assert_allclose(value, np.max([one[1] for one in each], axis=0), rtol=1e-5)
    co_player_cdf = np.mean([np.exp(one[0]) for one in each], axis=0)
    np.testing.assert_allclose(np.exp(log_policy), co_player_cdf, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_a_persona_follows_no_guide() -> None:
    game = make_game("stag-hunt")
    simulator, state, hypothesis, _ = arbitrary_searches(game, 12, (8,))
    persona_reward = dataclasses.replace(simulator, persona=jnp.full(12, 1))
    mine = own_view(jax.vmap(game.observe)(state))
    co_player_cdf = persona_reward.evaluate(game, mine, state, hypothesis)
    found = dataclasses.replace(persona_reward, guides=True).evaluate(game, mine, state, hypothesis)
    for one, other in zip(found, co_player_cdf, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
