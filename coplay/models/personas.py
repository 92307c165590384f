"""Characters: who players of self-play are for a while, so that they meet more than themselves.

In some game copies the players are always themselves. In the others most of them are characters for
some episodes: with a drive, one of those the game declares (`Goals.personas`), so that they value
only a part of what the game rewards; or aimless, acting by chance. Companies are of three kinds,
each as often: one player is itself among characters with the same drive; one is itself among
characters of any kind; all are characters of any kind. Among the last are those in which somebody
with a drive meets nobody to follow it with. A character is a pure function of a salt, the game copy
and the number of its episode, so it need not be written down to be known afterwards.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int, UInt32

from coplay.search.simulator import mix_bits

NO_PERSONA = -1


class PersonaSeed(NamedTuple):
    """What a seat's characters hang on. table: the same for all seats of a run. seat: a number of
    its own, which turns with the seats in an audit."""

    table: UInt32[Array, "*batch"]
    seat: UInt32[Array, "*batch"]


def assign_personas(
    seed: PersonaSeed,
    episode: Int[Array, "*batch copy"],
    share: float,
    first: int,
    school: int,
    lasting: int,
    personas: int,
    seats: int,
) -> Int[Array, "*batch copy"]:
    """Who one of so many seats is in each copy: `NO_PERSONA`, a drive 0 … drives - 1, or
    `personas`:
    aimless.

    share: of the copies with characters, which are the first ones, from their episode `first` on.
    school: episodes of every copy at the start in which all seats have the same drive, by turns.
    lasting: episodes that a character lasts.
    """
    copies = episode.shape[-1]
    copy = jnp.arange(copies, dtype=jnp.uint32)
    turn = (episode // lasting).astype(jnp.uint32)
    word = mix_bits(
        mix_bits(seed.table + copy * jnp.uint32(0x9E3779B1)) + turn * jnp.uint32(0x85EBCA6B)
    )
    mine = mix_bits(word + (seed.seat + 1) * jnp.uint32(0xC2B2AE35))
    company = (word >> 8) % 3
    alike = company == 0
    shared = mix_bits(word) % jnp.uint32(max(personas, 1))  # without drives there is only chance
    kind = jnp.where(alike, shared, mine % jnp.uint32(personas + 1))
    itself = (word % jnp.uint32(seats) == seed.seat) & (company < 2)
    plain = (copy >= round(share * copies)) | (episode < first)
    who = jnp.where(itself | plain, NO_PERSONA, kind.astype(jnp.int32))
    if not (school and personas):
        return who
    lesson = (copy + turn) % jnp.uint32(personas)
    return jnp.where(episode < school, lesson.astype(jnp.int32), who)
