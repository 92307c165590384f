"""A population that differs: what each kind learns from, and what the critic is told."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.core.trajectory import Trajectory
from coplay.evaluation.partners.config import PartnersConfig
from coplay.evaluation.partners.diverse import as_part, join
from coplay.evaluation.partners.make import make_partners
from coplay.games.stag_hunt import StagHuntConfig
from coplay.training.partner_packs import Pack
from coplay.training.trainer import Watcher

CONFIG = StagHuntConfig(height=3, width=3, players=3, hares=2, horizon=6)


def played(kinds: int = 2, steps: int = 3, copies: int = 4, seats: int = 3) -> Trajectory:
    """Seat 1 leaves in the first step; the episode ends with the second, and seat 2 is cut."""
    shape = (kinds, steps, copies, seats)
    none: Any = jnp.zeros(0)
    alive = jnp.ones(shape, bool).at[:, 1, :, 1].set(False)
    return Trajectory(
        observation=jnp.zeros(shape),
        alive=alive,
        action=jnp.zeros(shape, int),
        log_policy=jnp.zeros((*shape, 2)),
        reward=jnp.broadcast_to(jnp.arange(3.0), shape),
        terminated=jnp.zeros(shape, bool).at[:, 0, :, 1].set(True).at[:, 2, :, 0].set(True),
        truncated=jnp.zeros(shape, bool).at[:, 1, :, 2].set(True),
        over=jnp.zeros(shape[:-1], bool).at[:, 1].set(True),
        final=none,
        last=jnp.zeros((kinds, copies, seats)),
        episode_reward=none,
        episode_steps=none,
    )


def test_a_kind_learns_from_its_own_seats_for_the_whole_company() -> None:
    part = as_part(played(), 1, jnp.arange(3) == 0, -0.5)
    assert np.allclose(part.reward, -0.5)  # -0.5 times the mean of 0, 1 and 2
    assert np.array_equal(np.any(part.alive, axis=(0, 1, 2)), [True, False, False])
    # Leaving ends nothing for the company; the end of the episode does, unless it was cut.
    assert not np.any(part.terminated[:, 0]) and not np.any(part.terminated[:, 2])
    assert np.array_equal(part.terminated[0, 1, 0], [True, True, False])
    assert np.array_equal(part.memory.gone[0, 0], [True, False, False])
    assert np.array_equal(part.memory.part[0, 0, 0], [0, 1, 0])


def test_parts_are_joined_along_the_copies() -> None:
    parts = [as_part(played(), number, jnp.ones(3, bool), 1.0) for number in range(2)]
    nothing: Any = {"final": None, "episode_reward": None, "episode_steps": None}
    joined: Any = jax.vmap(join)(*(one._replace(**nothing) for one in parts))
    assert joined.alive.shape == (2, 3, 8, 3) and joined.last.shape == (2, 8, 3)
    assert np.array_equal(np.argmax(joined.memory.part[0, :, 0], axis=-1), [0] * 4 + [1] * 4)


def made(folder: Path, watcher: Watcher | None = None, **fields: Any) -> Pack:
    config = PartnersConfig(diverse=3, diverse_steps=20_000, copies=32, **fields)
    return make_partners("stag-hunt", CONFIG, ("diverse",), config, folder, watcher or Watcher())


@pytest.mark.slow
def test_a_population_is_made_again_bit_for_bit_and_goes_on(tmp_path: Path) -> None:
    whole = made(tmp_path / "whole")

    class Stop(Watcher):
        def say(self, text: str) -> None:
            if "of" in text and "blocks" in text:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made(tmp_path / "cut", Stop())
    again = made(tmp_path / "cut")
    names = ("diverse.npz", "pack.json")
    files = [[(pack.folder / name).read_bytes() for name in names] for pack in (whole, again)]
    assert files[0] == files[1]
    matrix = np.array([partner.how["matrix"] for partner in whole.partners])
    own, rest = np.diag(matrix).mean(), matrix[~np.eye(3, dtype=bool)].mean()
    assert matrix.shape == (3, 3) and own > rest
