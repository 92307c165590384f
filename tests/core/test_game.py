"""What every game has without saying more, and what it is asked for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.core.errors import UserError
from coplay.core.game import Game, require_horizon, seat_plane_names
from coplay.games.diagnostic import HiddenTarget, HiddenTargetConfig
from coplay.games.snowdrift import Snowdrift
from coplay.games.stag_hunt import StagHunt, StagHuntConfig

GAME = StagHunt(StagHuntConfig(height=2, width=3, players=3, hares=2, horizon=7))


class Endless(Game):
    name = "endless"
    action_names = ("stay",)


def test_a_game_says_its_horizon_or_is_refused_where_it_matters() -> None:
    assert require_horizon(GAME) == 7
    assert Endless().horizon is None
    with pytest.raises(UserError, match="'endless' does not say how long"):
        require_horizon(Endless())


def test_planes_have_names_ego_first() -> None:
    assert seat_plane_names(2) == ("player 0 (self)", "player 1")
    assert GAME.plane_names[-3:] == ("walls", "stags", "hares")
    assert Snowdrift().plane_names[-2:] == ("walls", "drifts")
    planes = GAME.observe(GAME.reset(jax.random.key(0))).planes
    assert len(GAME.plane_names) == planes.shape[-1]
    assert Endless().plane_names == ()


def test_the_global_state_is_what_all_seats_see() -> None:
    state = GAME.reset(jax.random.key(1))
    seen = GAME.observe(state)
    rows = [[*np.ravel(seen.planes[seat]), *seen.features[seat]] for seat in range(3)]
    np.testing.assert_array_equal(GAME.global_state(state), np.ravel(rows))
    assert GAME.view_is_global and not GAME.has_global_state


def test_an_ego_state_puts_the_seat_first_where_seats_can_be_renumbered() -> None:
    state = GAME.reset(jax.random.key(2))
    np.testing.assert_array_equal(GAME.ego_state(state, 1).cell, state.cell[jnp.array([1, 2, 0])])
    other = HiddenTarget(HiddenTargetConfig(players=2))
    fixed = other.reset(jax.random.key(0))
    assert other.ego_state(fixed, 1) is fixed
