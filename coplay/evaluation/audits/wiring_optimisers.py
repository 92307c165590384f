"""The part of the wiring audit that looks into optimisers: what each keeps of which parameter.

Any optimiser of optax will do. Most keep arrays in the form of the parameters: moments, traces,
sums of squares. They are found by their paths and shapes, or by their length where an optimiser
works on all parameters of a model as one vector. They change when a gradient arrives.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

Path = tuple[str, ...]


class Kept(NamedTuple):
    """An array that an optimiser keeps. where: the path of the optimiser and of its field. own: the
    path inside of what the field holds, which is that of the parameter."""

    where: Path
    own: Path
    array: np.ndarray


def gradient_arrived(
    parameters: Any, moved: set[str], start: Any, state: Any
) -> dict[str, bool | None]:
    """Parameter -> whether a gradient of it has reached an optimiser; None: no optimiser keeps
    anything of it.

    parameters: a tree of arrays. moved: those of them that are not what they were. start, state: of
    the learner, before and after.
    """
    named = {jax.tree_util.keystr(p): (names(p), np.asarray(x)) for p, x in _leaves(parameters)}
    before, after = list(kept_arrays(start)), list(kept_arrays(state))
    owners = [_parameters_of(kept, named) for kept in after]
    alike = Counter((kept.where[-1], tuple(of)) for kept, of in zip(after, owners, strict=True))
    arrived: dict[str, bool | None] = dict.fromkeys(named)
    for old, new, of in zip(before, after, owners, strict=True):
        several = {name for name, part in of.items() if part is ...}
        # Fewer arrays than parameters that they could belong to: they are those of who moves.
        few = alike[new.where[-1], tuple(of)] < len(several)
        chosen = ((several & moved) or several) if few else set(of)
        for name in chosen:
            changed = (old.array != new.array)[of[name]]
            arrived[name] = bool(arrived[name]) or bool(np.any(changed))
    return arrived


def names(path: tuple[Any, ...]) -> Path:
    """The keys of a path by their bare names, whatever containers they lead through."""
    found = []
    for key in path:
        bare = getattr(key, "name", getattr(key, "idx", getattr(key, "key", key)))
        found.append(str(bare))
    return tuple(found)


def _leaves(tree: Any) -> list[tuple[tuple[Any, ...], Any]]:
    return jax.tree_util.tree_leaves_with_path(tree)


def kept_arrays(state: Any, where: Path = (), own: Path | None = None) -> Iterator[Kept]:
    """All arrays of numbers that optimisers keep in a state. own: None outside of optimisers."""
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        is_optimiser = type(state).__module__.startswith("optax")
        for field in state._fields:
            inside = () if is_optimiser else None if own is None else (*own, field)
            yield from kept_arrays(getattr(state, field), (*where, field), inside)
    elif isinstance(state, tuple | list | dict):
        items = state.items() if isinstance(state, dict) else enumerate(state)
        for key, item in items:
            inside = None if own is None else (*own, str(key))
            yield from kept_arrays(item, (*where, str(key)), inside)
    elif own is None and isinstance(state, eqx.Module):
        for name, item in vars(state).items():
            yield from kept_arrays(item, (*where, name))
    elif own is not None:
        for path, x in _leaves(state):
            if jnp.issubdtype(x.dtype, jnp.floating):
                yield Kept(where, (*own, *names(path)), np.asarray(x))


def _parameters_of(kept: Kept, parameters: Mapping[str, tuple[Path, np.ndarray]]) -> dict[str, Any]:
    """The parameters that an array is kept for, and which part of it is theirs. Where several would
    fit, those whose path is most like its own."""
    scores = {
        name: (_common_end(path, kept.own), _common_words(path, kept.where))
        for name, (path, x) in parameters.items()
        if x.shape == kept.array.shape
    }
    scores = {name: score for name, score in scores.items() if score[0] or not kept.own}
    if scores:
        best = max(scores.values())
        return {name: ... for name, score in scores.items() if score == best}
    return _parts_of_vector(kept, parameters) if kept.array.ndim == 1 and not kept.own else {}


def _parts_of_vector(
    kept: Kept, parameters: Mapping[str, tuple[Path, np.ndarray]]
) -> dict[str, slice]:
    """The parameters of a model of which all numbers are one vector, and their places in it."""
    prefixes = {path[:length] for path, _ in parameters.values() for length in range(len(path))}
    fitting = {}
    for prefix in prefixes:
        inside = {
            name: x.size for name, (path, x) in parameters.items() if path[: len(prefix)] == prefix
        }
        if sum(inside.values()) == kept.array.size:
            fitting[prefix] = inside
    if not fitting:
        return {}
    chosen = fitting[max(fitting, key=lambda prefix: (_common_words(prefix, kept.where), prefix))]
    ends = np.cumsum(list(chosen.values()))
    return {
        name: slice(end - size, end) for (name, size), end in zip(chosen.items(), ends, strict=True)
    }


def _common_end(one: Path, other: Path) -> int:
    """How many keys two paths share at their ends."""
    length = 0
    while length < min(len(one), len(other)) and one[-1 - length] == other[-1 - length]:
        length += 1
    return length


def _common_words(one: Path, other: Path) -> int:
    mine, theirs = (set(re.findall("[a-z]+", "_".join(path).lower())) for path in (one, other))
    return len(mine & theirs)


def only_decays(before: np.ndarray, after: np.ndarray) -> bool:
    """Whether all numbers have shrunk by the same factor, as decay of weights makes them."""
    counts = before != 0
    if not counts.any() or not np.array_equal(after[~counts], before[~counts]):
        return False
    factor = after[counts] / before[counts]
    return bool(np.all(factor < 1) and np.allclose(factor, factor[0], rtol=1e-4))
