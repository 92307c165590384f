"""Searches against everything that can happen: exact values, the optimism of frozen luck, ends."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.core.errors import UserError
from coplay.games.board.board_game import STAY, uniform
from coplay.games.stag_hunt import (
    HUNT_HARE,
    HUNT_STAG,
    StagHunt,
    StagHuntConfig,
    StagHuntState,
    nearest_hare,
    nearest_stag,
)
from coplay.search.config import SearchConfig
from coplay.search.known_policies import KnownPolicies
from coplay.search.root import boltzmann, mean_over_draws, search
from coplay.search.simulator import (
    RootValues,
    advance,
    begin,
    co_player_cdf,
    mix_bits,
    own_view,
)
from tests.search.exhaustive import exact_q

QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
GAME = StagHunt(StagHuntConfig(height=2, width=3, players=2, stags=1, hares=1, horizon=6))
DISCOUNT = 0.95


def certain(game: StagHunt, ego: StagHuntState) -> Any:
    """NS without its coin flips."""
    return (jnp.arange(7) == jnp.argmax(nearest_stag(game, ego))).astype(jnp.float32)


def random_where(game: StagHunt, ego: StagHuntState) -> Any:
    return uniform(game.legal(ego)[0])


def found(policy: Any, states: StagHuntState, **fields: Any) -> RootValues:
    """Searches from states [tree], each with its own seed."""
    config = SearchConfig(**{"simulations": 32, "discount": DISCOUNT} | fields)
    seeds = mix_bits(jnp.arange(1, states.time.shape[0] + 1, dtype=jnp.uint32))
    run = jax.jit(
        lambda states: search(KnownPolicies((policy,)), GAME, config, states, (), seeds),
        compiler_options=QUICK,
    )
    return jax.tree.map(np.asarray, run(states))


def placed(cells: list[int], stag: int, hare: int, time: int = 0) -> StagHuntState:
    return GAME.reset(jax.random.key(0))._replace(
        cell=jnp.array(cells, jnp.int16),
        prey=jnp.array([stag, hare], jnp.int16),
        time=jnp.int16(time),
    )


def repeated(state: StagHuntState, trees: int) -> StagHuntState:
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (trees, *x.shape)), state)


@pytest.mark.slow
def test_against_a_certain_co_player_search_finds_the_exact_values() -> None:
    """Once a tree holds every future, its best ones are those of exhaustive search; the actions
    that the means of PUCT and of resampling prefer are best ones, too."""
    states = jax.vmap(GAME.reset)(jax.random.split(jax.random.key(5), 6))
    exact = exact_q(GAME, states, certain, 3, DISCOUNT)
    legal = np.isfinite(exact)
    wide = {"simulations": 700, "depth": 3, "exploration": 20.0}
    best = found(certain, states, backup="best", **wide)
    np.testing.assert_allclose(np.where(legal, best.q, -np.inf), exact, rtol=1e-5)
    assert (best.visits[~legal] == 0).all()
    for fields in ({"exploration": 4.0}, {"exploration": 4.0, "resample": True}):
        q = found(certain, states, **(wide | fields)).q
        chosen = np.argmax(np.where(legal, q, -np.inf), axis=1)
        np.testing.assert_allclose(exact[np.arange(6), chosen], exact.max(1), rtol=1e-6)


@pytest.mark.slow
def test_frozen_luck_is_optimistic_and_resampling_is_not() -> None:
    """Both players stand on a stag; the other acts by chance. A tree that knows what chance will
    bring finds the futures in which the other hunts, too."""
    state = placed([1, 1], stag=1, hare=5)
    exact = exact_q(GAME, repeated(state, 1), random_where, 3, DISCOUNT)[0]
    assert exact.argmax() == HUNT_STAG
    fields = {"simulations": 300, "depth": 3, "exploration": 4.0}
    frozen = found(random_where, repeated(state, 128), **fields)
    fresh = found(random_where, repeated(state, 128), resample=True, **fields)
    believed = frozen.q.max(1)
    standard_error = believed.std() / 128**0.5
    assert believed.mean() - exact.max() > 3 * standard_error, "E[max] exceeds max E"
    assert (fresh.q.argmax(1) == HUNT_STAG).mean() > 0.9
    # Exploring costs: means lie below the exact value, and never far above it.
    assert exact.max() * 0.6 < fresh.q[:, HUNT_STAG].mean() < exact.max() + 0.1


@pytest.mark.parametrize("scenarios", [False, True])
def test_in_scenarios_all_own_actions_meet_the_same_luck(scenarios: bool) -> None:
    """The co-player walks at random, whatever the planner does: after two steps by different own
    actions it stands in the same cell of a scenario, and luck still differs between trees."""
    trees, simulator = 32, KnownPolicies((random_where,))
    begun, _ = begin(
        simulator,
        GAME,
        repeated(placed([0, 1], stag=2, hare=5), trees),
        (),
        mix_bits(jnp.arange(1, trees + 1, dtype=jnp.uint32)),
    )

    @jax.jit
    def after_two_steps(own: Any) -> Any:
        position = begun
        for _ in range(2):
            others = co_player_cdf(simulator, GAME, position)
            action = jnp.full(trees, own)
            position, _ = advance(simulator, GAME, DISCOUNT, position, others, action, scenarios)
        return position.state.cell[:, 1]

    staying, moving = (np.asarray(after_two_steps(own)) for own in (STAY, 3))
    assert (staying == moving).all() == scenarios
    assert len(set(staying.tolist())) > 1


@pytest.mark.slow
def test_scenarios_find_the_exact_values_against_a_certain_co_player() -> None:
    states = jax.vmap(GAME.reset)(jax.random.split(jax.random.key(5), 4))
    exact = exact_q(GAME, states, certain, 3, DISCOUNT)
    wide = {"simulations": 700, "depth": 3, "exploration": 20.0, "backup": "best"}
    q = found(certain, states, scenarios=True, **wide).q
    np.testing.assert_allclose(np.where(np.isfinite(exact), q, -np.inf), exact, rtol=1e-5)


class Moody(KnownPolicies):
    """The co-player stays where it is (mind 0) or acts like NS (mind 1, in 3 of 10 cases)."""

    def others(self, game: Any, observation: Any, state: Any, hypothesis: Any) -> Any:
        still = jnp.log(jnp.maximum((jnp.arange(7) == STAY).astype(jnp.float32), 1e-30))
        acts = super().others(game, observation, state, hypothesis)
        return jnp.where((hypothesis == 1)[:, None, None], acts, still)

    def resample_hypothesis(self, uniform: Any, hypothesis: Any) -> Any:
        return (uniform[:, 0] < 0.3).astype(jnp.int32)


def test_a_shared_tree_averages_over_what_others_may_have_in_mind() -> None:
    """Both stand on the stag with one step left: hunting it is worth half a stag if the other
    hunts, too."""
    states = repeated(placed([1, 1], stag=1, hare=5, time=5), 4)
    config = SearchConfig(
        simulations=200,
        draws=2,
        depth=1,
        exploration=4.0,
        resample=True,
        share_tree=True,
        raw_q=True,
    )
    seeds = mix_bits(jnp.arange(1, 5, dtype=jnp.uint32))
    hypothesis = jnp.zeros(4, jnp.int32)
    run = jax.jit(
        lambda states: search(Moody((certain,)), GAME, config, states, hypothesis, seeds),
        compiler_options=QUICK,
    )
    found = jax.tree.map(np.asarray, run(states))
    alone = float(GAME.config.stag_reward) / 2
    visits = found.visits[:, HUNT_STAG]
    error = np.sqrt(0.3 * 0.7 / visits) * alone
    assert (visits > 30).all()
    assert (np.abs(found.q[:, HUNT_STAG] - 0.3 * alone) < 4 * error).all()
    assert found.q[:, HUNT_STAG].std() > 0, "each tree has its own luck"


@pytest.mark.parametrize("backend", ["coplay", "mctx"])
def test_golden_tree(backend: str) -> None:
    """Visits and values of one small tree, recorded once: a change here is a change of search.
    It is full of ties, which mctx breaks by noise and our trees by the order of the actions."""
    states = repeated(placed([0, 2], stag=1, hare=3), 1)
    golden = found(nearest_stag, states, simulations=60, depth=4, exploration=4.0, backend=backend)
    visits, q = GOLDEN[backend]
    np.testing.assert_array_equal(golden.visits, [visits])
    np.testing.assert_allclose(golden.q, [q], atol=1e-5)


@pytest.mark.slow
def test_ends_inside_the_tree() -> None:
    """What lies beyond leaving or beyond the horizon is worth nothing."""
    gone = placed([4, 1], 1, 5)._replace(alive=jnp.array([False, True]))
    cases = [
        placed([5, 1], stag=1, hare=5),  # on the hare
        placed([4, 1], 1, 5, time=5),  # one step left, and the prey is a step away
        placed([4, 1], 1, 5, time=4),  # just enough time
        gone,
    ]
    states = jax.tree.map(lambda *x: jnp.stack(x), *cases)
    q = found(certain, states, simulations=60, depth=4, exploration=4.0).q
    np.testing.assert_allclose(q[0, HUNT_HARE], 1.0, err_msg="it leaves with the hare")
    np.testing.assert_array_equal(q[1], 0.0)
    assert q[2].argmax() == 0 and q[2].max() > 0
    np.testing.assert_array_equal(q[3], 0.0)


@pytest.mark.slow
def test_gumbel_search_finds_the_stag() -> None:
    states = repeated(placed([4, 1], stag=1, hare=5), 2)
    gumbel = found(certain, states, simulations=60, depth=3, kind="gumbel")
    exact = exact_q(GAME, repeated(placed([4, 1], 1, 5), 1), certain, 3, DISCOUNT)[0]
    legal = np.isfinite(exact)
    assert (np.where(legal, gumbel.q, -np.inf).argmax(1) == exact.argmax()).all()
    assert (gumbel.visits[:, ~legal] == 0).all()
    with pytest.raises(UserError, match="kind=puct and backup=mean only"):
        found(certain, states, simulations=4, kind="gumbel", resample=True)


def test_values_are_averaged_over_the_draws_that_visited_an_action() -> None:
    q = jnp.array([[[1.0, 4.0, 0.0]], [[3.0, 0.0, 0.0]]]).reshape(2, 3)
    visits = jnp.array([[[5, 1, 0]], [[5, 0, 0]]], jnp.float32).reshape(2, 3)
    mean = mean_over_draws(RootValues(q, visits), jnp.array([[True, True, True]]), 2)
    np.testing.assert_allclose(mean, [[2.0, 4.0, 2.0]], err_msg="never visited: the least")


def test_boltzmann_raw_and_normalised() -> None:
    q, legal = jnp.array([[1.0, 3.0, 9.0, 2.0]]), jnp.array([[True, True, False, True]])
    np.testing.assert_allclose(boltzmann(q, legal, 2.0, False), [[2.0, 6.0, 18.0, 4.0]])
    normal = np.asarray(boltzmann(q, legal, 10.0, True))
    np.testing.assert_allclose(normal[0, [0, 1, 3]], [0.0, 10.0, 5.0])
    close = boltzmann(jnp.array([[0.5, 0.51, 0.0, 0.5]]), legal, 10.0, True)
    np.testing.assert_allclose(np.asarray(close)[0, 1], 2.0, rtol=1e-4)


GOLDEN = {
    "coplay": (
        [0.0, 25.0, 0.0, 28.0, 7.0, 0.0, 0.0],
        [0.0, 0.5699999928474426, 0.0, 2.544642925262451, 0.0, 0.0, 0.0],
    ),
    "mctx": (
        [0.0, 9.0, 0.0, 43.0, 8.0, 0.0, 0.0],
        [0.0, 0.5277780294418335, 0.0, 2.8720929622650146, 0.0, 0.0, 0.0],
    ),
}


@pytest.mark.slow
def test_playouts_judge_a_position_by_what_the_best_habit_brings() -> None:
    """Both go to the stag between them and hunt it: the reward comes with the second step. Who
    goes for the hare beside it gets it with the second step, too, and less of it."""

    def hare(game: StagHunt, ego: StagHuntState) -> Any:
        return (jnp.arange(7) == jnp.argmax(nearest_hare(game, ego))).astype(jnp.float32)

    states = jax.tree.map(
        lambda *x: jnp.stack(x),
        placed([0, 2], stag=1, hare=3),
        placed([0, 2], stag=1, hare=3, time=5),  # one step is left
    )
    observation = own_view(jax.vmap(GAME.observe)(states))
    for habits, best in (((certain, hare), 5.0), ((hare,), 1.0)):
        simulator = KnownPolicies((certain,), habits, playouts=6, discount=DISCOUNT)
        _, value = simulator.evaluate(GAME, observation, states, ())
        np.testing.assert_allclose(value, [best * DISCOUNT, 0.0], rtol=1e-6)


@pytest.mark.slow
def test_playouts_draw_what_a_habit_leaves_to_chance() -> None:
    """On a hare's cell, hunting one time in four: in one step a quarter of the trees catch it."""
    trees = 1024

    def sometimes(game: StagHunt, ego: StagHuntState) -> Any:
        hunts = jnp.arange(7) == jnp.argmax(nearest_hare(game, ego))
        return jnp.where(hunts, 0.25, jnp.where(jnp.arange(7) == STAY, 0.75, 0.0))

    state = placed([3, 2], stag=1, hare=3)
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (trees, *jnp.shape(x))), state)
    observation = own_view(jax.vmap(GAME.observe)(states))
    simulator = KnownPolicies((certain,), (sometimes,), playouts=1, discount=DISCOUNT)
    _, value = simulator.evaluate(GAME, observation, states, ())
    assert set(np.unique(value)) == {0.0, 1.0}
    assert abs(float(np.mean(value)) - 0.25) < 4 * (0.25 * 0.75 / trees) ** 0.5
