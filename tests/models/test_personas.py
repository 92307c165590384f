"""Who players are in self-play."""

import jax
import jax.numpy as jnp
import numpy as np

from coplay.models.personas import NO_PERSONA, PersonaSeed, assign_personas

SEATS, DRIVES, COPIES, LASTING = 4, 2, 40, 8


def table(school: int = 0, share: float = 0.5, first: int = 0) -> np.ndarray:
    """[episode, copy, seat] of 160 episodes."""
    episode = jnp.broadcast_to(jnp.arange(160)[:, None], (160, COPIES))
    seed = PersonaSeed(jnp.full(SEATS, 7, jnp.uint32), jnp.arange(SEATS, dtype=jnp.uint32))
    return np.asarray(
        jax.vmap(
            lambda seed: assign_personas(
                seed,
                episode,
                share=share,
                first=first,
                school=school,
                lasting=LASTING,
                personas=DRIVES,
                seats=SEATS,
            ),
            out_axes=-1,
        )(seed)
    )


def test_companies_are_of_three_kinds() -> None:
    who = table(first=16)
    assert (who[:, COPIES // 2 :] == NO_PERSONA).all() and (who[:16] == NO_PERSONA).all()
    among = who[16:, : COPIES // 2]
    blocks = among.reshape(-1, LASTING, COPIES // 2, SEATS)
    assert (blocks == blocks[:, :1]).all()  # characters last
    companies = blocks[:, 0].reshape(-1, SEATS)
    selves = (companies == NO_PERSONA).sum(axis=-1)
    assert set(selves.tolist()) == {0, 1}
    assert 0.23 < (selves == 0).mean() < 0.43
    # Each seat is itself as often, and all kinds of characters are met where any kind is.
    shares = (companies == NO_PERSONA).mean(axis=0)
    np.testing.assert_allclose(shares, shares.mean(), atol=0.06)
    kinds = np.where(companies == NO_PERSONA, companies.max(axis=-1, keepdims=True), companies)
    alike = (kinds == kinds[:, :1]).all(axis=-1) & (selves == 1)
    # A third, and one in nine of the third in which they are of any kind.
    assert 0.27 < alike.mean() < 0.47
    for company in (~alike & (selves == 1), selves == 0):
        met = companies[company]
        counts = np.bincount(met[met != NO_PERSONA], minlength=DRIVES + 1)
        np.testing.assert_allclose(counts / counts.sum(), 1 / (DRIVES + 1), atol=0.1)
    assert (kinds[alike].max(axis=-1) == DRIVES).mean() < 0.15  # drives, unless they met by chance


def test_in_school_all_have_the_same_drive_by_turns() -> None:
    who = table(school=24)
    assert (who[:24] == who[:24, :, :1]).all()
    lessons = who[:24:LASTING, :, 0]  # [lesson, copy]
    assert ((lessons >= 0) & (lessons < DRIVES)).all()
    assert (lessons[1:] != lessons[:-1]).all()
    assert lessons[0].mean() == 0.5
    np.testing.assert_array_equal(who[24:], table()[24:])
