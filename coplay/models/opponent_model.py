"""Models of others: what a co-player does, given what it sees and what it is after.

A model is a network on the co-player's own ego view, with the candidate goal's features as further
inputs. It learns from steps of co-players in the game, with goals known in hindsight.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from coplay.core.game import Observation
from coplay.core.numerics import masked_mean
from coplay.nn import categorical
from coplay.nn.networks import Network, read, with_inputs
from coplay.nn.sparse_views import SparseView


def predict(
    model: Network, observation: Observation, goal: Float[Array, "*batch feature"]
) -> Float[Array, "*batch action"]:
    """Log-probabilities of the actions of players with these ego views and goals."""
    return predict_from(model, read(model, observation), goal, observation.legal)


def predict_from(
    model: Network,
    view: Float[Array, "*batch inputs"] | SparseView,
    goal: Float[Array, "*batch feature"],
    legal: Bool[Array, "*batch action"],
) -> Float[Array, "*batch action"]:
    """As `predict`, from views as the model reads them."""
    return categorical.log_policy(model(with_inputs(view, goal)), legal)


def cross_entropy(
    log_probs: Float[Array, "*batch action"],
    action: Int[Array, "*batch"],
    mask: Bool[Array, "*batch"],
) -> Float[Array, ""]:
    """Mean of -log P(action) over the samples in the mask."""
    return masked_mean(-categorical.take(log_probs, action), mask, None)


class Accuracy(NamedTuple):
    """How well actions are predicted, over samples in a mask; n = actions.

    confusion: [n, n] how often the action of the row was predicted as that of the column.
    top1, top3: [] share of actions that were the most probable, among the three most probable.
    counts, ratio: [n] how often an action was taken, and its share.
    precision, recall, f1: [n] of each action; 0 where there is nothing to divide by.
    loss: [] mean of -log P(action).
    """

    confusion: Float[Array, "action action"]
    top1: Float[Array, ""]
    top3: Float[Array, ""]
    counts: Float[Array, " action"]
    ratio: Float[Array, " action"]
    precision: Float[Array, " action"]
    recall: Float[Array, " action"]
    f1: Float[Array, " action"]
    loss: Float[Array, ""]

    def metrics(self) -> dict[str, Array]:
        """What a run writes of it, by the names of `coplay.training.metrics`."""
        return {
            "opponent_top1": self.top1,
            "opponent_top3": self.top3,
            "opponent_count": self.counts,
            "opponent_ratio": self.ratio,
            "opponent_precision": self.precision,
            "opponent_recall": self.recall,
            "opponent_f1": self.f1,
        }


def rank(
    log_probs: Float[Array, "sample action"], action: Int[Array, " sample"]
) -> Int[Array, " sample"]:
    """How many actions were held more probable than the one that was taken; equally probable ones
    come in their order, as in argmax: else a model that knows nothing would have them all first."""
    chosen = categorical.take(log_probs, action)[:, None]
    before = jnp.arange(log_probs.shape[-1]) < action[:, None]
    return jnp.sum((log_probs > chosen) | ((log_probs == chosen) & before), axis=-1)


def accuracy(
    log_probs: Float[Array, "*batch action"],
    action: Int[Array, "*batch"],
    mask: Bool[Array, "*batch"],
) -> Accuracy:
    """The accuracy of predictions for the actions that were taken."""
    actions = log_probs.shape[-1]
    log_probs = log_probs.reshape(-1, actions)
    action, mask = action.reshape(-1), mask.reshape(-1)
    kinds = jnp.arange(actions)
    taken = ((action[:, None] == kinds) & mask[:, None]).astype(jnp.float32)
    predicted = (jnp.argmax(log_probs, axis=-1)[:, None] == kinds).astype(jnp.float32)
    confusion = taken.T @ predicted
    count, guessed, right = confusion.sum(1), confusion.sum(0), jnp.diagonal(confusion)
    precision = right / jnp.maximum(guessed, 1)
    recall = right / jnp.maximum(count, 1)
    return Accuracy(
        confusion=confusion,
        top1=jnp.sum(right) / jnp.maximum(jnp.sum(count), 1),
        top3=masked_mean((rank(log_probs, action) < 3).astype(jnp.float32), mask, None),
        counts=count,
        ratio=count / jnp.maximum(jnp.sum(count), 1),
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / jnp.maximum(precision + recall, 1e-8),
        loss=cross_entropy(log_probs, action, mask),
    )
