"""The part of `check_game` about what a game says of what a seat does not see (`Game.hidden`)."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from coplay.core.game import Game, Observation, State
from coplay.core.hidden import HiddenStates, first_view


def hidden_faults(
    game: Game, key: PRNGKeyArray, state: State, actions: Int[Array, " seat"]
) -> dict[str, Bool[Array, ""]]:
    """What is wrong in the first step of an episode; nothing where the game does not say it."""
    if game.hidden is None:
        return {}
    hidden: HiddenStates = game.hidden
    keys = jax.random.split(key, 5)
    seen = first_view(game, state)
    after = game.step(keys[0], state, actions)[0]
    now, done = first_view(game, after), game.last_actions(after)
    start = hidden.begin(keys[1], seen)
    told = hidden.told(now)
    possible = hidden.allow(keys[2], start, told)
    stepped = possible._replace(state=game.step(keys[3], possible.state, told)[0])
    mended = hidden.mend(keys[4], stepped, now)
    return {
        "hidden.begin: its state shows another own view": _views_differ(
            first_view(game, start.state), seen
        ),
        "hidden.told: something else was done": _differ(told, done),
        "hidden.allow changes the own view": _views_differ(first_view(game, possible.state), seen),
        # Who has left sees nothing that matters.
        "hidden.mend: its state shows another own view": game.alive(after)[0]
        & _views_differ(first_view(game, mended.state), now),
    }


def _views_differ(one: Observation, other: Observation) -> Bool[Array, ""]:
    """Whether two views differ. Indices say the same as the planes, in the order of things; and
    which of two things of a kind is the first, nobody can see."""
    return _differ(one._replace(indices=None), other._replace(indices=None))


def _differ(one: Any, other: Any) -> Bool[Array, ""]:
    """Whether two trees of arrays differ in a bit."""
    wrong = jax.tree.leaves(jax.tree.map(lambda x, y: jnp.any(x != y), one, other))
    return jnp.any(jnp.stack(wrong))
