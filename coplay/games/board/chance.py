"""What happens by chance on a board while a game is played.

With the same key a situation and its renumbering must go on alike. So nothing is drawn for a seat's
number: what is drawn for a player belongs to its `place`, a number that moves with the player when
seats are renumbered.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Integer, UInt32

from coplay.games.board.walls import bounded


def drawn_cell(word: UInt32[Array, ""], among: Bool[Array, " cell"]) -> Int[Array, ""]:
    """A cell of a mask, uniformly by a random word; cell 0 if the mask is empty."""
    count = jnp.cumsum(among, dtype=jnp.int32)
    return jnp.argmax(count > bounded(word, count[-1])).astype(jnp.int32)


def occupied(cells: int, places: Integer[Array, " thing"]) -> Bool[Array, " cell"]:
    """Which of so many cells have something on them."""
    return jnp.any(jnp.arange(cells)[:, None] == places, axis=1)


def first_come(
    words: UInt32[Array, " place"],
    place: Integer[Array, " seat"],
    contenders: Bool[Array, "seat thing"],
) -> Bool[Array, "seat thing"]:
    """Who gets each thing that several players are at: one of them, by random words."""
    rank = jnp.argsort(jnp.argsort(words))[place]  # [seat], all different
    rank = jnp.where(contenders, rank[:, None], -1)
    return contenders & (rank == jnp.max(rank, axis=0))
