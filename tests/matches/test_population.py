"""Partners that are drawn for each meeting, as data."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

from coplay.core.game import Game
from coplay.core.group import Group
from coplay.core.player import Memory, Player, View
from coplay.core.trajectory import Trajectory
from coplay.games.diagnostic import HiddenKind, HiddenKindConfig
from coplay.matches.population import Population, population
from coplay.matches.rollout import new_table, rollout

GAME = HiddenKind(HiddenKindConfig(players=3, choices=4, horizon=2))
COPIES, STEPS, MEETING = 16, 7, 2


class Always(Player):
    """Takes the action with the largest number; remembers how often it acted."""

    logits: Float[Array, "*seat action"]

    def start(self, copies: int) -> Memory:
        return jnp.zeros(copies, jnp.int32)

    def act(
        self, game: Game, key: Any, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        return jnp.broadcast_to(self.logits, view.observation.legal.shape), memory + 1

    def record(self, memory: Memory) -> Memory:
        return memory


class Other(Always):
    """Another kind of player."""


def partners() -> list[Player]:
    kinds = (Always, Other, Always)
    return [kind(100.0 * jnp.eye(4)[number]) for number, kind in enumerate(kinds)]


def played(alike: bool, meeting: int, fixed: bool = False) -> list[Trajectory]:
    """Two rollouts, one after the other."""
    made = population(partners(), alike)
    made = Population(made.kinds, made.place, meeting, alike, fixed)
    groups = (Group(Always(jnp.eye(4)[3]), (0,), True), Group(made, (1, 2), True))

    @jax.jit
    def play(groups: Any, key: Any) -> list[Trajectory]:
        table, parts = new_table(GAME, groups, key, COPIES), []
        for _ in range(2):
            key, own = jax.random.split(key)
            table, part = rollout(GAME, groups, table, own, STEPS, jnp.arange(3), meeting=meeting)
            parts.append(part)
        return parts

    return jax.tree.map(np.asarray, play(groups, jax.random.key(0)))


@pytest.mark.slow
def test_a_company_stays_for_a_meeting_and_everybody_forgets() -> None:
    parts = played(alike=True, meeting=MEETING)
    action = np.concatenate([part.action for part in parts])
    drawn = action[..., 1]
    np.testing.assert_array_equal(drawn, action[..., 2])
    assert drawn.max() == 2 and set(drawn[0]) == {0, 1, 2}
    length, changes = MEETING * GAME.horizon, 0
    for begin in range(0, 2 * STEPS, length):
        rows = drawn[begin : begin + length]
        np.testing.assert_array_equal(rows, np.broadcast_to(rows[0], rows.shape))
        changes += int(np.sum(drawn[begin] != drawn[max(begin - 1, 0)]))
    assert changes > COPIES
    steps = np.arange(2 * STEPS)
    begins = np.concatenate([part.past.action for part in parts])[..., 0] == -1  # type: ignore[union-attr]
    np.testing.assert_array_equal(begins, np.tile(steps[:, None] % length == 0, COPIES))
    ends = np.concatenate([part.meeting_over for part in parts])
    np.testing.assert_array_equal(ends[..., 0], np.tile((steps[:, None] + 1) % length == 0, COPIES))
    count = np.concatenate([part.recorded[(0,)] for part in parts])[:, 0]
    np.testing.assert_array_equal(count, np.tile(steps[:, None] % length + 1, COPIES))


@pytest.mark.slow
def test_seats_of_a_mixed_company_draw_their_own() -> None:
    action = played(alike=False, meeting=MEETING)[0].action
    assert np.any(action[..., 1] != action[..., 2])


def test_partners_that_are_not_drawn_share_the_copies() -> None:
    parts = played(alike=True, meeting=MEETING, fixed=True)
    expected = np.arange(COPIES) * 3 // COPIES
    for part in parts:
        np.testing.assert_array_equal(part.action[..., 1], np.tile(expected, (STEPS, 1)))
