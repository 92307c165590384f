"""What actor and critic see of beliefs about co-players."""

import jax
import jax.numpy as jnp
import numpy as np

from coplay.core.game import State
from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.models.goal_simulator import belief_context
from coplay.models.personas import NO_PERSONA
from coplay.models.random_goal import WithRandomGoal

GAME = StagHunt(StagHuntConfig(height=3, width=3, players=3, stags=1, hares=1, horizon=6))


def seen(state: State, persona: int = NO_PERSONA) -> np.ndarray:
    """The context of one copy: of the second co-player it is known that it prefers action 2."""
    belief = jnp.array([[[0.2, 0.3, 0.5], [0.0, 0.6, 0.4]]])
    rates = jnp.zeros((1, 2, 7)).at[0, 1, 2].set(1.5)
    copies = jax.tree.map(lambda x: x[None], state)
    goals = WithRandomGoal(GAME.goals)
    return np.asarray(belief_context(GAME, copies, goals, belief, rates, jnp.array([persona]), 2))[
        0
    ]


def test_context_as_worked_out_by_hand() -> None:
    """[persona flags; of each co-player: stag, hare, no goal, and its rates times "no goal"]."""
    state = GAME.reset(jax.random.key(0))
    first, second = [0.2, 0.3, 0.5, *[0] * 7], [0, 0.6, 0.4, 0, 0, 0.4 * 1.5, 0, 0, 0, 0]
    np.testing.assert_allclose(seen(state), [0, 0, *first, *second], rtol=1e-6)
    assert list(seen(state, persona=1)[:2]) == [0, 1]
    gone = state._replace(alive=jnp.array([True, False, True]))
    np.testing.assert_allclose(seen(gone), [0, 0, *[0] * 10, *second], rtol=1e-6)


def test_a_goal_that_is_gone_weighs_on_goals_and_rates_alike() -> None:
    """Once the hare is caught, who hunts no hare either hunts the stag or has no goal."""
    state = GAME.reset(jax.random.key(0))
    left = state._replace(prey_alive=jnp.array([True, False]))
    chance = 0.5 / (0.2 + 0.5)
    first = [1 - chance, 0, chance, *[0] * 7]
    second = [0, 0, 1, 0, 0, 1.5, 0, 0, 0, 0]
    np.testing.assert_allclose(seen(left), [0, 0, *first, *second], rtol=1e-6)
