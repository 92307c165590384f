"""Personas: codes of whole lives, and strangers that act by them in imagined games."""

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.errors import UserError
from coplay.games import make_game
from coplay.games.game import Observation
from coplay.minds import categorical
from coplay.minds.goal_codes import GoalConfig, new_goal_model
from coplay.minds.imagination import Imagined, Start, imagine
from coplay.minds.networks import plain_start, view_shape
from coplay.minds.personas import (
    Lives,
    PersonaConfig,
    PersonaModel,
    new_persona_model,
    persona_loss,
)
from coplay.players.hop_plus_config import HopPlusConfig
from coplay.players.hop_plus_dreams import Dreams
from coplay.training.collect import collect
from coplay.training.pretrain_personas import Packed, codes_of_lives

GAME = make_game("stag-hunt", height=2, width=3, players=3, stags=1, hares=1, horizon=5)
CONFIG = PersonaConfig(persona_dim=2, deeds=4, width=8, hidden=(12,), steps=5, lives=7)
MODEL = new_persona_model(CONFIG, view_shape(GAME), 3, jax.random.key(0))


@cache
def packed_lives() -> Packed:
    return Packed(collect("stag-hunt", GAME.config, "ns,nh,random", 150, 0), 5)


def test_a_code_is_of_its_own_life_alone() -> None:
    packed = packed_lives()
    lives = packed.pick(jnp.arange(len(packed.slots)))

    @jax.jit
    def codes(lives: Lives) -> Any:
        return MODEL.codes(MODEL.see(lives.observation), lives)

    before = np.asarray(codes(lives).mean)
    alive, life = np.asarray(lives.alive), np.asarray(lives.life)
    line = int(np.flatnonzero([len(set(row[row >= 0])) > 1 for row in life])[0])
    ids = list(dict.fromkeys(life[line][alive[line]]))
    other = (np.asarray(lives.action)[line] + 1) % GAME.actions
    changed = np.where(life[line] == ids[0], other, np.asarray(lives.action)[line])
    after = np.asarray(codes(lives._replace(action=lives.action.at[line].set(changed))).mean)
    mine = life[line] == ids[0]
    assert np.abs(after - before)[line][mine].min() > 1e-6
    np.testing.assert_array_equal(
        after[line][~mine & alive[line]], before[line][~mine & alive[line]]
    )
    # All steps of a life have the same code, which is what is kept of it.
    for one in ids:
        assert np.ptp(before[line][life[line] == one], axis=0).max() < 1e-6
    number, found = codes_of_lives(MODEL, packed)
    np.testing.assert_array_equal(number, np.unique(life[alive]))
    for one in ids:
        mine = before[life == one][0]
        np.testing.assert_allclose(found[number == one][0], mine, rtol=1e-5, atol=1e-6)


def test_every_life_counts_as_much_as_any_other() -> None:
    packed = packed_lives()
    lives = packed.pick(jnp.arange(len(packed.slots)))
    terms = jax.jit(persona_loss)(MODEL, lives, jax.random.key(1), 0.5)[1]
    code = jax.jit(lambda x: MODEL.codes(MODEL.see(x.observation), x))(lives)
    mean, log_variance = np.asarray(code.mean), np.asarray(code.log_variance)
    kl = 0.5 * (np.exp(log_variance) + mean**2 - 1 - log_variance).sum(-1)
    alive, life = np.asarray(lives.alive), np.asarray(lives.life)
    by_life = [kl[alive & (life == one)][0] for one in np.unique(life[alive])]
    np.testing.assert_allclose(terms["persona_kl"], np.mean(by_life), rtol=1e-4)


STAY = 4


class Stubborn(PersonaModel):
    """Stays if the code says so, else does the first thing that is legal."""

    def act(self, seen: Any, code: Any, legal: Any) -> Any:
        action = jnp.arange(GAME.actions)
        wish = jnp.where(code[..., :1] == STAY, action == STAY, -action)
        return categorical.log_policy(1e4 * wish, legal)


def dreams_of(*personas: float) -> list[Imagined]:
    """Four copies, the last two among strangers that are all alike; the ego player stays."""
    goals = new_goal_model(
        GoalConfig(goal_dim=2, units=4, width=5, opponent_hidden=(6,)),
        view_shape(GAME),
        3,
        jax.random.key(2),
    )
    steps, copies = 4, 4
    strangers = plain_start(
        lambda key: Stubborn(CONFIG, view_shape(GAME), 3, key), jax.random.key(5)
    )
    stay = jnp.where(jnp.arange(GAME.actions) == STAY, 0.0, -1e6)

    def tell(view: Observation, z: Any, there: Any) -> Observation:
        codes = jnp.where(there[..., None], z, 0.0).reshape(*z.shape[:-2], -1)
        return view._replace(features=jnp.concatenate([view.features, codes], axis=-1))

    @jax.jit
    def dream(persona: Any) -> Imagined:
        keys = jax.random.split(jax.random.key(3), (steps + 1) * copies)
        state = jax.vmap(GAME.reset)(keys)
        state = jax.tree.map(lambda x: x.reshape(steps + 1, copies, *x.shape[1:]), state)
        memory = jnp.zeros((steps + 1, copies, 2, goals.config.remembered))
        starts = Start(state, memory, jnp.full((steps + 1, copies, 2, 1), persona))
        return imagine(
            GAME,
            goals,
            lambda view: jnp.broadcast_to(stay, view.legal.shape),
            tell,
            True,
            starts,
            jax.random.key(4),
            strangers,
            2,
        )

    return [jax.tree.map(np.asarray, dream(jnp.float32(persona))) for persona in personas]


def test_strangers_act_by_their_persona_and_are_known_by_what_they_did() -> None:
    still, moving = dreams_of(STAY, 0)
    actions = GAME.actions
    for found, stays in ((still, True), (moving, False)):
        # What all did last is in the views that follow, where the episode went on.
        past = found.observation.features[1:, 2:, : 3 * actions].reshape(3, 2, 3, actions)
        done = past[~found.over[:-1, 2:]].argmax(-1)
        assert len(done) > 3 and (done[:, 0] == STAY).all()
        assert ((done[:, 1:] == STAY) == stays).all()
    codes_still, codes_moving = (x.observation.features[..., -4:] for x in (still, moving))
    # Before anything was done, nothing is known; afterwards the codes differ.
    np.testing.assert_array_equal(codes_still[0], codes_moving[0])
    assert np.abs(codes_still[1:, 2:] - codes_moving[1:, 2:]).max() > 1e-4
    # Copies without strangers know of no persona.
    np.testing.assert_array_equal(codes_still[:, :2], codes_moving[:, :2])


def test_the_share_of_strangers_is_what_was_asked_for() -> None:
    def counts(copies: int, **fields: Any) -> tuple[int, int]:
        return Dreams(HopPlusConfig(personas="x", **fields), (0,), np.arange(1)).counts(copies)

    assert counts(256, strangers=0.5) == (0, 256)
    assert counts(256, imagination=0.5) == (256, 0)
    assert counts(256, imagination=0.25, strangers=0.25) == (128, 128)
    assert counts(16, imagination=0.2, strangers=0.4) == (8, 16)
    with pytest.raises(UserError, match="below 1 together"):
        HopPlusConfig(imagination=0.5, strangers=0.5, personas="x")
    with pytest.raises(UserError, match="personas"):
        HopPlusConfig(strangers=0.5)


def test_companies_are_alike_in_half_of_the_games() -> None:
    bank = jnp.arange(7.0)[:, None] * jnp.ones(2)
    model = eqx.tree_at(lambda model: model.bank, MODEL, bank)
    dreams = Dreams(HopPlusConfig(), (0,), np.arange(1))
    found = np.asarray(dreams.company(jax.random.key(0), model, (40, 50), 3))[..., 0]
    alike = (found == found[..., :1]).all(-1).mean()
    assert abs(alike - (0.5 + 0.5 / 49)) < 0.05
    assert abs(found.mean() - 3.0) < 0.1 and set(found.ravel()) == set(range(7))
    assert dreams.company(jax.random.key(0), None, (2, 3), 3).shape == (2, 3, 3, 0)
