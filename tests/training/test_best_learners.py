"""The best learners so far."""

import math
from pathlib import Path

import numpy as np

from coplay.training.best_learners import BestLearners


def counts(*rewards: float) -> dict[str, np.ndarray]:
    """One iteration in which two episodes ended, [iteration, seed] and [iteration, seed, seat]."""
    reward = np.array(rewards)[None, :, None]
    return {"episodes": np.full((1, len(rewards)), 2), "reward": np.repeat(2 * reward, 3, axis=2)}


def learners(number: float) -> dict[str, np.ndarray]:
    return {"weight": np.full((2, 4), number, np.float32)}


def test_each_seed_keeps_its_own_best_and_they_are_taken_up(tmp_path: Path) -> None:
    path = tmp_path / "best.npz"
    best = BestLearners(path, 2)
    best.keep(learners(0), 0)
    assert best.noted() == [None, None] and not path.exists()
    for step, rewards in enumerate(((1.0, 5.0), (3.0, 4.0), (2.0, 6.0)), 1):
        best.count(counts(*rewards))
        best.keep(learners(step), step)
    assert best.scores == [3.0, 6.0]
    assert best.learners["weight"][:, 0].tolist() == [2, 3]
    said: list[str] = []
    again = BestLearners(path, 2)
    again.restore(best.noted(), learners(0), said.append)
    np.testing.assert_array_equal(again.learners["weight"], best.learners["weight"])
    assert again.scores == best.scores and not said


def test_blocks_between_checkpoints_count_together(tmp_path: Path) -> None:
    best = BestLearners(tmp_path / "best.npz", 1)
    best.count(counts(1.0))
    best.count(counts(4.0))
    best.keep({"weight": np.zeros((1, 2))}, 1)
    assert best.scores == [2.5]


def test_damaged_ones_are_lost_and_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "best.npz"
    path.write_bytes(b"no archive")
    best, said = BestLearners(path, 2), list[str]()
    best.restore([1.0, None], learners(0), said.append)
    assert best.learners is None and best.scores == [-math.inf] * 2
    assert len(said) == 1 and "lost" in said[0]
