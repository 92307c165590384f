"""LIAM, local information agent modelling (Papoudakis, Christianos and Albrecht, 2021).

An encoder reads the seat's own history and gives an embedding z_t. A decoder reconstructs from z_t
what the others see (o) and do (a) in the same step:

    loss = view_weight * mean |o - f(z_t)|²  -  action_weight * mean log p(a | z_t)

The decoder is needed in training alone. The policy is given (view, z_t), and its loss does not
reach the encoder. Encoder, policy and their training are in `coplay.algorithms.ppo.embedded`.

The paper's episode, in which partners stay the same, is a meeting here: the memory is kept over the
episodes of a meeting unless `memory.keep` is off.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from coplay.algorithms.liam.config import LIAMConfig
from coplay.algorithms.ppo.embedded import EmbeddedPPO, History, HistoryModel
from coplay.core.numerics import masked_mean
from coplay.nn import categorical
from coplay.nn.layers import Linear


class ReconstructionDecoder(eqx.Module):
    """From an embedding to the views and to the logits of the actions of all others."""

    hidden: Linear
    view: Linear
    action: Linear
    others: int = eqx.field(static=True)

    def __init__(
        self, embedding: int, width: int, others: int, view: int, actions: int, key: PRNGKeyArray
    ):
        keys = jax.random.split(key, 3)
        self.hidden = Linear(embedding, width, keys[0])
        self.view = Linear(width, others * view, keys[1], 1.0)
        self.action = Linear(width, others * actions, keys[2], 0.01)
        self.others = others

    def __call__(
        self, embedding: Float[Array, "*batch embedding"]
    ) -> tuple[Float[Array, "*batch other view"], Float[Array, "*batch other action"]]:
        x = jnp.tanh(self.hidden(embedding))
        view, action = self.view(x), self.action(x)
        each = (*embedding.shape[:-1], self.others, -1)
        return view.reshape(each), action.reshape(each)


def reconstruction(
    decoder: Callable[[Float[Array, "*batch embedding"]], tuple[Array, Array]],
    embedding: Float[Array, "copy time seat embedding"],
    true: Any,
) -> dict[str, Float[Array, " seat"]]:
    """Errors of a decoder by seat, over the others that were in the game beside the seat.

    true: `Others`, or what has its fields.

    view_loss: squared, mean over the numbers of a view. action_loss: -log p. top1: share of the
    actions that were held the most probable.
    """
    view, logits = decoder(embedding)
    policy = jax.nn.log_softmax(logits)
    square = jnp.mean(jnp.square(view - true.view), axis=-1)
    right = (jnp.argmax(logits, axis=-1) == true.action).astype(jnp.float32)
    found = {
        "others_view_loss": square,
        "others_action_loss": -categorical.take(policy, true.action),
        "others_top1": right,
    }
    return {name: masked_mean(x, true.alive, (0, 1, 3)) for name, x in found.items()}


class LIAM(EmbeddedPPO):
    """See the module docstring."""

    config: LIAMConfig = eqx.field(static=True)

    @property
    def declared_data(self) -> tuple[str, ...]:
        return (*super().declared_data, ".others.view")

    @property
    def embedding(self) -> int:
        return self.config.embedding

    def new_decoder(self, key: PRNGKeyArray) -> ReconstructionDecoder:
        return ReconstructionDecoder(
            self.config.embedding,
            self.config.decoder_hidden,
            self.game_seats - 1,
            self.view_size,
            self.shape.actions,
            key,
        )

    def model_loss(
        self, model: HistoryModel, history: History, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, " seat"]]]:
        embedding, _ = model.encoder.unroll(
            history.x, history.memory[:, 0], history.cleared, history.alive
        )
        found = reconstruction(model.decoder, embedding, history.others)
        config = self.config
        loss = config.view_weight * found["others_view_loss"]
        loss = loss + config.action_weight * found["others_action_loss"]
        return jnp.sum(loss), found
