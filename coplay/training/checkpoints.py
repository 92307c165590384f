"""Checkpoints: arrays of a pytree in one NumPy archive, with a JSON note beside them.

Nothing in a file is ever executed: arrays are read without pickle, and the structure comes from the
program. Every entry carries a checksum, so a damaged file is noticed.
"""

import json
import math
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import optax

from coplay.core.archive import Archive, DamagedArchive, Form, forms_of, open_archive
from coplay.core.errors import UserError
from coplay.core.files import remove, replacing
from coplay.core.version import VERSION
from coplay.games.adapters.versions import library_versions
from coplay.training.earlier_views import earlier_views, made_of_views

T = TypeVar("T")

NOTE = "note.json"
MOST_NOTE = 1 << 20  # bytes


def versions(game: str = "") -> dict[str, str]:
    """What the numbers of a run may depend on. game: its name; the library behind it counts."""
    return library_versions(game) | {
        "coplay": VERSION,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "equinox": equinox.__version__,
        "optax": optax.__version__,
        "numpy": np.__version__,
        "backend": jax.default_backend(),
    }


class DamagedCheckpoint(Exception):
    """A file that is no complete checkpoint of this run; the message says which, and why."""


def _is_key(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def _names(tree: Any) -> list[str]:
    return [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(tree)]


def named_arrays(tree: Any) -> dict[str, np.ndarray]:
    """Name of its place in a tree -> array, as it is saved."""
    leaves = [jax.random.key_data(x) if _is_key(x) else x for x in jax.tree.leaves(tree)]
    return {name: np.asarray(x) for name, x in zip(_names(tree), leaves, strict=True)}


def save(path: Path, tree: Any, note: dict[str, Any]) -> None:
    """Write the arrays of `tree` and a note of plain values, whole or not at all."""
    save_named(path, named_arrays(tree), note)


def save_named(path: Path, arrays: Mapping[str, np.ndarray], note: dict[str, Any]) -> None:
    """Write arrays by their names and a note of plain values, whole or not at all."""
    text = np.frombuffer(json.dumps({"coplay": VERSION} | note).encode(), np.uint8)
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **{NOTE: text}, **arrays)  # type: ignore[arg-type]


def load(path: Path, like: Any, part: str = "") -> tuple[Any, dict[str, Any]]:
    """Arrays in the structure of `like` (arrays or shapes), and the note.

    part: read only the part of the saved tree below this path, e.g. ".learners". All of the file
        is compared with its checksums nevertheless.
    """
    with _opened(path) as archive:
        note = _note(archive)
        saved = [name for name in archive.forms if name != NOTE]
        places = {name.removeprefix(part): name for name in saved if name.startswith(part)}
        wanted = named_forms(like)
        if "coplay" not in note and len(wanted) == len(places):
            # Version 0.1 wrote the same arrays in the same order, some under other names.
            places = dict(zip(wanted, places.values(), strict=True))
        made = earlier_views({name: form.shape for name, form in wanted.items()}, set(places))
        instead = {name for names in made.values() for name in names}
        _check_fits(
            archive,
            {name: place for name, place in places.items() if name not in instead},
            {name: form for name, form in wanted.items() if name not in made},
        )

        def read(name: str) -> np.ndarray:
            return archive.read(places[name])

        arrays = [
            _of_earlier(name, form, read) if name in made else read(name)
            for name, form in wanted.items()
        ]
        used = {places[name] for name in {*wanted, *instead} - set(made)}
        for name in set(saved) - used:
            archive.check(name)
    leaves = [
        jax.random.wrap_key_data(jnp.asarray(array)) if _is_key(expected) else jnp.asarray(array)
        for array, expected in zip(arrays, jax.tree.leaves(like), strict=True)
    ]
    return jax.tree.unflatten(jax.tree.structure(like), leaves), note


def _of_earlier(name: str, form: Form, read: Callable[[str], np.ndarray]) -> np.ndarray:
    """An array that an earlier program saved otherwise."""
    try:
        return made_of_views(name, form.shape, read).astype(form.dtype).reshape(form.shape)
    except (ValueError, IndexError) as error:
        raise DamagedArchive(f"it does not fit this program: {name}: {error}") from error


def load_named(
    path: Path, wanted: Mapping[str, Form], partly: bool = False
) -> dict[str, np.ndarray]:
    """These arrays by their names; an error if a file holds more, unless it is read `partly`."""
    with _opened(path) as archive:
        saved = [name for name in archive.forms if name != NOTE]
        places = {name: name for name in saved if name in wanted or not partly}
        _check_fits(archive, places, dict(wanted))
        return {name: archive.read(name) for name in wanted}


def load_note(path: Path) -> dict[str, Any]:
    """The note of a checkpoint alone."""
    with _opened(path) as archive:
        return _note(archive)


def check_note(note: dict[str, Any], phases: int, per_iteration: int, seeds: int) -> None:
    """An error unless a run with so many phases and seeds can be taken up where a note says."""
    scores = note.get("best_score")
    right = {
        "phase": _whole(note.get("phase")) and note["phase"] < phases,
        "iteration": _whole(note.get("iteration")),
        "metrics_bytes": _whole(note.get("metrics_bytes")),
        "seconds": _number(note.get("seconds")) and note["seconds"] >= 0,
        "compile_seconds": _number(note.get("compile_seconds")) and note["compile_seconds"] >= 0,
        "best_score": isinstance(scores, list)
        and len(scores) == seeds
        and all(score is None or _number(score) for score in scores),
        "versions": isinstance(note.get("versions"), dict),
        "files": "files" not in note or _are_files(note["files"]),
    }
    right["step"] = right["iteration"] and note.get("step") == note["iteration"] * per_iteration
    if wrong := [name for name, fine in right.items() if not fine]:
        raise DamagedCheckpoint(f"its note says no {' and no '.join(wrong)} that fits the run")


def _are_files(stated: Any) -> bool:
    """Whether a note states lengths of files, that of the log among them."""
    return (
        isinstance(stated, dict)
        and "metrics.jsonl" in stated
        and all(isinstance(one, dict) and _whole(one.get("bytes")) for one in stated.values())
    )


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@contextmanager
def _opened(path: Path) -> Iterator[Archive]:
    try:
        with open_archive(path) as archive:
            yield archive
    except DamagedArchive as error:
        raise DamagedCheckpoint(str(error)) from error


def _note(archive: Archive) -> dict[str, Any]:
    form = archive.forms.get(NOTE)
    if form is None or form.dtype != np.uint8 or form.size > MOST_NOTE:
        raise DamagedArchive("it holds no note")
    note = json.loads(archive.read(NOTE).tobytes())
    if not isinstance(note, dict):
        raise DamagedArchive("its note is no object with fields")
    return note


def named_forms(like: Any) -> dict[str, Form]:
    """Name -> form of the arrays of a tree, those of random keys as they are saved."""
    plain = [
        jax.eval_shape(jax.random.key_data, x) if _is_key(x) else x for x in jax.tree.leaves(like)
    ]
    return forms_of(dict(zip(_names(like), plain, strict=True)))


def _check_fits(archive: Archive, places: dict[str, str], wanted: dict[str, Form]) -> None:
    """An error unless the arrays at `places` are those that are wanted; nothing is read yet."""
    if different := sorted(set(wanted) ^ set(places)):
        raise DamagedArchive(
            f"it does not fit this program: {len(different)} arrays differ, first "
            f"{different[0][:80]}; was it written by another version or configuration?"
        )
    for name, form in wanted.items():
        if archive.forms[places[name]] != form:
            raise DamagedArchive(
                f"it does not fit this program: {name} is {archive.forms[places[name]]}, expected "
                f"{form}"
            )


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
        return sorted(path for path in self.folder.glob("step-*.npz") if _step(path) >= 0)

    def last_step(self) -> int:
        """The step of the newest checkpoint; 0 if there is none."""
        paths = self.all()
        return _step(paths[-1]) if paths else 0

    def newest(
        self, read: Callable[[Path], T], say: Callable[[str], None] = lambda text: None
    ) -> T:
        """What `read` gives of the newest checkpoint that is whole. say: is told of others."""
        failed = []
        for path in reversed(self.all()):
            try:
                return read(path)
            except DamagedCheckpoint as error:
                failed.append(str(error))
                say(f"damaged checkpoint passed over: {error}")
        why = failed[0] if failed else "there is none"
        raise UserError(f"no usable checkpoint in {self.folder}: {why}")

    def save(self, step: int, tree: Any, note: dict[str, Any]) -> Path:
        """Write one and remove the oldest beyond `keep`."""
        path = self.folder / f"step-{step:015d}.npz"
        save(path, tree, note | {"step": step})
        for old in self.all()[: -self.keep]:
            remove(old)
        return path


def _step(path: Path) -> int:
    """The step in a checkpoint's name; -1 if it says none."""
    digits = path.stem.removeprefix("step-")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 18 else -1
