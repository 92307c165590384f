"""Datasets of episodes that were played step by step, in the format of `coplay collect`."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coplay.core import files
from coplay.core.errors import UserError
from coplay.core.game import Game, require_horizon
from coplay.core.goals import hindsight
from coplay.matches.dataset import Dataset, Episodes, save_dataset
from coplay.matches.episodes import Step


def check_keepable(game: Game) -> None:
    """An error if episodes of a game cannot be kept as a dataset."""
    require_horizon(game)
    state = jax.eval_shape(game.reset, jax.random.key(0))
    if any(jnp.issubdtype(x.dtype, jax.dtypes.prng_key) for x in jax.tree.leaves(state)):
        raise UserError(f"states of {game.name} hold random keys, which a dataset cannot keep")
    if not game.tells(game.last_actions):
        raise UserError(
            f"{game.name} does not say what was done last (Game.last_actions), which a dataset "
            "keeps"
        )


def episode_of(game: Game, steps: Sequence[Step], kinds: Sequence[int]) -> Episodes:
    """One whole episode as arrays, [1, ...]. kinds: [seat] which player of the mix sat there."""
    horizon, length = require_horizon(game), len(steps)
    states = [step.state for step in steps] + [steps[-1].after] * (horizon + 1 - length)
    alive = np.stack([step.alive for step in steps])
    # In the game after each step: before the next one, and at the end.
    still = np.concatenate([alive[1:], np.asarray(game.alive(steps[-1].after))[None]])
    goal = np.full(alive.shape, -1)
    if game.goals is not None:
        realised = np.stack([np.asarray(step.realised) for step in steps])
        over = jnp.array([step.over for step in steps])
        known = hindsight(jnp.where(alive, realised, -1), over, game.goals.unrealised)
        goal = np.where(alive, np.asarray(known), -1)
    # What is executed at the end of an episode is repeated: nobody is in the game there.
    action = np.stack([np.asarray(game.last_actions(step.after)) for step in steps])
    cut = np.zeros(length, bool)
    cut[-1] = still[-1].any()

    def filled(rows: Any, kind: Any, rest: Any = 0) -> np.ndarray:
        rows = np.asarray(rows, kind)
        tail = np.broadcast_to(np.asarray(rest, kind), (horizon - length, *rows.shape[1:]))
        return np.concatenate([rows, tail])[None]

    return Episodes(
        state=jax.tree.map(lambda *x: np.stack([np.asarray(one) for one in x])[None], *states),
        action=filled(action, np.int8, action[-1]),
        reward=filled([step.rewards for step in steps], np.float32),
        terminated=filled(alive & ~still, bool),
        truncated=filled(cut, bool),
        sample=filled(alive, bool),
        kind=np.asarray(kinds, np.int8)[None],
        goal=filled(goal, np.int8, -1),
        length=np.array([length], np.int16),
    )


class GrowingDataset:
    """A dataset that grows by whole episodes. Its folder is whole after each of them.

    out: the folder. entries: [seat] who plays, by name; those become the kinds of players.
    """

    def __init__(
        self, out: Path, game_name: str, game_config: Any, entries: Sequence[str], seed: int
    ):
        self.out = out
        self.kinds = tuple(dict.fromkeys(entries))
        self._seats = [self.kinds.index(entry) for entry in entries]
        self._about = (game_name, game_config, self.kinds, seed)
        self._episodes: Episodes | None = None

    def add(self, game: Game, steps: Sequence[Step]) -> None:
        """Keep an episode."""
        new = episode_of(game, steps, self._seats)
        if self._episodes is not None:
            new = jax.tree.map(lambda *x: np.concatenate(x), self._episodes, new)
        self._episodes = new
        dataset = Dataset(*self._about, new)
        if not self.out.exists():
            save_dataset(self.out, dataset)
            return
        # A folder cannot be replaced in one step. A crash between two leaves one of them whole.
        following = self.out.with_name(f"{self.out.name}-new")
        shutil.rmtree(following, ignore_errors=True)
        save_dataset(following, dataset)
        before = files.unfinished_name(self.out)
        files.DISK.replace(self.out, before)
        files.DISK.replace(following, self.out)
        files.DISK.sync(self.out.parent)
        shutil.rmtree(before, ignore_errors=True)
