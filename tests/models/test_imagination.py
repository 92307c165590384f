"""Strangers of imagined games: players whose goal is a prototype."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.algorithms.hop_plus.config import HopPlusConfig, ImaginationConfig
from coplay.algorithms.hop_plus.imagination import Imagination
from coplay.core.config import with_fields
from coplay.core.errors import UserError
from coplay.core.game import Observation
from coplay.games.registry import make_game
from coplay.models.correction import no_correction
from coplay.models.goal_codes import GoalModel, GoalModelConfig, new_goal_model
from coplay.models.goal_inference import Prototypes
from coplay.models.imagination import ImaginedRollout, Imaginer, Start
from coplay.nn import categorical
from coplay.nn.layers import default_init
from coplay.nn.networks import view_shape

GAME = make_game("stag-hunt", height=2, width=3, players=3, stags=1, hares=1, horizon=5)
CONFIG = GoalModelConfig(dim=2, prototypes=4, width=5, opponent_hidden=(6,))

STAY = 4


class Stubborn(GoalModel):
    """Predicts that who has the code `STAY` stays, and others do the first thing that is legal."""

    def predict_actions(self, seen: Any, z: Any, legal: Any, corrections: Any = None) -> Any:
        action = jnp.arange(GAME.actions)
        wish = 1e4 * jnp.where(z[..., :1] == STAY, action == STAY, -action)
        return categorical.log_policy(wish if corrections is None else wish + corrections, legal)


def imagined(
    *codes: float,
    later: float | None = None,
    lasting: bool = False,
    stays: float | None = None,
) -> list[ImaginedRollout]:
    """Four copies, the last two among strangers that are all alike; the ego player stays. later:
    the code of strangers in games that begin after the first ones. stays: what strangers add to the
    logit of staying; None: the model is not corrected."""
    goals = default_init(lambda key: Stubborn(CONFIG, view_shape(GAME), 3, key), jax.random.key(2))  # type: ignore[call-arg]
    steps, copies = 8, 4
    stay = jnp.where(jnp.arange(GAME.actions) == STAY, 0.0, -1e6)

    def add_codes(view: Observation, z: Any, there: Any) -> Observation:
        codes = jnp.where(there[..., None], z, 0.0).reshape(*z.shape[:-2], -1)
        return view._replace(features=jnp.concatenate([view.features, codes], axis=-1))

    @jax.jit
    def rollout(code: Any) -> ImaginedRollout:
        keys = jax.random.split(jax.random.key(3), (steps + 1) * copies)
        state = jax.vmap(GAME.reset)(keys)
        state = jax.tree.map(lambda x: x.reshape(steps + 1, copies, *x.shape[1:]), state)
        memory = jnp.zeros((steps + 1, copies, 2, goals.memory_size))
        stranger = jnp.full((steps + 1, copies, 2, 2), code)
        starts = Start(state, memory, stranger if later is None else stranger.at[1:].set(later))
        if stays is not None:
            shape = (steps + 1, copies, 2, GAME.actions)
            nothing = no_correction(shape)
            tilt = jnp.zeros(shape).at[..., STAY].set(stays)
            starts = starts._replace(acted=nothing, tilt=tilt)
        imaginer = Imaginer(
            game=GAME,
            goals=goals,
            actor=lambda view: jnp.broadcast_to(stay, view.legal.shape),
            add_codes=add_codes,
            inferred=True,
            familiar=2,
            lasting=lasting,
        )
        return imaginer.rollout(starts, jax.random.key(4))

    return [jax.tree.map(np.asarray, rollout(jnp.float32(code))) for code in codes]


@pytest.mark.slow
def test_strangers_act_by_their_code_and_are_known_by_what_they_did() -> None:
    still, moving = imagined(STAY, 0)
    actions = GAME.actions
    for found, stays in ((still, True), (moving, False)):
        # What all did last is in the views that follow, where the episode went on.
        past = found.observation.features[1:, 2:, : 3 * actions].reshape(-1, 2, 3, actions)
        done = past[~found.over[:-1, 2:]].argmax(-1)
        assert len(done) > 3 and (done[:, 0] == STAY).all()
        assert ((done[:, 1:] == STAY) == stays).all()
    codes_still, codes_moving = (x.observation.features[..., -4:] for x in (still, moving))
    # Before anything was done, nothing is known; afterwards the codes differ.
    np.testing.assert_array_equal(codes_still[0], codes_moving[0])
    assert np.abs(codes_still[1:, 2:] - codes_moving[1:, 2:]).max() > 1e-4
    # Copies without strangers know of no stranger.
    np.testing.assert_array_equal(codes_still[:, :2], codes_moving[:, :2])


@pytest.mark.slow
def test_strangers_may_differ_from_every_code_and_the_player_finds_out() -> None:
    actions = GAME.actions
    (as_code,), (still,) = (imagined(0, stays=stays) for stays in (0.0, 1e6))
    for found, stays in ((as_code, False), (still, True)):
        past = found.observation.features[1:, 2:, : 3 * actions].reshape(-1, 2, 3, actions)
        done = past[~found.over[:-1, 2:]].argmax(-1)
        assert ((done[:, 1:] == STAY) == stays).all()
    # Of each co-player a code of two numbers and a correction for every action are told.
    told = still.observation.features[..., -2 * (2 + actions) :].reshape(8, 4, 2, 2 + actions)
    np.testing.assert_allclose(told[0, 2:, :, 2:], 0.0, atol=1e-6)
    begins = np.zeros(still.over.shape, bool)
    begins[1:] = still.over[:-1]
    there = (np.cumsum(begins, axis=0) == 0)[1:, 2:]
    corrections = told[1:, 2:, :, 2:][there]
    assert corrections[..., STAY].max() > 0.3 and corrections.min() < -0.1


@pytest.mark.slow
def test_lasting_strangers_are_met_again_and_remembered() -> None:
    (new,), (kept,) = (imagined(STAY, later=0, lasting=lasting) for lasting in (False, True))
    begins = np.zeros(kept.over.shape, bool)
    begins[1:] = kept.over[:-1]
    # When the second game begins, what was seen in the first is known or forgotten.
    at = tuple(np.argwhere(begins[:, 2:])[0] + [0, 2])
    nothing, known = (x.observation.features[at][-4:] for x in (new, kept))
    np.testing.assert_array_equal(nothing, new.observation.features[0, 2, -4:])
    assert np.abs(known - nothing).max() > 1e-4
    for found, stays in ((kept, True), (new, False)):
        second = np.cumsum(begins[:, 2:], axis=0)[:-1] > 0
        past = found.observation.features[1:, 2:, : 3 * GAME.actions]
        done = past.reshape(-1, 2, 3, GAME.actions)[second & ~found.over[:-1, 2:]].argmax(-1)
        assert len(done) > 1 and ((done[:, 1:] == STAY) == stays).all()
    # Familiar co-players begin with what was remembered of them in any case.
    for x, y in zip(*(jax.tree.leaves(found.observation) for found in (new, kept)), strict=True):
        np.testing.assert_array_equal(x[:, :2], y[:, :2])


def test_the_share_of_strangers_is_what_was_asked_for() -> None:
    def counts(copies: int, **fields: Any) -> tuple[int, int]:
        config = HopPlusConfig(imagination=ImaginationConfig(**{"strangers": 0.0} | fields))
        return Imagination(config, (0,), np.arange(1)).counts(copies)

    assert counts(256, strangers=0.5) == (0, 256)
    assert counts(256, share=0.5) == (256, 0)
    assert counts(256, share=0.25, strangers=0.25) == (128, 128)
    assert counts(16, share=0.2, strangers=0.4) == (8, 16)
    with pytest.raises(UserError, match="below 1 together"):
        ImaginationConfig(share=0.5, strangers=0.5)
    with pytest.raises(UserError, match="prototypes"):
        with_fields(HopPlusConfig(), {"imagination.strangers": 0.5, "goals.inference": "gru"})


@pytest.mark.slow
def test_players_are_alike_in_half_of_the_groups() -> None:
    chances = np.array([0.4, 0.3, 0.2, 0.1])
    model = new_goal_model(CONFIG, view_shape(GAME), 3, jax.random.key(0))
    assert isinstance(model.inference, Prototypes)
    codes = jnp.arange(4.0)[:, None] * jnp.ones(2) / math.sqrt(2)
    model = eqx.tree_at(
        lambda model: (model.inference.numbers, model.inference.prior),
        model,
        (codes, jnp.log(chances) + 3.0),
    )
    sampled = model.inference.sample_groups(jax.random.key(0), (60, 100), 3)
    found = np.asarray(sampled)[..., 0].round()
    alike = (found == found[..., :1]).all(-1).mean()
    assert abs(alike - (0.5 + 0.5 * (chances**3).sum())) < 0.03
    np.testing.assert_allclose([(found == code).mean() for code in range(4)], chances, atol=0.03)
