"""The most that a player can get against a scripted one in an iterated matrix game of two.

A scripted player's next action hangs on the last round, on who has strayed so far, and on the time.
That is a small Markov decision process, and backward induction solves it exactly: for instance,
cooperate 49 times and defect once, against tit-for-tat in 50 rounds of the prisoner's dilemma.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coplay.core.errors import UserError
from coplay.core.game import ScriptedPolicy
from coplay.games.matrix import MatrixGame, MatrixState


class Situations(NamedTuple):
    """What may have happened before a round, [situation]: before the first round nothing, later
    every last round with every mark of who has strayed. states: of the game, but for the time.
    numbers: (last of both, strayed of both) -> its number."""

    states: MatrixState
    numbers: Mapping[tuple[int, ...], int]


def situations(game: MatrixGame) -> Situations:
    """All of them; the first one is the beginning."""
    actions = range(game.actions)
    found = [(-1, -1, 0, 0), *itertools.product(actions, actions, (0, 1), (0, 1))]
    table = np.array(found)
    count = len(found)
    states = MatrixState(
        place=jnp.broadcast_to(jnp.arange(2, dtype=jnp.int8), (count, 2)),
        last=jnp.asarray(table[:, :2], jnp.int8),
        strayed=jnp.asarray(table[:, 2:], bool),
        over=jnp.zeros(count, bool),
        time=jnp.zeros(count, jnp.int16),
    )
    return Situations(states, {key: number for number, key in enumerate(found)})


def best_plan(game: MatrixGame, seat: int, opponent: ScriptedPolicy) -> dict[str, Any]:
    """reward: the most that `seat` can expect per episode. actions: what it does for that, as
    [name, how often] in turn, if chance takes its likeliest course."""
    if game.seats != 2:
        raise UserError(f"best plans are worked out for two players; {game.name} has {game.seats}")
    config, count, other = game.config, game.actions, 1 - seat
    found = situations(game)
    following = _following(found, count)  # [situation, action of seat 0, of seat 1]
    slip = np.full((count, count), config.noise / max(count - 1, 1))
    np.fill_diagonal(slip, 1 - config.noise)
    # [action of seat 0, of seat 1] the pay-off of the seat for what is executed.
    joint = jnp.array(list(itertools.product(range(count), repeat=2)))
    paid = jax.vmap(lambda both: game.pay(jnp.arange(2), both))(joint)
    pay = np.asarray(paid, float).reshape(count, count, 2)[..., seat]

    @jax.jit
    def answers(time: jax.Array) -> jax.Array:
        def policy(state: MatrixState) -> jax.Array:
            state = state._replace(time=time)
            ego = game.permute_seats(state, jnp.array([other, seat]))
            return opponent(game, ego)

        return jax.vmap(policy)(found.states)

    value, choices = np.zeros(len(found.numbers)), []
    for time in reversed(range(config.rounds)):
        policy = np.asarray(answers(jnp.int16(time)), float) @ slip  # [situation, executed]
        worth = pay + config.continuation * value[following]  # [situation, seat 0, seat 1]
        mine = worth if seat == 0 else worth.swapaxes(1, 2)
        chosen = np.einsum("sij,sj,ai->sa", mine, policy, slip)
        choices.append((chosen.argmax(1), policy.argmax(1)))
        value = chosen.max(1)
    course, now = [], 0
    for own, others in reversed(choices):
        both = (own[now], others[now]) if seat == 0 else (others[now], own[now])
        course.append(game.action_names[own[now]])
        now = following[(now, *both)]
    turns = [[name, len(list(times))] for name, times in itertools.groupby(course)]
    return {"reward": float(value[0]), "actions": turns}


def best_plans(game: Any, entries: Sequence[str]) -> list[dict[str, Any] | None]:
    """[seat] the best plan against the co-player; None where that is no scripted player of the
    game, or where it has not two seats."""
    scripted = game.scripted
    if not isinstance(game, MatrixGame) or game.seats != 2:
        return [None] * game.seats
    return [
        best_plan(game, seat, scripted[entries[1 - seat]])
        if entries[1 - seat] in scripted
        else None
        for seat in range(2)
    ]


def _following(found: Situations, actions: int) -> np.ndarray:
    """[situation, action of seat 0, of seat 1] the situation after a round."""
    following = np.zeros((len(found.numbers), actions, actions), int)
    for key, number in found.numbers.items():
        for both in itertools.product(range(actions), repeat=2):
            strayed = tuple(
                int(before or now > 0) for before, now in zip(key[2:], both, strict=True)
            )
            following[number, *both] = found.numbers[*both, *strayed]
    return following
