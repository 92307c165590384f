"""Partners that are trained for events of the game."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.core.errors import UserError
from coplay.core.trajectory import Trajectory
from coplay.evaluation.partners import rewards
from coplay.evaluation.partners.config import PartnersConfig
from coplay.evaluation.partners.make import make_partners
from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.training.partner_packs import Pack
from coplay.training.trainer import Watcher

CONFIG = StagHuntConfig(height=3, width=3, players=2, hares=2, horizon=6)


class Counting:
    """A game of two seats whose state is a number: the event happens to the seat of that number."""

    def events(self, state: Any, following: Any) -> Any:
        return jnp.stack([jnp.arange(2) == state, jnp.ones(2, bool)], axis=-1).astype(float)


def test_rewards_are_weighted_events() -> None:
    state = jnp.array([[0, 1], [1, 1]])
    own = jnp.ones((2, 2, 2))
    played: Any = Trajectory(*[None] * 12)._replace(reward=own, state=state, after=state)
    found = rewards.weighted_events(Counting(), jnp.array([2.0, 10.0, -1.0]), played)
    assert np.array_equal(found[0], [[11, 1], [1, 11]])


def test_every_event_is_wanted_by_somebody_and_rare_ones_weigh_more(monkeypatch: Any) -> None:
    game = coplay.make_game("stag-hunt")
    often = np.array([0.001, 0.5, 10.0, 2.0, 10.0, 20.0])
    monkeypatch.setattr(rewards, "behaviour_of", lambda *_: np.tile(often, (4, 1)))
    drawn = rewards.draw_weights(game, 12, 0)
    assert drawn.shape == (12, 7) and set(np.unique(drawn[:, 0])) == {0.0, 1.0}
    assert np.all(np.max(drawn[:, 1:], axis=0) > 0)
    sizes = np.abs(drawn[:, 1:]) * np.maximum(often, rewards.RAREST)
    assert np.all((sizes == 0) | ((sizes > 0.49) & (sizes < 2.01)))
    assert np.array_equal(drawn, rewards.draw_weights(game, 12, 0))
    assert not np.array_equal(drawn, rewards.draw_weights(game, 12, 1))


def test_a_game_without_events_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(StagHunt, "event_names", ())
    with pytest.raises(UserError, match="declares no events"):
        made(tmp_path / "pack")
    assert not (tmp_path / "pack").exists()


def made(folder: Path, watcher: Watcher | None = None) -> Pack:
    config = PartnersConfig(rewards=2, rewards_steps=2000, copies=8)
    return make_partners("stag-hunt", CONFIG, ("rewards",), config, folder, watcher or Watcher())


@pytest.mark.slow
def test_partners_are_made_again_bit_for_bit_and_making_goes_on(tmp_path: Path) -> None:
    whole = made(tmp_path / "whole")

    class Stop(Watcher):
        def say(self, text: str) -> None:
            if text.startswith("partner 2"):
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made(tmp_path / "cut", Stop())
    again = made(tmp_path / "cut")
    names = ("rewards.npz", "pack.json")
    files = [[(pack.folder / name).read_bytes() for name in names] for pack in (whole, again)]
    assert files[0] == files[1]
    assert set(whole.partners[0].how) == {"weights", "steps", "return"}
