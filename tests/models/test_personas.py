"""Personas of self-play."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coplay.models.personas import AVOIDED, NO_PERSONA, PREFERRED, PersonaConfig, PersonaSeed

SEATS, PERSONAS, COPIES, LASTING = 4, 2, 40, 8
SEED = PersonaSeed(jnp.full(SEATS, 7, jnp.uint32), jnp.arange(SEATS, dtype=jnp.uint32))


def table(**fields: Any) -> np.ndarray:
    """[episode, copy, seat] of 160 episodes."""
    episode = jnp.broadcast_to(jnp.arange(160)[:, None], (160, COPIES))
    assign = PersonaConfig(episodes=LASTING, **fields).assign
    return np.asarray(
        jax.vmap(lambda seed: assign(seed, episode, PERSONAS, SEATS), out_axes=-1)(SEED)
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


def test_random_personas_differ_in_what_they_prefer_and_avoid() -> None:
    episode = jnp.broadcast_to(jnp.arange(160)[:, None], (160, COPIES))
    actions = 5

    def rates(**fields: Any) -> np.ndarray:
        of_seat = PersonaConfig(episodes=LASTING, **fields).rates
        return np.asarray(jax.vmap(lambda seed: of_seat(seed, episode, actions))(SEED))

    found = rates()  # [seat, episode, copy, action]
    blocks = found.reshape(SEATS, -1, LASTING, COPIES, actions)
    assert (blocks == blocks[:, :, :1]).all()  # as long as the persona
    each = blocks[:, :, 0].reshape(-1, actions)
    even = (each == 0).all(axis=-1)
    # Half of them are even; of the others (1/2)^5 by chance.
    assert 0.45 < even.mean() < 0.58
    tilted = each[~even]
    assert set(np.unique(tilted)) == {-AVOIDED, 0.0, PREFERRED}
    for action in range(actions):  # each action is avoided as often as preferred
        assert 0.18 < (tilted[:, action] == -AVOIDED).mean() < 0.34
        assert 0.18 < (tilted[:, action] == PREFERRED).mean() < 0.34
    assert (found[0] != found[1]).any()  # seats differ
    assert not rates(random_rates=False).any()
