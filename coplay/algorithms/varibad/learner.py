"""VariBAD (Zintgraf et al., 2020), with partners as what is unknown.

An encoder reads the seat's own history up to step t and gives a belief q_t = N(mean, variance) over
a latent m, which stands for whom it plays with. A decoder predicts from m what the others do in any
step i of the meeting, whether before or after t. Both maximise, for steps t drawn at random,

    ELBO_t = E_{m ~ q_t} Σ_i log p(a_i | view_i, m)  -  kl_weight * KL(q_t || q_{t-1})

where q before the first step of a meeting is N(0, 1), and i runs over the steps of the meeting that
are in the rollout. The policy is given (view, mean, log variance); its loss does not reach the
encoder. Encoder, policy and their training are in `coplay.algorithms.ppo.embedded`.

VariBAD decodes rewards and transitions of an unknown task. In a game the rules are known and the
same for all partners, so all that m can say about a transition is what the others do: this is what
is decoded. MeLIBA (Zintgraf et al., 2021) adds a second latent that changes in every step; there is
one latent here, because partners of a meeting stay the same, and one latent has a bound that can be
checked by hand.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.algorithms.ppo.embedded import EmbeddedPPO, History, HistoryModel, Others
from coplay.algorithms.varibad.config import VariBADConfig
from coplay.core.numerics import masked_mean
from coplay.nn import categorical
from coplay.nn.layers import Linear


class Belief(NamedTuple):
    """Independent normal distributions of the numbers of a latent."""

    mean: Float[Array, "*batch latent"]
    log_variance: Float[Array, "*batch latent"]


def divergence(belief: Belief, other: Belief) -> Float[Array, "*batch"]:
    """KL(belief || other)."""
    distance = jnp.square(belief.mean - other.mean) + jnp.exp(belief.log_variance)
    log_ratio = other.log_variance - belief.log_variance
    return 0.5 * jnp.sum(distance * jnp.exp(-other.log_variance) + log_ratio - 1.0, axis=-1)


class LatentDecoder(eqx.Module):
    """From an ego view and a latent to the logits of the actions of all others. View and latent
    meet in the hidden layer, so each of them is multiplied once for all pairs."""

    view: Linear
    latent: Linear
    action: Linear
    others: int = eqx.field(static=True)

    def __init__(
        self, view: int, latent: int, width: int, others: int, actions: int, key: PRNGKeyArray
    ):
        keys = jax.random.split(key, 3)
        self.view = Linear(view, width, keys[0])
        self.latent = Linear(latent, width, keys[1])
        self.action = Linear(width, others * actions, keys[2], 0.01)
        self.others = others

    def __call__(
        self,
        view: Float[Array, "copy time seat view"],
        latent: Float[Array, "copy term seat latent"],
    ) -> Float[Array, "copy term time seat other action"]:
        """Every latent with the views of all steps."""
        x = jnp.tanh(self.view(view)[:, None] + self.latent(latent)[:, :, None])
        logits = self.action(x)
        return logits.reshape(*x.shape[:-1], self.others, -1)


class BeliefTerms(NamedTuple):
    """What a lower bound is made of, [copy, term, seat]. error: -Σ_i log p of what the others did.
    kl: of the belief to the one before. counts: the seat was in the game."""

    error: Float[Array, "copy term seat"]
    kl: Float[Array, "copy term seat"]
    counts: Bool[Array, "copy term seat"]


def bound_terms(
    decoder: LatentDecoder,
    belief: Belief,
    before: Belief,
    history: History,
    steps: Int[Array, "copy term"],
    noise: Float[Array, "copy term seat latent"],
) -> BeliefTerms:
    """The terms of the lower bounds of the beliefs at `steps`.

    belief, before: [copy, time, seat, latent] after each step and before it. noise: standard
    normal, by which the latents are drawn.
    """

    def at_steps(x: Array) -> Array:
        index = steps.reshape(*steps.shape, *(1,) * (x.ndim - 2))
        return jnp.take_along_axis(x, index, axis=1)

    chosen, prior = jax.tree.map(at_steps, (belief, before))
    latent = chosen.mean + jnp.exp(0.5 * chosen.log_variance) * noise
    true: Others = history.others
    policy = jax.nn.log_softmax(decoder(history.view, latent))
    likely = categorical.take(policy, jnp.broadcast_to(true.action[:, None], policy.shape[:-1]))
    # Steps of the same meeting: as many meetings have begun before both.
    meeting = jnp.cumsum(history.cleared, axis=1)
    same = at_steps(meeting)[:, :, None] == meeting[:, None]
    counts = same[..., None] & true.alive[:, None]
    error = -jnp.sum(jnp.where(counts, likely, 0.0), axis=(2, 4))
    return BeliefTerms(error, divergence(chosen, prior), at_steps(history.alive))


class VariBAD(EmbeddedPPO):
    """See the module docstring."""

    config: VariBADConfig = eqx.field(static=True)

    @property
    def embedding(self) -> int:
        return 2 * self.config.latent

    def new_decoder(self, key: PRNGKeyArray) -> LatentDecoder:
        return LatentDecoder(
            self.view_size,
            self.config.latent,
            self.config.decoder_hidden,
            self.game_seats - 1,
            self.shape.actions,
            key,
        )

    def model_loss(
        self, model: HistoryModel, history: History, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, " seat"]]]:
        belief, before = self.beliefs(model, history)
        copies, time, seats = history.alive.shape
        step_key, noise_key = jax.random.split(key)
        steps = jax.random.randint(step_key, (copies, self.config.elbo_terms), 0, time)
        # One draw for all seats: a seat's randomness must not hang on its position.
        shape = (copies, self.config.elbo_terms, 1, self.config.latent)
        noise = jnp.broadcast_to(
            jax.random.normal(noise_key, shape), (*shape[:2], seats, shape[-1])
        )
        terms = bound_terms(model.decoder, belief, before, history, steps, noise)
        error, kl = (masked_mean(x, terms.counts, (0, 1)) / time for x in (terms.error, terms.kl))
        # A constant divisor keeps the bound and gives numbers of the size of one step.
        loss = jnp.sum(error + self.config.kl_weight * kl)
        return loss, {"others_error": error, "belief_kl": kl}

    def beliefs(self, model: HistoryModel, history: History) -> tuple[Belief, Belief]:
        """The beliefs after each step and before it, [copy, time, seat, latent]."""
        outputs, memories = model.encoder.unroll(
            history.x, history.memory[:, 0], history.cleared, history.alive
        )
        earlier = jnp.concatenate([history.memory, memories[:, :-1]], axis=1)
        # Before anything happened the belief is N(0, 1), whose numbers are all 0.
        prior = jnp.where(history.cleared[..., None], 0.0, model.encoder.head(earlier))
        return _as_belief(outputs), _as_belief(prior)


def _as_belief(outputs: Float[Array, "*batch both"]) -> Belief:
    mean, log_variance = jnp.split(outputs, 2, axis=-1)
    return Belief(mean, log_variance)
