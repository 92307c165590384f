"""Parts that can be chosen: what they are given, and that learning begins with the policy that
acted; a fault put in on purpose is caught by the wiring audit's own check."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from coplay.algorithms.mappo.data import Context, MAPPOBatch, MAPPOData
from coplay.algorithms.mappo.hyper import HyperMAPPO
from coplay.algorithms.mappo.hypernetwork import Hypernetwork
from coplay.algorithms.mappo.learner import MAPPO
from coplay.algorithms.mappo.player import HypernetworkWeights, actor_inputs
from coplay.evaluation.audits.wiring import Course, ratio_check
from tests.algorithms.mappo.teams import Played, play, team


class Untold(Hypernetwork):
    """What learns is not told the policies of past steps."""

    def contexts(self, weights: HypernetworkWeights, batch: MAPPOBatch) -> Context:
        return super().contexts(
            weights, batch._replace(log_policy=jnp.zeros_like(batch.log_policy))
        )


class LearnsUntold(HyperMAPPO):
    @property
    def hypernetwork(self) -> Hypernetwork | None:
        return Untold(self.config, self.shape, self.game_seats)


def ratio(learner: MAPPO, played: Played, seen: MAPPOData) -> Any:
    return ratio_check(learner, Course(played.state, played.state, played.table, seen))


@pytest.mark.slow
def test_history_fused_by_policies_learns_from_the_policies_that_acted() -> None:
    right, wrong = (
        team(kind=kind, **{"hypernetwork.memory": "policies"})
        for kind in (HyperMAPPO, LearnsUntold)
    )
    played = play(right)
    assert ratio(right, played, played.seen).passed
    faulty = play(wrong, state=played.state)
    assert not ratio(wrong, faulty, faulty.seen).passed


@pytest.mark.slow
def test_a_memory_that_is_told_learns_from_what_it_was_told() -> None:
    learner = team(**{"memory.kind": "gru", "memory.told": True, "parameters": "shared+id"})
    played = play(learner)
    assert ratio(learner, played, played.seen).passed
    past = played.seen.trajectory.past
    assert past is not None
    forgotten = past._replace(action=jnp.zeros_like(past.action))
    trajectory = played.seen.trajectory._replace(past=forgotten)
    assert not ratio(learner, played, played.seen._replace(trajectory=trajectory)).passed


def test_an_actor_is_told_what_it_did_and_got() -> None:
    """Nothing of the episode before; its number stands last."""
    view, ids = jnp.asarray([[0.5], [0.7]]), jnp.asarray([[0.0, 1.0], [1.0, 0.0]])
    first, action = jnp.asarray([False, True]), jnp.asarray([2, 1])
    given = (view, first, action, jnp.asarray([3.0, 4.0]))
    told = actor_inputs(*given, ids, 3, told=True)
    expected = [[0.5, 0, 0, 1, 3, 0, 0, 1], [0.7, 0, 0, 0, 0, 1, 1, 0]]
    np.testing.assert_allclose(told, expected)
    np.testing.assert_allclose(actor_inputs(*given, ids, 3, told=False), np.hstack([view, ids]))
    np.testing.assert_array_equal(actor_inputs(*given, None, 3, told=False), view)


def test_a_recurrent_actor_that_is_told_declares_it() -> None:
    fields = {"memory.kind": "gru", "memory.told": True}
    assert {"last_action", "last_reward"} <= set(team(**fields).declared_inputs)
    assert "last_action" not in team(**{"memory.kind": "gru"}).declared_inputs
