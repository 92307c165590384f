"""The best learners of a run so far, kept beside its checkpoints in `best.npz`."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from coplay.training import checkpoints


class BestLearners:
    """Each seed's learners at the checkpoint before which its team mean was highest.

    learners: with a leading [seed] axis; None: there are none yet. scores: [seed] team means of
    all episodes that ended between two checkpoints, -inf where none did.
    """

    def __init__(self, path: Path, seeds: int):
        self.path, self.seeds = path, seeds
        self.learners: Any = None
        self.scores = [-math.inf] * seeds
        self._recent: list[Mapping[str, np.ndarray]] = []

    def restore(self, scores: list[float | None], like: Any, say: Callable[[str], None]) -> None:
        """Take them up. A run goes on without them if they are damaged, and keeps the next best.

        scores: as `noted` gives them. like: learners of this shape.
        """
        self.scores = [-math.inf if score is None else score for score in scores]
        if not self.path.exists() or max(self.scores) == -math.inf:
            return
        try:
            self.learners, _ = checkpoints.load(self.path, like)
        except checkpoints.DamagedCheckpoint as error:
            say(f"the best learners so far are lost: {error}")
            self.scores = [-math.inf] * self.seeds

    def noted(self) -> list[float | None]:
        """The scores for a note in JSON."""
        return [None if math.isinf(score) else score for score in self.scores]

    def count(self, counts: Mapping[str, np.ndarray]) -> None:
        """Episodes of a block: `episodes` [iteration, seed], `reward` [iteration, seed, seat]."""
        self._recent.append(counts)

    def keep(self, learners: Any, step: int) -> None:
        """Keep the learners of the seeds that were better than ever since this was last asked."""
        if not self._recent:
            return
        episodes, reward = (
            np.sum([np.sum(counts[name], axis=0) for counts in self._recent], axis=0)
            for name in ("episodes", "reward")
        )
        self._recent = []
        score = np.where(episodes > 0, reward.mean(1) / np.maximum(episodes, 1), -np.inf)
        better = score > np.array(self.scores)
        if not better.any():
            return
        now = jax.tree.map(np.asarray, learners)
        before = now if self.learners is None else self.learners
        self.learners = jax.tree.map(
            lambda new, old: np.where(better.reshape(-1, *(1,) * (new.ndim - 1)), new, old),
            now,
            before,
        )
        self.scores = np.where(better, score, self.scores).tolist()
        checkpoints.save(self.path, self.learners, {"step": step, "score": self.scores})
