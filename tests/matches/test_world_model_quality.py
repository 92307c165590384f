"""Measures of world models against boards made by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from coplay.matches.world_model_quality import BEST_PSNR, FAULTS, impossible, psnr

SEATS = 2
PLANES = ("me", "other", "walls", "things")


def board(**where: tuple[int, int]) -> np.ndarray:
    """A 3 x 3 board, [height, width, plane], with one mark in each named plane."""
    planes = np.zeros((3, 3, 4), np.float32)
    for name, place in where.items():
        planes[(*place, PLANES.index(name))] = 1
    return planes


BEFORE = board(me=(1, 1), other=(0, 0), walls=(2, 2), things=(1, 1))


def faults(after: np.ndarray) -> set[str]:
    found = impossible(jnp.asarray(BEFORE[None]), jnp.asarray(after[None]), SEATS)[0]
    return {name for name, there in zip(FAULTS, np.asarray(found), strict=True) if there}


def test_what_can_happen_is_no_fault() -> None:
    assert not faults(BEFORE)
    assert not faults(board(me=(1, 2), other=(0, 1), walls=(2, 2), things=(1, 1)))
    took_it_and_left = board(other=(0, 0), walls=(2, 2))
    assert not faults(took_it_and_left)


def test_what_never_happens_is_named() -> None:
    rest = {"other": (0, 0), "walls": (2, 2), "things": (1, 1)}
    doubled = board(me=(1, 1), **rest) + board(me=(1, 2))
    moved_wall = board(me=(1, 1), other=(0, 0), walls=(2, 1), things=(1, 1))
    assert faults(board(**rest)) == {"vanished"}
    assert faults(board(me=(2, 0), **rest)) == {"jumped"}
    assert faults(doubled) == {"doubled"}
    assert faults(moved_wall) == {"moved thing"}
    gone = BEFORE - board(other=(0, 0))
    found = impossible(jnp.asarray(gone[None]), jnp.asarray(BEFORE[None]), SEATS)[0]
    assert np.asarray(found).tolist() == [name == "appeared" for name in FAULTS]


def test_psnr() -> None:
    assert psnr(np.array([0.01, 0.01])) == pytest.approx(20.0)
    assert psnr(np.zeros(3)) == BEST_PSNR
