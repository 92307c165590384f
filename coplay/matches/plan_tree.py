"""The trees of a decision as one: nodes are sequences of own actions, merged over all trees."""

from typing import Any, NamedTuple

import numpy as np

from coplay.core.player import SearchTrees

MergedNode = list[Any]
"""[action, visits, Q, prior, [MergedNode, …]]: visits are summed over the trees, Q is their mean
weighted by visits, the prior their plain mean."""


class _Arrays(NamedTuple):
    """`SearchTrees` in NumPy."""

    visits: np.ndarray
    q: np.ndarray
    prior: np.ndarray
    child: np.ndarray


class _Level(NamedTuple):
    """The nodes [place] of all trees that lie equally deep. group: the merged node that each
    belongs to; groups: how many of those there are."""

    tree: np.ndarray
    node: np.ndarray
    group: np.ndarray
    groups: int


def merged_tree(trees: SearchTrees, least: int = 2, depth: int | None = 4) -> list[MergedNode]:
    """What the actions of the root led to, the most visited first.

    trees: [tree, node, action], of one decision. least: nodes of fewer visits are left out.
    depth: the longest path, in actions; None: any.
    """
    arrays = _Arrays(*(np.asarray(part) for part in trees))
    number = len(arrays.visits)
    nothing = np.zeros(number, int)
    level = _Level(np.arange(number), nothing, nothing, 1)
    roots: list[list[MergedNode]] = [[]]
    above, far = roots, 0
    while level.groups and far != depth:
        level, above = _next_level(arrays, level, above, max(least, 1))
        far += 1
    return _in_order(roots[0])


def _next_level(
    trees: _Arrays, level: _Level, above: list[list[MergedNode]], least: int
) -> tuple[_Level, list[list[MergedNode]]]:
    """The next level and the lists of its children, still empty. The merged nodes of this level's
    actions are added to the lists in `above`."""
    visits, q, prior = (
        part[level.tree, level.node].astype(np.float64)
        for part in (trees.visits, trees.q, trees.prior)
    )  # [place, action]
    size = (level.groups, visits.shape[1])
    cells = level.group[:, None] * size[1] + np.arange(size[1])

    def summed(values: np.ndarray) -> np.ndarray:
        """[group, action]"""
        return np.bincount(cells.ravel(), values.ravel(), size[0] * size[1]).reshape(size)

    total = summed(visits)
    value = summed(visits * q) / np.maximum(total, 1)
    chance = summed(prior) / np.maximum(summed(np.ones_like(prior)), 1)
    kept = total >= least
    places = np.argwhere(kept).tolist()
    told = np.round(np.stack([value, chance], axis=-1)[kept], 4) + 0.0
    below: list[list[MergedNode]] = [[] for _ in places]
    rows = zip(places, total[kept].astype(int).tolist(), told.tolist(), below, strict=True)
    for (group, action), number, (mean, before), children in rows:
        above[group].append([action, number, mean, before, children])
    new = np.cumsum(kept.ravel()).reshape(size) - 1  # the numbers of the kept ones
    child = trees.child[level.tree, level.node]
    goes_on = (visits > 0) & (child >= 0) & kept[level.group]
    place, taken = np.nonzero(goes_on)
    group = new[level.group[place], taken]
    # Groups that no tree goes on from stay, without nodes.
    groups = len(below) if len(place) else 0
    return _Level(level.tree[place], child[place, taken], group, groups), below


def _in_order(nodes: list[MergedNode]) -> list[MergedNode]:
    """The most visited first, on all levels; of equals the one of higher Q."""
    for node in nodes:
        node[4] = _in_order(node[4])
    return sorted(nodes, key=lambda node: (-node[1], -node[2]))


def principal_variation(tree: list[MergedNode]) -> list[int]:
    """The actions that were tried most, one after the other; of equals the one of higher Q. It ends
    with the tree, or where an action has fewer than two visits."""
    path: list[int] = []
    while tree and tree[0][1] >= 2:
        path.append(tree[0][0])
        tree = tree[0][4]
    return path
