"""Checkpoints: arrays of a pytree in one NumPy archive, with a JSON note beside them.

Nothing in a file is ever executed: arrays are read without pickle, and the structure comes from the
program. Every entry carries a checksum, so a damaged file is noticed.
"""

import json
import platform
import zipfile
from pathlib import Path
from typing import Any

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import optax

from coplay.core.errors import UserError
from coplay.core.files import replacing
from coplay.core.version import VERSION

NOTE = "note.json"


def versions() -> dict[str, str]:
    """What the numbers of a run may depend on."""
    return {
        "coplay": VERSION,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "equinox": equinox.__version__,
        "optax": optax.__version__,
        "numpy": np.__version__,
        "backend": jax.default_backend(),
    }


class DamagedCheckpoint(Exception):
    """A file that is no complete checkpoint."""


def _is_key(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def _names(tree: Any) -> list[str]:
    return [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(tree)]


def save(path: Path, tree: Any, note: dict[str, Any]) -> None:
    """Write the arrays of `tree` and a note of plain values, whole or not at all."""
    leaves = [jax.random.key_data(x) if _is_key(x) else x for x in jax.tree.leaves(tree)]
    arrays = {name: np.asarray(x) for name, x in zip(_names(tree), leaves, strict=True)}
    text = np.frombuffer(json.dumps({"coplay": VERSION} | note).encode(), np.uint8)
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **{NOTE: text}, **arrays)  # type: ignore[arg-type]


def _open(path: Path) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(path) as archive:
            broken = archive.testzip()
        if broken is not None:
            raise DamagedCheckpoint(f"{path}: entry {broken} does not match its checksum")
        with np.load(path, allow_pickle=False) as data:
            return {name: data[name] for name in data.files}
    except (zipfile.BadZipFile, OSError, ValueError, EOFError, KeyError) as error:
        raise DamagedCheckpoint(f"{path}: {error}") from error


def load(path: Path, like: Any, part: str = "") -> tuple[Any, dict[str, Any]]:
    """Arrays in the structure of `like` (arrays or shapes), and the note.

    part: read only the part of the saved tree below this path, e.g. ".learners".
    """
    arrays = _open(path)
    if NOTE not in arrays:
        raise DamagedCheckpoint(f"{path}: it holds no note")
    note = json.loads(arrays.pop(NOTE).tobytes())
    arrays = {
        name.removeprefix(part): array for name, array in arrays.items() if name.startswith(part)
    }
    names = _names(like)
    if "coplay" not in note and len(names) == len(arrays):
        # Version 0.1 wrote the same arrays in the same order, some under other names.
        arrays = dict(zip(names, arrays.values(), strict=True))
    if set(names) != set(arrays):
        different = sorted(set(names) ^ set(arrays))
        raise UserError(
            f"{path} does not fit this program: {len(different)} arrays differ, first "
            f"{different[0]}; was it written by another version or configuration?"
        )
    leaves = []
    for name, expected in zip(names, jax.tree.leaves(like), strict=True):
        array = arrays[name]
        if _is_key(expected):
            leaves.append(jax.random.wrap_key_data(jnp.asarray(array)))
            continue
        if array.shape != expected.shape or array.dtype != expected.dtype:
            raise UserError(
                f"{path} does not fit this program: {name} is {array.dtype}{list(array.shape)}, "
                f"expected {expected.dtype}{list(expected.shape)}"
            )
        leaves.append(jnp.asarray(array))
    return jax.tree.unflatten(jax.tree.structure(like), leaves), note


def load_note(path: Path) -> dict[str, Any]:
    """The note of a checkpoint alone."""
    return load(path, (), part="nothing")[1]


class Checkpoints:
    """The checkpoints of one run: the last few by step, and the best."""

    def __init__(self, folder: Path, keep: int = 3):
        self.folder = folder
        self.keep = keep

    @property
    def best(self) -> Path:
        return self.folder / "best.npz"

    def all(self) -> list[Path]:
        """By step, the newest last."""
        return sorted(self.folder.glob("step-*.npz"))

    def last_step(self) -> int:
        """The step of the newest checkpoint; 0 if there is none."""
        paths = self.all()
        return int(paths[-1].stem.removeprefix("step-")) if paths else 0

    def save(self, step: int, tree: Any, note: dict[str, Any]) -> Path:
        """Write one and remove the oldest beyond `keep`."""
        path = self.folder / f"step-{step:015d}.npz"
        save(path, tree, note | {"step": step})
        for old in self.all()[: -self.keep]:
            old.unlink()
        return path
