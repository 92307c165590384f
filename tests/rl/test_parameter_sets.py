"""What seats share is learned in the order of their streams, wherever they sit."""

import jax.numpy as jnp
import numpy as np
import pytest

from coplay.algorithms.ppo.config import PPOConfig
from coplay.algorithms.ppo.learner import PPO, PPOState
from coplay.core.game import Observation
from coplay.core.trajectory import Trajectory
from coplay.nn.networks import ViewShape
from coplay.rl.parameter_sets import in_order_of_streams

TIMES, COPIES, SEATS = 3, 2, 4
STREAMS = jnp.array([2, 3, 0, 1])


def learner(parameters: str, active: tuple[int, ...]) -> PPO:
    return PPO(
        config=PPOConfig(parameters=parameters),
        shape=ViewShape((0, 0, 0), 1, 2),
        game_seats=SEATS,
        seats=active,
        active=active,
    )


def state() -> PPOState:
    """A set whose identities are the streams of the seats of the game."""
    return PPOState((), (), (), (), jnp.eye(SEATS)[STREAMS][None])


def trajectory(active: tuple[int, ...]) -> Trajectory:
    """The active seats; every number of a seat is its stream."""
    stream = jnp.broadcast_to(STREAMS[np.array(active)], (TIMES, COPIES, len(active)))
    one = stream.astype(jnp.float32)
    view = Observation(one[..., None, None, None], one[..., None], jnp.ones((*one.shape, 2), bool))
    last = Observation(*(x[0] for x in view[:3]))
    return Trajectory(
        observation=view,
        alive=jnp.ones(one.shape, bool),
        action=stream,
        log_policy=jnp.zeros((*one.shape, 2)),
        reward=one,
        terminated=jnp.zeros(one.shape, bool),
        truncated=jnp.zeros(one.shape, bool),
        over=jnp.zeros((TIMES, COPIES), bool),
        final=view,
        last=last,
        episode_reward=one,
        episode_steps=stream,
    )


@pytest.mark.parametrize(
    ("active", "streams", "place"),
    [((0, 1, 2, 3), [0, 1, 2, 3], [2, 3, 0, 1]), ((1, 2), [0, 3], [1, 0])],
)
def test_seats_that_share_parameters_are_in_the_order_of_their_streams(
    active: tuple[int, ...], streams: list[int], place: list[int]
) -> None:
    shared = learner("shared+id", active)
    arranged, ordered, where = in_order_of_streams(shared, state(), trajectory(active), STREAMS)
    for seen in (ordered.reward, ordered.observation.features[..., 0]):
        assert seen[0, 0].tolist() == streams
    assert ordered.last.features[0, :, 0].tolist() == streams
    assert ordered.over.shape == (TIMES, COPIES)
    identities = jnp.argmax(arranged.identity[0, np.array(active)], axis=-1)
    assert identities.tolist() == streams
    assert where.tolist() == place
    assert ordered.reward[0, 0][where].tolist() == STREAMS[np.array(active)].tolist()


def test_seats_with_parameters_of_their_own_stay_where_they_are() -> None:
    own, given, active = state(), trajectory((0, 1, 2, 3)), (0, 1, 2, 3)
    arranged, ordered, where = in_order_of_streams(learner("separate", active), own, given, STREAMS)
    assert arranged is own and ordered is given and where.tolist() == [0, 1, 2, 3]
