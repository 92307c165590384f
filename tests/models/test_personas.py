"""Personas of self-play."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coplay.models.personas import NO_PERSONA, PersonaConfig, PersonaSeed

SEATS, PERSONAS, COPIES, LASTING = 4, 2, 40, 8


def table(**fields: Any) -> np.ndarray:
    """[episode, copy, seat] of 160 episodes."""
    episode = jnp.broadcast_to(jnp.arange(160)[:, None], (160, COPIES))
    seed = PersonaSeed(jnp.full(SEATS, 7, jnp.uint32), jnp.arange(SEATS, dtype=jnp.uint32))
    assign = PersonaConfig(episodes=LASTING, **fields).assign
    return np.asarray(
        jax.vmap(lambda seed: assign(seed, episode, PERSONAS, SEATS), out_axes=-1)(seed)
    )


def test_groups_are_of_three_kinds() -> None:
    who = table(first_episode=16)
    assert (who[:, COPIES // 2 :] == NO_PERSONA).all() and (who[:16] == NO_PERSONA).all()
    among = who[16:, : COPIES // 2]
    blocks = among.reshape(-1, LASTING, COPIES // 2, SEATS)
    assert (blocks == blocks[:, :1]).all()  # personas last
    companies = blocks[:, 0].reshape(-1, SEATS)
    selves = (companies == NO_PERSONA).sum(axis=-1)
    assert set(selves.tolist()) == {0, 1}
    assert 0.23 < (selves == 0).mean() < 0.43
    # Each seat is itself as often, and all personas are met where any kind is.
    shares = (companies == NO_PERSONA).mean(axis=0)
    np.testing.assert_allclose(shares, shares.mean(), atol=0.06)
    kinds = np.where(companies == NO_PERSONA, companies.max(axis=-1, keepdims=True), companies)
    alike = (kinds == kinds[:, :1]).all(axis=-1) & (selves == 1)
    # A third, and one in nine of the third in which they are of any kind.
    assert 0.27 < alike.mean() < 0.47
    for company in (~alike & (selves == 1), selves == 0):
        met = companies[company]
        counts = np.bincount(met[met != NO_PERSONA], minlength=PERSONAS + 1)
        np.testing.assert_allclose(counts / counts.sum(), 1 / (PERSONAS + 1), atol=0.1)
    assert (kinds[alike].max(axis=-1) == PERSONAS).mean() < 0.15  # the random one only by chance


def test_in_the_curriculum_all_have_the_same_persona_by_turns() -> None:
    who = table(curriculum=24)
    assert (who[:24] == who[:24, :, :1]).all()
    lessons = who[:24:LASTING, :, 0]  # [lesson, copy]
    assert ((lessons >= 0) & (lessons < PERSONAS)).all()
    assert (lessons[1:] != lessons[:-1]).all()
    assert lessons[0].mean() == 0.5
    np.testing.assert_array_equal(who[24:], table()[24:])
