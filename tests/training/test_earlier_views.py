"""Checkpoints with whole views are read as if they had held indices."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.core.game import Observation
from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.nn.config import NetworkConfig
from coplay.nn.networks import SparseObservation, as_read, view_shape
from coplay.training.checkpoints import DamagedCheckpoint, load, save

GAME = StagHunt(StagHuntConfig(height=3, width=3, players=3, stags=1, hares=2, horizon=6))
SEEDS, ROWS = 2, 5


class Replay(NamedTuple):
    observation: Any
    target: Any


class Learned(NamedTuple):
    replay: Replay


def views() -> Observation:
    """[seed, row, seat]; in some of them somebody left, or prey is gone."""
    state = jax.vmap(GAME.reset)(jax.random.split(jax.random.key(0), SEEDS * ROWS))
    random = np.random.default_rng(0)
    alive, there = (jnp.asarray(random.random((SEEDS * ROWS, 3)) < 0.7) for _ in range(2))
    state = state._replace(alive=alive, prey_alive=there, time=state.time + 2)
    assert not alive.all() and not there.all()
    seen = jax.vmap(GAME.observe)(state)
    return jax.tree.map(lambda x: x.reshape(SEEDS, ROWS, *x.shape[1:]), seen)


def in_order(found: SparseObservation) -> SparseObservation:
    """The same, as the order of indices behind the own player does not matter."""
    own, rest = found.indices[..., :1], found.indices[..., 1:]
    indices = np.concatenate([own, np.sort(rest, axis=-1)], axis=-1)
    return found._replace(indices=indices)


def test_views_become_the_indices_that_the_game_gives(tmp_path: Path) -> None:
    seen, target = views(), jnp.arange(3.0)
    whole = Learned(Replay(seen._replace(indices=None), target))
    save(tmp_path / "old.npz", whole, {})
    wanted = as_read(NetworkConfig(), view_shape(GAME), seen)
    assert isinstance(wanted, SparseObservation)
    like = Learned(Replay(wanted, target))
    found = load(tmp_path / "old.npz", like)[0].replay
    assert found.observation.indices.dtype == wanted.indices.dtype
    jax.tree.map(np.testing.assert_array_equal, in_order(found.observation), in_order(wanted))
    np.testing.assert_array_equal(found.target, target)
    save(tmp_path / "new.npz", like, {})
    again = load(tmp_path / "new.npz", like)[0].replay.observation
    jax.tree.map(np.testing.assert_array_equal, again, wanted)


def test_views_of_another_game_are_refused(tmp_path: Path) -> None:
    seen, target = views(), jnp.arange(3.0)
    whole = Learned(Replay(seen._replace(indices=None), target))
    save(tmp_path / "old.npz", whole, {})
    wanted = as_read(NetworkConfig(), view_shape(GAME), seen)
    assert isinstance(wanted, SparseObservation)
    for other in (
        wanted._replace(indices=wanted.indices[..., :4]),
        wanted._replace(time=wanted.time[:, :3]),
        wanted._replace(legal=wanted.legal[..., :3]),
    ):
        with pytest.raises(DamagedCheckpoint, match="does not fit"):
            load(tmp_path / "old.npz", Learned(Replay(other, target)))
