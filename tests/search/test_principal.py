"""The path that was tried most."""

import jax
import numpy as np

from coplay.core.player import SearchTrees
from coplay.matches.plan_tree import merged_tree, principal_variation
from coplay.search.principal import NOTHING, principal_path


def some_trees(rng: np.random.Generator, trees: int, nodes: int, actions: int) -> SearchTrees:
    """Trees grown by chance, whose visits are those of the ways down."""
    shape = (trees, nodes, actions)
    visits, q, child = np.zeros(shape), rng.normal(size=shape), np.full(shape, -1)
    for tree in range(trees):
        made = 1
        while made < nodes:
            node = 0
            while True:
                action = rng.choice(actions, p=[0.6, 0.3, 0.1])
                visits[tree, node, action] += 1
                if child[tree, node, action] < 0:
                    child[tree, node, action] = made
                    made += 1
                    break
                node = child[tree, node, action]
    return SearchTrees(visits, q, np.full(shape, 1 / actions), child)


def test_it_is_the_variation_of_the_merged_tree() -> None:
    rng = np.random.default_rng(0)
    made = [some_trees(rng, 3, 12, 3) for _ in range(40)]
    stacked = jax.tree.map(lambda *x: np.stack(x), *made)
    found = np.asarray(jax.jit(principal_path, static_argnums=1)(stacked, 6))
    assert len({tuple(path) for path in found}) > 5
    for path, trees in zip(found, made, strict=True):
        asked = principal_variation(merged_tree(trees, depth=6))
        assert [int(action) for action in path if action != NOTHING] == asked
        assert (path[len(asked) :] == NOTHING).all()
