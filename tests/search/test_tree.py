"""Our trees beside those of mctx: the same visits, the same values, on trees made by chance."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mctx._src.seq_halving import get_sequence_of_considered_visits

from coplay.bench.search import arbitrary_searches, numbers
from coplay.core.errors import UserError
from coplay.games.registry import make_game
from coplay.search import mctx_backend as mctx_trees
from coplay.search import tree as searches
from coplay.search.config import SearchConfig
from coplay.search.root import search
from coplay.search.selection import Rules, halving_visits
from coplay.search.simulator import mix_bits
from coplay.search.tree import CROWD, Evaluation, Model, StepOutput, Tree, best_q, grow

QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
ACTIONS = 5


def random_where(seed: Any, number: int) -> Any:
    """[tree, number] in [-1, 1), drawn by words [tree]: no two are alike."""
    order = jnp.arange(1, number + 1, dtype=jnp.uint32) * jnp.uint32(0x9E3779B1)
    return (mix_bits(seed[:, None] + order) >> 8).astype(jnp.float32) * 2.0**-23 - 1.0


def evaluation(node: Any) -> Evaluation:
    return Evaluation(2.0 * random_where(node, ACTIONS), random_where(node + 77, 1)[:, 0])


def observe(node: Any, trees: Any = None) -> Any:
    return node * jnp.uint32(0x85EBCA6B)


def step_model(action: Any, node: Any, seen: Any, trees: Any = None) -> tuple[StepOutput, Any]:
    """A tree of chance: rewards, values and priors depend on node and action; one in five actions
    ends it. Nodes are words; a node is found by what was seen there."""
    after = mix_bits(seen + action.astype(jnp.uint32) + 1)
    reward, end = random_where(after + 99, 2).T
    return StepOutput(reward, jnp.where(end > 0.6, 0.0, 0.9), evaluation(after)), after


chance_model = Model(observe, step_model)


def roots(trees: int, seed: int = 0) -> tuple[Any, Any]:
    """Root nodes and legal actions, at least one of them in every tree."""
    node = mix_bits(jnp.arange(1, trees + 1, dtype=jnp.uint32) + jnp.uint32(1000 * seed))
    legal = random_where(node + 55, ACTIONS) > -0.5
    return node, legal.at[:, 2].set(True)


def ours(rules: Rules, node: Any, legal: Any) -> Tree:
    return grow(chance_model, evaluation(node), node, legal, rules)


def theirs(rules: Rules, node: Any, legal: Any) -> Any:
    key = jax.random.key(0)
    return mctx_trees.grow_mctx(key, chance_model, evaluation(node), node, legal, rules)


def compiled(function: Any, *arguments: Any) -> Any:
    return jax.jit(function, compiler_options=QUICK)(*arguments)


CASES = {
    "puct": Rules(24, 24),
    "puct with a depth limit": Rules(24, 3),
    "puct, raw Q, every root action first": Rules(24, 5, normalise=False, sweep=True, init=2.0),
    "gumbel": Rules(24, 24, kind="gumbel"),
    "gumbel with a depth limit": Rules(17, 3, kind="gumbel"),
}


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[] if case == "puct" else pytest.mark.slow) for case in CASES],
)
@pytest.mark.slow
def test_same_visits_and_values_as_mctx(case: str) -> None:
    """In a crowd, where a few trees go on without the others, and among a few trees."""
    rules = CASES[case]
    node, legal = roots(CROWD + 88)

    def both(node: Any, legal: Any) -> Any:
        mine, other = ours(rules, node, legal), theirs(rules, node, legal)
        summary = other.summary()
        mine_found = (mine.visits[0], mine.q[0], mine.value[0], best_q(mine))
        co_player_cdf = (
            *(summary.visit_counts, summary.qvalues, summary.value),
            mctx_trees.best_q(other),
        )
        some = ours(rules, jax.tree.map(lambda x: x[:200], node), legal[:200])
        pairs = ((mine.rows, some.rows), (mine.child, some.child))
        return mine_found, co_player_cdf, [jnp.all(x[:, :200] == y) for x, y in pairs]

    mine, other, same = jax.tree.map(np.asarray, compiled(both, node, legal))
    assert all(same)
    np.testing.assert_array_equal(mine[0], other[0])
    for found, co_player_cdf in zip(mine[1:], other[1:], strict=True):
        np.testing.assert_allclose(found, co_player_cdf, atol=2e-6)
    assert (mine[0].sum(1) == rules.simulations).all()
    assert (mine[0][~np.asarray(legal)] == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stag-hunt", "snowdrift"])
@pytest.mark.parametrize("kind", ["puct", "gumbel"])
def test_same_as_mctx_in_games(name: str, kind: Any) -> None:
    """Networks by chance judge positions and predict the others: hardly any two scores are equal.
    Half of the positions are close to the horizon."""
    game = make_game(name)
    trees, horizon = 64, game.config.horizon  # type: ignore[attr-defined]
    simulator, state, hypothesis, seed = arbitrary_searches(game, trees, (16, 16))
    late = jnp.arange(trees) % 2 == 0
    state = state._replace(time=jnp.where(late, horizon - 3, state.time).astype(jnp.int16))

    def both(game: Any, simulator: Any, state: Any, hypothesis: Any, seed: Any) -> Any:
        found = []
        for backend in ("coplay", "mctx"):
            config = SearchConfig(kind=kind, simulations=20, depth=20, backend=backend)
            found.append(search(simulator, game, config, state, hypothesis, seed))
        return found

    mine, other = jax.jit(both)(game, simulator, state, hypothesis, seed)
    np.testing.assert_array_equal(mine.visits, other.visits)
    np.testing.assert_allclose(mine.q, other.q, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("crowd", [8, CROWD])
def test_many_trees_under_vmap_are_the_same_trees(
    crowd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups of players search under `vmap`, where loops of one go on as long as the longest."""
    rules = Rules(12, 6)
    node, legal = roots(24)
    flat = compiled(lambda node, legal: ours(rules, node, legal), node, legal)
    monkeypatch.setattr(searches, "CROWD", crowd)
    rows = compiled(
        jax.vmap(lambda node, legal: ours(rules, node, legal)),
        node.reshape(3, 8),
        legal.reshape(3, 8, -1),
    )
    np.testing.assert_array_equal(np.concatenate(rows.child, axis=1), flat.child)
    numbers = rows.numbers.reshape(3, flat.child.shape[0], 8, -1)
    np.testing.assert_allclose(np.concatenate(numbers, axis=1), flat.rows, atol=1e-6)


@pytest.fixture(scope="module")
def some_trees() -> tuple[Tree, Rules]:
    rules = Rules(30, 5)
    node, legal = roots(16, seed=3)
    return compiled(lambda node, legal: ours(rules, node, legal), node, legal), rules


def test_every_edge_is_the_mean_of_what_lies_below(some_trees: tuple[Tree, Rules]) -> None:
    """Recounted from the links alone: visits of a node are one more than those of its actions, its
    value is the mean of the model's and of the Q below, and Q is reward + discount * value."""
    tree, rules = some_trees
    all_visits, all_q, children = (np.asarray(x) for x in (tree.visits, tree.q, tree.child))
    value, raw = np.asarray(tree.value), np.asarray(tree.raw)
    rewards, discounts = np.asarray(tree.reward), np.asarray(tree.discount)
    linked = 0
    for index in range(children.shape[1]):
        todo = [(0, 0)]
        while todo:
            node, depth = todo.pop()
            visits, q = all_visits[node, index], all_q[node, index]
            mean = (raw[node, index] + (visits * q).sum()) / (1 + visits.sum())
            np.testing.assert_allclose(value[node, index], mean, atol=1e-5)
            for action, child in enumerate(children[node, index]):
                assert (child == -1) == (visits[action] == 0)
                if child == -1:
                    continue
                linked += 1
                below = -2 - child if child < 0 else child
                assert below > node and depth < rules.depth
                reward, discount = rewards[below, index], discounts[below, index]
                assert (child < 0) == (discount == 0)
                co_player_cdf = reward + discount * value[below, index]
                np.testing.assert_allclose(q[action], co_player_cdf, atol=1e-5)
                if child > 0 and depth + 1 < rules.depth:
                    assert visits[action] == 1 + all_visits[child, index].sum()
                    todo.append((child, depth + 1))
    assert linked > 100


def test_a_tree_does_not_depend_on_its_neighbours(some_trees: tuple[Tree, Rules]) -> None:
    tree, rules = some_trees
    node, legal = roots(16, seed=3)
    order = np.random.default_rng(0).permutation(16)
    other = compiled(lambda node, legal: ours(rules, node, legal), node[order], legal[order])
    np.testing.assert_array_equal(other.visits[0], tree.visits[0][order])
    np.testing.assert_array_equal(other.q[0], tree.q[0][order])


def test_the_model_is_not_asked_once_all_futures_are_known() -> None:
    """Every action ends: after one visit of each nothing is left to ask."""
    call_where = []

    def ends(action: Any, node: Any, seen: Any, trees: Any) -> tuple[StepOutput, Any]:
        jax.debug.callback(lambda _: call_where.append(1), action[0])
        taken, after = step_model(action, node, seen)
        return taken._replace(discount=jnp.zeros_like(taken.discount)), after

    node, legal = roots(4)
    legal = jnp.ones_like(legal)
    model, rules = Model(observe, ends), Rules(20, 20, sweep=True)
    tree = compiled(
        lambda node, legal: grow(model, evaluation(node), node, legal, rules),
        node,
        legal,
    )
    jax.effects_barrier()
    assert len(call_where) == ACTIONS
    assert (tree.visits[0].sum(1) == 20).all()


@pytest.mark.slow
@pytest.mark.parametrize("vmapped", [False, True])
def test_the_model_may_be_asked_for_some_trees_alone(
    vmapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where most ways end at old nodes; what trees have of their own comes along."""
    count = 128
    own = random_where(jnp.arange(count, dtype=jnp.uint32) + 7, 1)[:, 0]

    def looked_by(node: Any, trees: Any) -> Any:
        jax.debug.callback(lambda _: looked.append(len(node)), node[0])
        mine = own if trees is None else own[trees]
        return observe(node) + (mine > 0).astype(jnp.uint32)

    def taken_by(action: Any, node: Any, seen: Any, trees: Any) -> tuple[StepOutput, Any]:
        jax.debug.callback(lambda _: call_where.append(len(action)), action[0])
        taken, after = step_model(action, node, seen)
        mine = own if trees is None else own[trees]
        return taken._replace(reward=taken.reward + mine), after

    def run() -> Any:
        node, legal = roots(count)

        def one(node: Any, legal: Any) -> Tree:
            return grow(Model(looked_by, taken_by), evaluation(node), node, legal, Rules(40, 2))

        if vmapped:  # all lanes alike: the few of one are the few of all
            tree = compiled(jax.vmap(one), jnp.stack([node, node]), jnp.stack([legal, legal]))
            tree = jax.tree.map(lambda x: x[1], tree)
        else:
            tree = compiled(one, node, legal)
        jax.effects_barrier()
        return tree

    call_where: list[int] = []
    looked: list[int] = []
    sparse = run()
    assert set(call_where) == {count // 4, count}
    assert set(looked) == {count // 4, count * 5 // 8, count}
    assert len(looked) < len(call_where), "what was seen of a node is kept"
    monkeypatch.setattr("coplay.search.partial_batch.SMALL", 1000)
    call_where, looked = [], []
    whole = run()
    assert set(call_where) == set(looked) == {count}
    np.testing.assert_array_equal(sparse.visits, whole.visits)
    np.testing.assert_array_equal(sparse.q, whole.q)


@pytest.mark.slow
def test_worlds_know_what_trees_have_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beliefs, habits and personas that differ from tree to tree, where only some are asked for."""
    game = make_game("stag-hunt")
    simulator, state, hypothesis, seed = arbitrary_searches(game, 128, (8,))
    persona = jnp.arange(128) % 3 - 1

    def own_odds(x: Any) -> Any:
        weights = jnp.exp(3.0 * random_where(seed + x.shape[-1], x[0].size).reshape(x.shape))
        return weights / jnp.sum(weights, axis=-1, keepdims=True)

    simulator = dataclasses.replace(
        simulator,
        habits=own_odds(simulator.habits),
        belief=own_odds(simulator.belief),
        persona=persona,
    )

    def run() -> Any:
        return compiled(
            lambda *a: search(a[0], game, SearchConfig(simulations=24, depth=2), *a[1:]),
            simulator,
            state,
            hypothesis,
            seed,
        )

    sparse = run()
    monkeypatch.setattr("coplay.search.partial_batch.SMALL", 1000)
    whole = run()
    np.testing.assert_array_equal(sparse.visits, whole.visits)
    np.testing.assert_allclose(sparse.q, whole.q, rtol=1e-5, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(actions=st.integers(0, 30), simulations=st.integers(1, 300))
def test_sequential_halving(actions: int, simulations: int) -> None:
    due = halving_visits(actions, simulations)
    assert due == list(get_sequence_of_considered_visits(actions, simulations))


def test_lists_of_numbers_on_the_command_line() -> None:
    assert numbers("32, 200", "simulations") == [32, 200]
    for wrong in ("", "32,", "0", "many", "-1"):
        with pytest.raises(UserError, match="--batch takes numbers above 0"):
            numbers(wrong, "batch")
