"""Personas: who somebody was, as a code of a whole life in hindsight, and how such a player acts.

Goal codes are inferred from the past, step by step, and say what is worth knowing at that step. To
*play* somebody from the first step on takes what became known only at the end. A persona is that: a
variational code c of all steps of a life, whatever their order,

    q(c | life) = N(μ, σ²)(Σ_t φ(s_t, a_t))        π(a | s, t, c)

by the evidence lower bound Σ_t log π(a_t | s_t, t, c) - KL(q ‖ N(0, 1)) of every life. What one
life alone shows, such as its turns left and right, does not pay for itself there; what kind of
player it was does. Nobody has to name the kinds.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from coplay.errors import UserError
from coplay.games.game import Observation
from coplay.minds import categorical
from coplay.minds.code_inference import Code, kl_codes, split_code
from coplay.minds.coded import Conditioned, centred, centred_shape, encoder
from coplay.minds.networks import Network, ViewShape, plain_start


@dataclass(frozen=True)
class PersonaConfig:
    """Codes of whole lives, and players that act by them."""

    persona_dim: int = 4
    """Numbers of a code."""
    deeds: int = 32
    """Numbers that a step adds to what is known of a life."""
    width: int = 64
    """Width of the hidden layers of the encoder."""
    hidden: tuple[int, ...] = (128, 128)
    """Widths of the hidden layers of the policy."""
    kl_weight: float = 0.1
    """Weight of the KL of a life's code to N(0, 1) beside the mean loss of its steps."""
    anneal: float = 0.5
    """Share of the training during which that weight grows from 0."""
    steps: int = 12
    """So many steps of a life are looked at: later ones say little that is new."""
    lives: int = 512
    """How many lives are kept to be played."""

    def __post_init__(self) -> None:
        for name in ("persona_dim", "deeds", "width", "steps", "lives"):
            if getattr(self, name) <= 0:
                raise UserError(f"{name} must be above 0, not {getattr(self, name)}")
        if not 0 <= self.anneal <= 1:
            raise UserError(f"anneal must be between 0 and 1, not {self.anneal}")
        if self.kl_weight < 0:
            raise UserError(f"kl_weight must not be negative, not {self.kl_weight}")
        if not self.hidden or any(width <= 0 for width in self.hidden):
            raise UserError("hidden must be one or more numbers above 0")


class Lives(NamedTuple):
    """Steps of players, [line, slot, ...]: lives one after the other in each line, none cut.

    observation: the players' own views before the steps. action: what they did. life: numbers the
    lives. alive: the slot holds a step.
    """

    observation: Observation
    action: Integer[Array, "line slot"]
    life: Integer[Array, "line slot"]
    alive: Bool[Array, "line slot"]


class PersonaModel(eqx.Module):
    """See the module docstring. bank: [life, code] of lives that were really seen. `past`: how many
    of the features tell what was done last; they come first and are left out: what somebody is like
    is in the code."""

    deed: Network
    whole: Network
    policy: Conditioned
    bank: Float[Array, "life code"]
    config: PersonaConfig = eqx.field(static=True)
    past: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)

    def __init__(self, config: PersonaConfig, shape: ViewShape, seats: int, key: PRNGKeyArray):
        keys = jax.random.split(key, 3)
        self.config, self.past, self.actions = config, seats * shape.actions, shape.actions
        window = centred_shape(shape.planes)
        now = shape.features - self.past

        network = partial(encoder, width=config.width)
        self.deed = network(window, now, config.deeds * shape.actions, keys[0])
        self.whole = network((0, 0, 0), config.deeds, 2 * config.persona_dim, keys[1])
        self.policy = Conditioned(
            math.prod(window) + now, config.persona_dim, config.hidden, shape.actions, keys[2]
        )
        self.bank = jnp.zeros((config.lives, config.persona_dim))

    def see(self, observation: Observation) -> Float[Array, "*batch inputs"]:
        """Board and time as the player itself sees them, itself in the middle."""
        planes = centred(observation.planes.astype(jnp.float32))
        flat = planes.reshape(*planes.shape[:-3], -1)
        return jnp.concatenate([flat, observation.features[..., self.past :]], axis=-1)

    def act(
        self,
        seen: Float[Array, "*batch inputs"],
        code: Float[Array, "*batch code"],
        legal: Bool[Array, "*batch action"],
    ) -> Float[Array, "*batch action"]:
        """Log-probabilities of what somebody with this code does."""
        return categorical.log_policy(self.policy(seen, code), legal)

    def codes(self, seen: Float[Array, "line slot inputs"], lives: Lives) -> Code:
        """[line, slot, code] of the life that each step belongs to."""
        shape = (*lives.alive.shape, self.actions, self.config.deeds)
        done = (lives.action[..., None] == jnp.arange(self.actions)).astype(jnp.float32)
        done *= lives.alive[..., None]
        deeds = jnp.sum(self.deed(seen).reshape(shape) * done[..., None], axis=-2)
        same = (lives.life[:, :, None] == lives.life[:, None, :]).astype(jnp.float32)
        return split_code(self.whole(same @ deeds))


def new_persona_model(
    config: PersonaConfig, shape: ViewShape, seats: int, key: PRNGKeyArray
) -> PersonaModel:
    """A model before learning."""
    return plain_start(lambda key: PersonaModel(config, shape, seats, key), key)


def persona_loss(
    model: PersonaModel, lives: Lives, key: PRNGKeyArray, warm: Float[Array, ""] | float
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """The negative lower bound, a mean over steps; `warm` scales the KL weight."""
    seen = model.see(lives.observation)
    code = model.codes(seen, lives)
    # One draw for the whole life: its first slot's noise.
    noise = jax.random.normal(key, (code.mean.size,)).reshape(code.mean.shape)
    same = (lives.life[:, :, None] == lives.life[:, None, :]) & lives.alive[:, None, :]
    first = jnp.argmax(same, axis=-1)
    noise = jnp.take_along_axis(noise, first[..., None], axis=1)
    log_probs = model.act(seen, code.draw(noise), lives.observation.legal)
    taken = categorical.take(log_probs, lives.action.astype(jnp.int32))
    # Every life counts as much as any other: whoever soon reaches its aim leaves few steps.
    share = lives.alive / jnp.maximum(jnp.sum(same, axis=-1), 1)
    number = jnp.maximum(jnp.sum(share), 1.0)
    terms = {
        "persona_action_loss": jnp.sum(-taken * share) / number,
        "persona_kl": jnp.sum(kl_codes(code) * share) / number,
    }
    kl = model.config.kl_weight * warm * terms["persona_kl"]
    return terms["persona_action_loss"] + kl, terms
