"""What players with a model of the world foresaw of a step, beside what came."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from coplay.core.game import Game, State
from coplay.core.group import Group
from coplay.core.player import Foreseen, View
from coplay.matches.world_model_quality import impossible


class Foresight(NamedTuple):
    """Of the seats of a group, [seat of the group, copy, ...].

    foreseen: what the joint action was expected to lead to. came: the next board as the seat sees
    it. error: the mean squared difference of both over cells and planes. impossible: [fault] what
    the most probable board shows that can never happen, see `FAULTS`.
    """

    foreseen: Foreseen
    came: Bool[Array, "*batch copy height width plane"]
    error: Float[Array, "*batch copy"]
    impossible: Bool[Array, "*batch copy fault"]


def foresee_all(
    game: Game,
    groups: tuple[Group, ...],
    views: View,
    after: State,
    actions: Int[Array, "copy seat"],
) -> tuple[Foresight | None, ...]:
    """For each group what its players foresaw; None: they have no model of the world.

    views: [seat, copy, ...] what all saw before the step. after: [copy, ...] the states it led to.
    """
    seats = np.arange(game.seats)
    ego = jnp.moveaxis(actions[:, (seats[:, None] + seats) % game.seats], 1, 0)
    found: list[Foresight | None] = []
    for group in groups:
        index = np.array(group.seats)
        mine = jax.tree.map(lambda x, index=index: x[index], views)
        foreseen = group.foresee(game, mine, ego[index])
        if foreseen is None:
            found.append(None)
            continue
        came = jnp.moveaxis(jax.vmap(game.observe)(after).planes, 1, 0)[index]
        faults = jax.vmap(lambda now, then: impossible(now, then, game.seats))(
            mine.observation.planes.astype(jnp.float32), foreseen.likely
        )
        error = jnp.mean(jnp.square(foreseen.board - came), axis=(-3, -2, -1))
        found.append(Foresight(foreseen, came, error, faults))
    return tuple(found)
