"""Social influence: mutual information where it is known, and what counts as a next action."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.algorithms.influence.config import InfluenceConfig
from coplay.algorithms.influence.learner import (
    Influence,
    ModelSamples,
    Next,
    NextActions,
    influence,
)
from coplay.core.config import with_fields
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.trajectory import Trajectory
from coplay.games.matrix import matrix_parts
from coplay.matches.rollout import new_table, rollout
from coplay.nn.networks import view_shape
from coplay.training.records import read_rows

KIND, MAKE = matrix_parts("public-goods")
GAME = MAKE(KIND(rounds=4, players=3))
STEPS, COPIES = 10, 4


def learner(**fields: Any) -> Influence:
    small = {"network.hidden": (4,), "minibatches": 1, "epochs": 1, "model_hidden": 4}
    seats = (0, 1, 2)
    config = with_fields(InfluenceConfig(), small | fields)
    return Influence(config, view_shape(GAME), 3, seats, seats)


class Copying(NextActions):
    """Expects that the first other does next what the own seat does now, almost surely, and that
    the second one chooses at random."""

    def __call__(self, view: Any, own: Any, others: Any) -> Any:
        return jnp.stack([50.0 * own, jnp.zeros_like(own)], axis=-2)


def test_influence_is_the_mutual_information_on_average() -> None:
    """Who copies is influenced by -log pi(a); on the average of the policy that is its entropy,
    the mutual information of both actions. Who chooses at random is not influenced."""
    kind: Any = Copying
    model = kind(2, 3, 2, 2, jax.random.key(0))
    policy = jnp.array([[0.25, 0.75], [0.25, 0.75], [0.5, 0.5]])
    action = jnp.array([0, 1, 0])
    nothing = jnp.zeros((3, 2), int)
    others = Next(nothing, nothing, jnp.ones((3, 2), bool))
    seen = ModelSamples(jnp.zeros((3, 2)), action, policy, others)
    found = influence(model, seen)
    np.testing.assert_allclose(found, -np.log([0.25, 0.75, 0.5]), rtol=1e-4)
    entropy = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    np.testing.assert_allclose(0.25 * found[0] + 0.75 * found[1], entropy, rtol=1e-4)
    # What is not known of counts nothing: the copier has left.
    gone = seen._replace(others=others._replace(counts=others.counts.at[:, 0].set(False)))
    np.testing.assert_allclose(influence(model, gone), 0.0, atol=1e-6)


def played(made: Influence) -> tuple[Any, Trajectory]:
    @jax.jit
    def play(key: jax.Array) -> tuple[Any, Trajectory]:
        state = made.init(key, jnp.arange(3))
        groups = (made.group(state),)
        table = new_table(GAME, groups, key, COPIES)
        return state, rollout(GAME, groups, table, key, STEPS, jnp.arange(3))[1]

    return play(jax.random.key(1))


@pytest.mark.slow
@pytest.mark.parametrize("parameters", ["shared", "separate"])
def test_next_actions_are_of_the_same_episode_and_rewards_are_added(parameters: str) -> None:
    made = learner(parameters=parameters, influence_weight=0.5)
    state, trajectory = played(made)
    # Models before learning expect nearly the same whatever is done.
    state = state._replace(model=jax.tree.map(lambda x: 20.0 * x, state.model))
    data = made.training_data(GAME, trajectory)
    over, counts = np.asarray(trajectory.over), np.asarray(data.others.counts)
    assert over.any() and not over.all()
    assert not counts[over].any() and not counts[-1].any()
    assert counts[:-1][~over[:-1]].all()
    for t, copy, seat, other in np.ndindex(counts.shape):
        whose = (seat + 1 + other) % 3
        assert data.others.action[t, copy, seat, other] == trajectory.action[t, copy, whose]
        if counts[t, copy, seat, other]:
            assert data.others.later[t, copy, seat, other] == trajectory.action[t + 1, copy, whose]
    rewarded, metrics = made._rewarded(made.active_sets(state), data)
    added = (rewarded.reward - trajectory.reward) / 0.5
    assert (added >= -1e-5).all() and added.max() > 0
    assert added.max() > 0.01
    np.testing.assert_allclose(metrics["influence"], added.mean((0, 1)), rtol=1e-3, atol=1e-5)
    # Without a next step there is no influence, and no reward for it.
    np.testing.assert_allclose(added[-1], 0.0, atol=1e-6)
    np.testing.assert_allclose(np.asarray(added)[over], 0.0, atol=1e-6)
    # A seat's influence comes from its own model.
    model = jax.tree.map(lambda x: x.at[0].multiply(3.0), state.model)
    other, _ = made._rewarded(made.active_sets(state._replace(model=model)), data)
    differs = np.abs(other.reward - rewarded.reward).max((0, 1)) > 1e-4
    assert differs.tolist() == ([True] * 3 if parameters == "shared" else [True, False, False])


@pytest.mark.slow
def test_what_copies_is_learned_and_rewarded(tmp_path: Path) -> None:
    """Beside tit-for-tat the model foresees nearly all, and the influence of the own action is
    nearly the entropy of the own policy; beside always-defect there is none."""
    shares = {}
    for other in ("tit-for-tat", "always-defect"):
        fields = {"copies": 64, "rollout": 32, "network.hidden": (16,), "entropy_weight": 0.1}
        coplay.train(
            "influence", "matrix:prisoners-dilemma", steps=60_000, seating=f"influence,{other}",
            out=tmp_path / other, quiet=True, pictures=False, **fields,
        )  # fmt: skip
        row = read_rows(tmp_path / other / "metrics.jsonl")[-1]
        shares[other] = row["influence/seat_0"] / row["entropy/seat_0"]
        assert row["others_top1/seat_0"] > 0.99
    assert 0.85 < shares["tit-for-tat"] < 1.1 and shares["always-defect"] < 0.05


class Alone(Game):
    """Has a single seat."""

    name = "alone"
    action_names = ("wait",)

    @property
    def seats(self) -> int:
        return 1


def test_it_needs_somebody_to_influence() -> None:
    with pytest.raises(UserError, match="two seats"):
        learner().check(Alone())
