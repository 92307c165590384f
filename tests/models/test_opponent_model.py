"""Opponent models: what counts, and measures of accuracy against plain counting."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.models.opponent_model import accuracy, cross_entropy, predict
from coplay.nn.networks import Network, ViewShape, view_shape

RNG = np.random.default_rng(0)


def test_accuracy_counts_like_plain_python() -> None:
    log_probs = np.log(RNG.dirichlet(np.ones(4), size=(5, 12))).astype(np.float32)
    action = RNG.integers(4, size=(5, 12))
    mask = RNG.random((5, 12)) < 0.7
    action[action == 3] = 0  # an action nobody takes
    ours = jax.tree.map(np.asarray, accuracy(*map(jnp.asarray, (log_probs, action, mask))))
    rows = [
        (p, a)
        for p, a, m in zip(
            log_probs.reshape(-1, 4), action.reshape(-1), mask.reshape(-1), strict=True
        )
        if m
    ]
    ranked = [[int(k) for k in np.argsort(-p)] for p, _ in rows]
    confusion = np.zeros((4, 4))
    for order, (_, a) in zip(ranked, rows, strict=True):
        confusion[a, order[0]] += 1
    np.testing.assert_array_equal(ours.confusion, confusion)
    top = [[a in order[:k] for order, (_, a) in zip(ranked, rows, strict=True)] for k in (1, 3)]
    np.testing.assert_allclose([ours.top1, ours.top3], np.mean(top, axis=1), rtol=1e-6)
    np.testing.assert_allclose(ours.loss, -np.mean([p[a] for p, a in rows]), rtol=1e-6)
    for k in range(4):
        taken = sum(a == k for _, a in rows)
        predicted = sum(order[0] == k for order in ranked)
        right = sum(o[0] == k and a == k for o, (_, a) in zip(ranked, rows, strict=True))
        precision, recall = right / max(predicted, 1), right / max(taken, 1)
        f1 = 2 * precision * recall / (precision + recall) if right else 0.0
        measured = [ours.counts[k], ours.ratio[k], ours.precision[k], ours.recall[k], ours.f1[k]]
        expected = [taken, taken / len(rows), precision, recall, f1]
        np.testing.assert_allclose(measured, expected, rtol=1e-5)


def test_a_model_that_knows_nothing_is_right_by_chance() -> None:
    """Equally probable actions do not all count as the most probable."""
    even = accuracy(jnp.zeros((4, 4)), jnp.arange(4), jnp.ones(4, bool))
    assert (float(even.top1), float(even.top3)) == (0.25, 0.75)


def test_nothing_to_count_gives_zeros_not_nan() -> None:
    nothing = accuracy(jnp.zeros((3, 4)), jnp.zeros(3, jnp.int32), jnp.zeros(3, bool))
    assert all(np.all(np.asarray(x) == 0) for x in nothing)


def test_samples_outside_the_mask_are_in_no_loss() -> None:
    log_probs = jnp.log(jnp.array([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]]))
    mask = jnp.array([True, False, True])
    losses = [cross_entropy(log_probs, jnp.array([0, gone, 1]), mask) for gone in (0, 1)]
    np.testing.assert_allclose(losses, [-np.log(0.5 * 0.8) / 2] * 2, rtol=1e-6)


@pytest.mark.slow
def test_predictions_follow_the_goal_and_leave_illegal_actions_out() -> None:
    game = StagHunt(StagHuntConfig(height=2, width=3, players=2, stags=1, hares=1))
    shape = view_shape(game)
    assert (shape.goals, shape.goal_features, shape.habits) == (2, 2, 2)
    model = Network(
        ViewShape(shape.planes, shape.features + 2, shape.actions),
        7,
        key=jax.random.key(0),
        hidden=(8,),
        channels=(),
        activation="tanh",
        head_scale=1.0,
    )
    seen = game.observe(game.reset(jax.random.key(1)))
    probs = [np.exp(predict(model, seen, jnp.tile(goal, (2, 1)))) for goal in jnp.eye(2)]
    for p in probs:
        np.testing.assert_allclose(p.sum(-1), 1.0, rtol=1e-5)
        assert (p[~np.asarray(seen.legal)] == 0).all()
    assert np.abs(probs[0] - probs[1]).max() > 1e-3
