"""Lists of like things in a view: how a game says that some of its numbers are foods, units, or
landmarks, so that a network can treat them as a set (`coplay.nn.entities`)."""

from typing import NamedTuple

import numpy as np


class EntityList(NamedTuple):
    """Things of one kind among the features of an ego view, the same places for all seats.

    name: what they are, in the plural.
    places: [entity][number] which features are the numbers of each.
    there: which of these numbers is 0 where an entity is not there; None: all always are.
    numbered: the order says something, as where action k attacks the k-th. A network is then told
        each one's number; else it gives the same for any order.

        EntityList("foods", in_a_row(start=3, count=4, size=3), there=2)
    """

    name: str
    places: tuple[tuple[int, ...], ...]
    there: int | None = None
    numbered: bool = False


def in_a_row(start: int, count: int, size: int) -> tuple[tuple[int, ...], ...]:
    """The places of `count` entities of `size` numbers each, one after the other."""
    return tuple(
        tuple(range(first, first + size)) for first in range(start, start + count * size, size)
    )


def entity_faults(lists: tuple[EntityList, ...], features: int) -> list[str]:
    """What is wrong with the lists of a game whose views have so many features, in words."""
    faults = []
    used: list[int] = []
    for one in lists:
        sizes = {len(places) for places in one.places}
        used += [place for places in one.places for place in places]
        if len(sizes) != 1 or sizes == {0}:
            faults.append(f"entities '{one.name}' must have the same numbers each, at least one")
        elif one.there is not None and one.there not in range(*sizes):
            faults.append(
                f"entities '{one.name}' have {min(sizes)} numbers each: there={one.there} is none"
            )
    if used and not 0 <= min(used) <= max(used) < features:
        faults.append(f"entities are at places {min(used)} to {max(used)} of {features} features")
    if len(np.unique(used)) != len(used):
        faults.append("a number belongs to two entities")
    return faults
