"""A player in a loop that is not ours."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.matches.stepped_player import SteppedPlayer
from coplay.training.players import make_player, step_player


class Counting(coplay.Player):
    """Does the action of the number of steps it remembers; keeps last reward and action."""

    def start(self, copies):
        return jnp.zeros((copies, 3))

    def act(self, game, key, view, memory):
        seen = jnp.stack([memory[:, 0] + 1, view.last_action, view.last_reward], axis=1)
        chosen = memory[:, :1] == jnp.arange(game.actions)
        return jnp.where(chosen, 0.0, -1e9), seen


def observation(game, seat=0, seed=0):
    state = game.reset(jax.random.key(seed))
    return state, jax.tree.map(lambda x: x[seat], game.observe(state))


def test_memory_and_what_it_did_last_are_kept_for_the_caller() -> None:
    game = coplay.make_game("identity", players=4)
    player, (_, seen) = SteppedPlayer(Counting(), game), observation(game)
    assert [player.act(seen), player.act(seen, 0.5)] == [0, 1]
    np.testing.assert_array_equal(player._memory[0], [2, 0, 0.5])
    player.next_episode(2.0)
    assert player.act(seen) == 2
    np.testing.assert_array_equal(player._memory[0], [3, 1, 2.0])
    player.reset()
    assert player.act(seen) == 0
    np.testing.assert_array_equal(player._memory[0], [1, -1, 0])
    assert player.probabilities is not None and player.probabilities[0] == 1


@pytest.mark.slow
def test_a_player_that_decides_by_the_state_asks_for_it() -> None:
    game = coplay.make_game("stag-hunt", height=3, width=3, players=2)
    player = step_player("nh", game, seat=1)
    state, seen = observation(game, seat=1)
    with pytest.raises(coplay.UserError, match="give it to act as state="):
        player.act(seen)
    action = player.act(seen, state=state)
    expected = make_player("nh", game).policy(game, game.ego_state(state, 1))  # type: ignore
    np.testing.assert_allclose(player.probabilities, expected, atol=1e-6)
    assert expected[action] > 0


def test_observations_of_pettingzoo() -> None:
    game = coplay.make_game("stag-hunt", height=3, width=3, players=2)
    env = coplay.to_pettingzoo(game, seed=0)
    seen, _ = env.reset()
    player = step_player("random", game)
    assert seen["player_1"]["action_mask"][player.act(seen["player_1"])]
    with pytest.raises(coplay.UserError, match="'action_mask'"):
        player.act({"planes": 3})
