"""Trees of a decision as one."""

import numpy as np
import pytest

from coplay.core.player import SearchTrees
from coplay.matches.plan_tree import merged_tree, principal_variation


def trees() -> SearchTrees:
    """Two trees of two actions. First: action 0 three times (then action 1 twice), action 1 once.
    Second: action 0 once, action 1 three times (then action 0 once)."""
    visits, q = np.zeros((2, 4, 2)), np.zeros((2, 4, 2))
    prior, child = np.full((2, 4, 2), 0.5), np.full((2, 4, 2), -1)
    visits[0, 0], q[0, 0], child[0, 0], prior[0, 0] = [3, 1], [2.0, 1.0], [1, 2], [0.9, 0.1]
    visits[0, 1], q[0, 1], child[0, 1] = [0, 2], [0.0, 4.0], [-1, 3]
    visits[1, 0], q[1, 0], child[1, 0], prior[1, 0] = [1, 3], [6.0, 2.0], [1, 2], [0.5, 0.5]
    visits[1, 2], q[1, 2], child[1, 2] = [1, 0], [8.0, 0.0], [3, -1]
    return SearchTrees(visits, q, prior, child)


def test_visits_are_summed_and_q_is_weighted_by_them() -> None:
    first, second = merged_tree(trees(), least=1, depth=None)
    assert first[:2] == [0, 4] and second[:2] == [1, 4]  # equal visits: the higher Q first
    assert first[2] == pytest.approx((3 * 2.0 + 6.0) / 4)
    assert second[2] == pytest.approx((1.0 + 3 * 2.0) / 4)
    assert first[3] == pytest.approx(0.7) and second[3] == pytest.approx(0.3)
    assert first[4] == [[1, 2, 4.0, 0.5, []]] and second[4] == [[0, 1, 8.0, 0.5, []]]


def test_rare_and_deep_nodes_are_left_out() -> None:
    first, second = merged_tree(trees(), least=2, depth=4)
    assert len(first[4]) == 1 and not second[4]
    assert [node[4] for node in merged_tree(trees(), least=1, depth=1)] == [[], []]


def test_the_principal_variation_follows_visits() -> None:
    assert principal_variation(merged_tree(trees(), least=1, depth=None)) == [0, 1]
    assert principal_variation(merged_tree(trees(), depth=1)) == [0]
