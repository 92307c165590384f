"""Checkpoints: arrays and notes come back; files that do not fit are refused in one sentence."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.core.version import VERSION
from coplay.training import checkpoints


class Before(NamedTuple):
    lives: Any
    salt: Any


class Now(NamedTuple):
    chunks: Any
    persona_seed: Any


def written_by_old_version(path: Path, tree: Any) -> None:
    """As version 0.1 wrote it: the note does not say the version."""
    arrays = {
        jax.tree_util.keystr(place): np.asarray(x)
        for place, x in jax.tree_util.tree_leaves_with_path(tree)
    }
    note = np.frombuffer(json.dumps({"phase": 0}).encode(), np.uint8)
    np.savez(path, **{checkpoints.NOTE: note}, **arrays)


def test_arrays_keys_and_notes_come_back(tmp_path: Path) -> None:
    tree = Now(jnp.arange(3.0), jax.random.key(7))
    checkpoints.save(tmp_path / "a.npz", tree, {"phase": 1})
    found, note = checkpoints.load(tmp_path / "a.npz", jax.eval_shape(lambda: tree))
    np.testing.assert_array_equal(found.chunks, tree.chunks)
    assert jnp.array_equal(
        jax.random.key_data(found.persona_seed), jax.random.key_data(tree.persona_seed)
    )
    assert note == {"coplay": VERSION, "phase": 1}


def test_version_0_1_has_other_names_for_the_same_arrays(tmp_path: Path) -> None:
    path = tmp_path / "old.npz"
    written_by_old_version(path, Before(np.arange(3.0), np.ones((2, 2))))
    found, _ = checkpoints.load(path, Now(np.zeros(3), np.zeros((2, 2))))
    np.testing.assert_array_equal(found.chunks, np.arange(3.0))
    with pytest.raises(
        checkpoints.DamagedCheckpoint, match=r"does not fit this program: \.chunks is float64\[3\]"
    ):
        checkpoints.load(path, Now(np.zeros(4), np.zeros((2, 2))))
    with pytest.raises(checkpoints.DamagedCheckpoint, match="another version or configuration"):
        checkpoints.load(path, (np.zeros(3),))


def test_names_count_in_this_version(tmp_path: Path) -> None:
    checkpoints.save(tmp_path / "a.npz", Before(np.arange(3.0), np.ones(2)), {})
    with pytest.raises(checkpoints.DamagedCheckpoint, match=r"arrays differ, first \.chunks"):
        checkpoints.load(tmp_path / "a.npz", Now(np.zeros(3), np.zeros(2)))
