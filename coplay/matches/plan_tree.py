"""The trees of a decision as one: nodes are sequences of own actions, merged over all trees."""

from typing import Any

import numpy as np

from coplay.core.player import SearchTrees

MergedNode = list[Any]
"""[action, visits, Q, prior, [MergedNode, …]]: visits are summed over the trees, Q is their mean
weighted by visits, the prior their plain mean."""


def merged_tree(trees: SearchTrees, least: int = 2, depth: int | None = 4) -> list[MergedNode]:
    """What the actions of the root led to, the most visited first.

    trees: [tree, node, action], of one decision. least: nodes of fewer visits are left out.
    depth: the longest path, in actions; None: any.
    """
    visits, q, prior, child = (np.asarray(part).tolist() for part in trees)
    return _below([(tree, 0) for tree in range(len(visits))], visits, q, prior, child, least, depth)


def _below(
    nodes: list[tuple[int, int]],
    visits: list,
    q: list,
    prior: list,
    child: list,
    least: int,
    depth: int | None,
) -> list[MergedNode]:
    """The children of a node. nodes: (tree, node) of the trees that have it."""
    if depth == 0 or not nodes:
        return []
    found = []
    for action in range(len(visits[0][0])):
        taken = [(tree, node) for tree, node in nodes if visits[tree][node][action] > 0]
        total = sum(visits[tree][node][action] for tree, node in taken)
        if total < max(least, 1):
            continue
        value = sum(visits[t][n][action] * q[t][n][action] for t, n in taken) / total
        chance = sum(prior[t][n][action] for t, n in nodes) / len(nodes)
        following = [(tree, child[tree][node][action]) for tree, node in taken]
        following = [(tree, node) for tree, node in following if node >= 0]
        further = None if depth is None else depth - 1
        below = _below(following, visits, q, prior, child, least, further)
        found.append([action, int(total), round(value, 4) + 0.0, round(chance, 4) + 0.0, below])
    return sorted(found, key=lambda node: (-node[1], -node[2]))


def principal_variation(tree: list[MergedNode]) -> list[int]:
    """The actions that were tried most, one after the other; of equals the one of higher Q. It ends
    with the tree, or where an action has fewer than two visits."""
    path: list[int] = []
    while tree and tree[0][1] >= 2:
        path.append(tree[0][0])
        tree = tree[0][4]
    return path
