"""Who players are in self-play."""

import jax
import jax.numpy as jnp
import numpy as np

from coplay.minds.characters import ITSELF, Salt, characters

SEATS, DRIVES, COPIES, LASTING = 4, 2, 40, 8


def table(school: int = 0, share: float = 0.5, first: int = 0) -> np.ndarray:
    """[episode, copy, seat] of 160 episodes."""
    episode = jnp.broadcast_to(jnp.arange(160)[:, None], (160, COPIES))
    salt = Salt(jnp.full(SEATS, 7, jnp.uint32), jnp.arange(SEATS, dtype=jnp.uint32))
    return np.asarray(
        jax.vmap(
            lambda salt: characters(
                salt,
                episode,
                share=share,
                first=first,
                school=school,
                lasting=LASTING,
                drives=DRIVES,
                seats=SEATS,
            ),
            out_axes=-1,
        )(salt)
    )


def test_one_seat_is_itself_among_characters_and_all_are_in_the_other_copies() -> None:
    who = table(first=16)
    assert (who[:, COPIES // 2 :] == ITSELF).all() and (who[:16] == ITSELF).all()
    among = who[16:, : COPIES // 2]
    assert ((among == ITSELF).sum(axis=-1) == 1).all()
    assert set(among.ravel().tolist()) == {ITSELF, 0, 1, DRIVES}
    # Each seat is itself as often, and characters last.
    np.testing.assert_allclose((among == ITSELF).mean(axis=(0, 1)), 1 / SEATS, atol=0.1)
    blocks = among.reshape(-1, LASTING, COPIES // 2, SEATS)
    assert (blocks == blocks[:, :1]).all()
    # About half of the time all characters are of one kind; by chance one in nine of the rest.
    kinds = np.where(among == ITSELF, among.max(axis=-1, keepdims=True), among)
    alike = (kinds == kinds[..., :1]).all(axis=-1).mean()
    assert 0.4 < alike < 0.7


def test_in_school_all_have_the_same_drive_by_turns() -> None:
    who = table(school=24)
    assert (who[:24] == who[:24, :, :1]).all()
    lessons = who[:24:LASTING, :, 0]  # [lesson, copy]
    assert ((lessons >= 0) & (lessons < DRIVES)).all()
    assert (lessons[1:] != lessons[:-1]).all()
    assert lessons[0].mean() == 0.5
    np.testing.assert_array_equal(who[24:], table()[24:])
