"""Rows as curves of bounded length."""

import json
from pathlib import Path

import numpy as np
import pytest

from coplay.reports import thinning
from coplay.reports.thinning import last_step, read_curves


def write_rows(path: Path, rows: list) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_points_are_means_of_rows(tmp_path: Path) -> None:
    rows = [
        {"step": 10 * i, "seed": seed, "seconds": 1.0, "kl": float(i) + 100 * seed}
        for i in range(1, 1001)
        for seed in (0, 1)
    ]
    found = read_curves(write_rows(tmp_path / "m", rows), [0, 1], 100)
    assert found.rows == 2000 and set(found.values) == {"kl"}
    np.testing.assert_allclose(found.steps, 10 * np.arange(5.5, 1000, 10))
    np.testing.assert_allclose(found.values["kl"][1], 100 + np.arange(5.5, 1000, 10))


def test_few_rows_stay_as_they_are(tmp_path: Path) -> None:
    rows = [{"step": 8 * i, "seed": 3, "a": i * i, "b": None} for i in range(1, 8)]
    found = read_curves(write_rows(tmp_path / "m", rows), [3], 7)
    assert found.steps.tolist() == [8, 16, 24, 32, 40, 48, 56]
    assert found.values["a"][0].tolist() == [1, 4, 9, 16, 25, 36, 49]
    assert np.isnan(found.values["b"]).all()


def test_damaged_rows_and_numbers_are_left_out(tmp_path: Path) -> None:
    path = write_rows(
        tmp_path / "m",
        [
            {"step": 1, "seed": 0, "a": 1.0},
            {"step": 1, "seed": 7, "a": 50.0},
            {"step": -4, "seed": 0, "a": 50.0},
            {"step": "2", "seed": 0, "a": 50.0},
            {"step": 2, "seed": 0, "a": [50.0]},
            {"step": 3, "seed": 0, "a": 10**400},
            {"step": 4, "seed": 0, "a": 4.0},
        ],
    )
    path.write_bytes(path.read_bytes() + b'[1]\n{"step": 90, "se')
    assert last_step(path) == 4
    found = read_curves(path, [0], 10)
    assert found.steps.tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(found.values["a"], [[1, np.nan, np.nan, 4]])
    assert len(read_curves(tmp_path / "none", [0], 10).steps) == 0


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinning, "MOST_NUMBERS", 300)
    rows = [{"step": i, "seed": 0, f"metric{i}": 1.0} for i in range(1, 90)]
    found = read_curves(write_rows(tmp_path / "m", rows), [0], 10)
    assert len(found.values) == 5
