"""Episodes step by step."""

import numpy as np
import pytest

import coplay
from coplay.core.group import group_players
from coplay.matches.episodes import play_steps
from coplay.matches.match import record_episode
from coplay.training.players import make_player


@pytest.mark.slow
def test_steps_are_those_of_the_recorded_episode() -> None:
    game = coplay.make_game("stag-hunt", height=3, width=3, players=2, horizon=6)
    groups = group_players([make_player(entry, game) for entry in ("random", "nh")])
    steps = list(play_steps(game, groups, episodes=2, seed=4))
    first = [step for step in steps if step.episode == 0]
    recorded = record_episode(game, groups, seed=4)
    np.testing.assert_array_equal([step.actions for step in first], recorded.actions)
    np.testing.assert_array_equal([step.rewards for step in first], recorded.rewards)
    assert [step.time for step in first] == list(range(len(first)))
    assert [step.over for step in first] == [False] * (len(first) - 1) + [True]
    assert steps[-1].episode == 1 and steps[-1].over
    for step in steps:
        np.testing.assert_allclose(step.probabilities.sum(1), 1, rtol=1e-5)
        assert all(step.probabilities[seat, step.actions[seat]] > 0 for seat in range(2))
        assert len(step.views) == 2 and step.views[1].observation.legal.shape == (game.actions,)
        assert step.insights == [None, None]
    np.testing.assert_array_equal(first[1].state.cell, first[0].after.cell)


def test_what_players_expect_is_told() -> None:
    import jax.numpy as jnp

    class Expecting(coplay.Player):
        def act(self, game, key, view, memory):
            return jnp.zeros(view.observation.legal.shape), memory

        def insight(self, game, view, memory):
            copies = view.time.shape[0]
            return coplay.Insight(None, jnp.full((copies, game.seats - 1, game.actions), 0.25))

    game = coplay.make_game("identity", players=3, horizon=1)
    (step,) = coplay.episodes(game, ["random", Expecting(), "random"])
    assert step.insights[0] is None and step.insights[2] is None
    assert step.insights[1] is not None and step.insights[1].action is not None
    assert step.insights[1].action.shape == (2, game.actions)


def test_errors_come_when_it_is_called() -> None:
    with pytest.raises(coplay.UserError, match="has 4 seats"):
        coplay.episodes("stag-hunt", "ns,ns")
