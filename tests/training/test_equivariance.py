"""Seats are alike through the whole chain: rotate seats, players, randomness and layouts, and all
that was played and learned is rotated likewise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.minds.networks import view_shape
from coplay.players.ppo import PPO, PPOConfig
from coplay.training.block import TrainState, init_state, one_iteration
from coplay.training.phases import Phase

COPIES, STEPS, UPDATES, TURN = 8, 12, 3, 1


class Rotated(StagHunt):
    """New seat i is old seat (i + turn) % seats, from the first layout on."""

    turn: jax.Array

    def __init__(self, config: StagHuntConfig, turn: int):
        super().__init__(config)
        self.turn = jnp.int32(turn)

    def reset(self, key):
        order = (jnp.arange(self.seats) + self.turn) % self.seats
        return self.permute_seats(super().reset(key), order)


def learning(learner: PPO):
    """A compiled program that learns from the beginning, for any turn of the seats."""

    @jax.jit
    def learn(game: Rotated, streams: jax.Array) -> tuple[TrainState, dict, TrainState]:
        everyone = Phase(0, ("ppo",) * game.seats, (learner,), ())
        start = init_state(everyone, game, jax.random.key(1), COPIES, streams)

        def again(state: TrainState, key: jax.Array) -> tuple[TrainState, dict]:
            return one_iteration(everyone, game, state, key, jnp.float32(0), STEPS, streams)

        state, counts = jax.lax.scan(again, start, jax.random.split(jax.random.key(2), UPDATES))
        return state, counts, start

    return learn


@pytest.mark.parametrize("parameters", ["separate", "shared"])
def test_rotated_seats_learn_rotated_parameters(parameters: str) -> None:
    config = StagHuntConfig(horizon=9, strength=(1.0, 2.0, 1.0, 3.0))
    game = Rotated(config, 0)
    settings = PPOConfig(parameters=parameters, hidden=(8,), epochs=2, minibatches=2)
    seats = tuple(range(game.seats))
    learn = learning(
        PPO(
            config=settings,
            shape=view_shape(game),
            game_seats=game.seats,
            seats=seats,
            active=seats,
        )
    )
    streams = jnp.arange(game.seats)
    order = (np.arange(game.seats) + TURN) % game.seats
    straight, counted, start = learn(game, streams)
    turned, turned_counted, _ = learn(Rotated(config, TURN), streams[order])

    for name in ("reward", "length", "actions"):
        np.testing.assert_array_equal(turned_counted[name], counted[name][:, order], err_msg=name)
    np.testing.assert_array_equal(turned.table.gained, straight.table.gained[:, order])
    for path, mine in jax.tree_util.tree_leaves_with_path(straight.learners):
        theirs = path_value(turned.learners, path)
        expected = mine[order] if parameters == "separate" else mine
        # Sums over samples may be taken in another order, nothing else may differ.
        np.testing.assert_allclose(theirs, expected, rtol=0, atol=2e-6, err_msg=str(path))
    before, after = (tree.learners[0].actor.layers[0].weight for tree in (start, straight))
    assert np.abs(after - before).max() > 1e-4, "nothing was learned"


def path_value(tree, path):
    return dict(jax.tree_util.tree_leaves_with_path(tree))[path]
