"""Replays of earlier programs, which held whole ego views where indices are kept today.

What learns from a board by its indices keeps `coplay.nn.networks.SparseObservation`s. Earlier
checkpoints have planes and features in their place; where these are 1 says which indices they are.
"""

from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Bool, Integer, Shaped

Read = Callable[[str], np.ndarray]
INDICES, TIME = ".replay.observation.indices", ".replay.observation.time"
PLANES, FEATURES = ".replay.observation.planes", ".replay.observation.features"


def earlier_views(wanted: Mapping[str, tuple[int, ...]], saved: set[str]) -> dict[str, set[str]]:
    """Arrays that are wanted and can be made of others that were saved -> the names of these.

    wanted: name -> shape.
    """
    made: dict[str, set[str]] = {}
    for name in set(wanted) - saved:
        for ending, needed in ((INDICES, (PLANES, FEATURES)), (TIME, (FEATURES,))):
            begin = name.removesuffix(ending)
            others = {begin + other for other in needed}
            if begin != name and others <= saved:
                made[name] = others
    return made


def made_of_views(name: str, shape: tuple[int, ...], read: Read) -> np.ndarray:
    """One of the arrays that `earlier_views` names, as it is kept today but for its type.

    read: an array that was saved, by its name.
    """
    begin = name.removesuffix(TIME)
    if begin != name:
        return read(begin + FEATURES)[..., -1:]
    begin = name.removesuffix(INDICES)
    return indices_of(read(begin + PLANES), read(begin + FEATURES), shape[-1])


def indices_of(
    planes: Shaped[np.ndarray, "*batch height width plane"],
    features: Shaped[np.ndarray, "*batch feature"],
    number: int,
) -> Integer[np.ndarray, "*batch index"]:
    """Where views are 1, see `Observation.indices`: so many for each, the own player first."""
    *batch, height, width, kinds = planes.shape
    cells = (planes != 0).reshape(-1, height * width * kinds)
    ones = np.concatenate(
        [cells, features.reshape(len(cells), -1)[:, :-1] != 0], axis=1, dtype=bool
    )
    nowhere = ones.shape[1] + 1
    own: Bool[np.ndarray, "view cell"] = cells[:, ::kinds]
    found = np.full((len(cells), number), nowhere)
    found[:, 0] = np.where(own.any(axis=1), own.argmax(axis=1) * kinds, nowhere)
    ones[:, : cells.shape[1] : kinds] = False
    rows, places = np.nonzero(ones)
    first = np.searchsorted(rows, np.arange(len(cells)))
    found[rows, 1 + np.arange(len(rows)) - first[rows]] = places
    return found.reshape(*batch, number)
