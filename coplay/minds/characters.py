"""Characters: who players of self-play are for a while, so that they meet more than themselves.

In some game copies the players are always themselves. In the others each takes on characters that
last some episodes: itself; with a drive, one of those its game declares (`Goals.drives`), so that
it values only a part of what the game rewards; or aimless, acting by chance. A character is a pure
function of a salt, the game copy and the number of its episode, so it need not be written down to
be known afterwards.
"""

import jax.numpy as jnp
from jaxtyping import Array, Int, UInt32

from coplay.minds.planning import mixed

ITSELF = -1


def characters(
    salt: UInt32[Array, "*#batch"],
    episode: Int[Array, "*batch copy"],
    share: float,
    first: int,
    lasting: int,
    drives: int,
) -> Int[Array, "*batch copy"]:
    """Who a player is in each copy: `ITSELF`, a drive 0 … drives - 1, or `drives`: aimless, each as
    often in the copies with characters.

    share: of the copies with characters, which are the first ones, from their episode `first` on.
    lasting: episodes that a character lasts.
    """
    copies = episode.shape[-1]
    copy = jnp.arange(copies, dtype=jnp.uint32)
    word = mixed(salt[..., None] + copy * jnp.uint32(0x9E3779B1))
    turn = (episode // lasting).astype(jnp.uint32)
    word = mixed(word + (turn + 1) * jnp.uint32(0x85EBCA6B))
    kind = (word % jnp.uint32(drives + 2)).astype(jnp.int32) - 1
    return jnp.where((copy < round(share * copies)) & (episode >= first), kind, ITSELF)
