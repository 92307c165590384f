"""What goal codes and the opponent model learn by."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer, PRNGKeyArray

from coplay.core.numerics import masked_mean
from coplay.models.goal_codes import GoalModel, GoalModelConfig, Steps
from coplay.models.goal_inference import Code, kl_codes
from coplay.nn import categorical

Terms = dict[str, Float[Array, ""]]
Codes = Float[Array, "chunk slot code"]


def select(
    value: Callable[[Codes], Float[Array, "chunk slot"]],
    mean: Codes,
    left: Integer[Array, "chunk slot"],
    horizon: int,
    optimistic: bool,
) -> Int[Array, "chunk slot"]:
    """The slot whose board is the goal of each step: among the next `horizon` boards, without those
    after the segment's last step, the one of the best value.

    value: of every step if the goal had these codes. mean: codes of the boards that follow the
    steps.
    """
    slot = jnp.arange(mean.shape[1])
    steps = jnp.minimum(jnp.arange(horizon)[:, None, None], left[None])  # [horizon, chunk, slot]
    index = slot + steps
    worth = jax.vmap(lambda i: value(jnp.take_along_axis(mean, i[..., None], axis=1)))(index)
    best = jnp.argmax(worth if optimistic else -worth, axis=0)
    return slot + jnp.minimum(best, left)


class ActionLoss(NamedTuple):
    """How badly the opponent model predicts the actions of steps, given codes. viewed: what it made
    of the views, once for all codes."""

    model: GoalModel
    steps: Steps
    viewed: Float[Array, "chunk slot width"]

    def each(self, z: Codes) -> Float[Array, "chunk slot"]:
        """-log P(action | z) of every step."""
        logits = self.model.opponent.given(self.viewed, z)
        log_probs = categorical.log_policy(logits, self.steps.observation.legal)
        return -categorical.take(log_probs, self.steps.joint[..., 0].astype(jnp.int32))

    def now(self, z: Codes) -> Float[Array, ""]:
        """Of the actions of the steps that have the codes."""
        return masked_mean(self.each(z), self.steps.alive, None)

    def later(self, z: Codes, horizon: int) -> Float[Array, ""]:
        """Of the actions 1 … horizon - 1 steps after the one that has the code."""
        alive, left = self.steps.alive, self.steps.left
        slot = jnp.arange(alive.shape[1])

        def after(steps_later: Int[Array, ""]) -> tuple[Array, Array]:
            before = jnp.maximum(slot - steps_later, 0)
            known = (slot >= steps_later) & alive & alive[:, before]
            known &= left[:, before] >= steps_later
            return self.each(z[:, before]), known

        return masked_mean(*jax.vmap(after)(jnp.arange(1, horizon)), None)


def reconstruction_loss(
    model: GoalModel, steps: Steps, chosen: Int[Array, "chunk slot 1"], z: Codes
) -> Float[Array, ""]:
    """How badly the decoder reconstructs the chosen goals from codes: cross-entropy of planes that
    are true or false, half the squared error of all other numbers."""
    assert model.decoder is not None
    target = jnp.take_along_axis(model.content(steps), chosen, axis=1)
    logits, shape = model.decoder(z), model.shape
    binary = math.prod(shape.planes) if shape.plane_type == "bool" else 0
    planes, given = logits[..., :binary], target[..., :binary]
    error = jnp.sum(jax.nn.softplus(planes) - given * planes, axis=-1)
    if binary < logits.shape[-1]:
        apart = jnp.square(logits[..., binary:] - target[..., binary:])
        error = error + 0.5 * jnp.sum(apart, axis=-1)
    return masked_mean(error, steps.alive, None)


def loss_without_goals(model: GoalModel, steps: Steps) -> tuple[Float[Array, ""], Terms]:
    """The loss of an opponent model that is given no goals: codes of 0."""
    seen = model.see(steps.observation)
    none = jnp.zeros((*steps.alive.shape, model.config.dim))
    log_probs = model.predict_actions(seen, none, steps.observation.legal)
    taken = categorical.take(log_probs, steps.joint[..., 0].astype(jnp.int32))
    loss = masked_mean(-taken, steps.alive, None)
    return loss, {"opponent_loss": loss}


def goal_loss(
    model: GoalModel,
    steps: Steps,
    key: PRNGKeyArray,
    kl_scale: Float[Array, ""] | float,
    options: GoalModelConfig | None = None,
) -> tuple[Float[Array, ""], Terms]:
    """The loss of all networks, and every term by its name.

    kl_scale: of the weights of the KL terms. options: weights, selector and horizon, if they differ
    from those that the model was made with.
    """
    config, alive, inference = options or model.config, steps.alive, model.inference
    seen = model.see(steps.observation)
    evidence = model.evidence(seen, steps.joint)
    inferred = inference.infer(model.unroll(evidence, steps.past)[0], seen)
    value_inputs = model.value.view(seen)
    chosen, goal = _selected_goals(model, steps, value_inputs, config)
    noise = jax.random.normal(key, (2 * goal.mean.size,)).reshape(2, *goal.mean.shape)
    z_board, z = goal.sample(noise[0]), inference.training_code(inferred, noise[1])
    actions = ActionLoss(model, steps, model.opponent.view(seen))

    error = model.value.given(value_inputs, jax.lax.stop_gradient(z_board))[..., 0] - steps.target
    target_code = jax.tree.map(jax.lax.stop_gradient, goal)
    terms = {
        "goal_value_loss": 0.5 * masked_mean(jnp.square(error), alive, None),
        "goal_kl": masked_mean(kl_codes(goal), alive, None),
        "inferred_kl": masked_mean(kl_codes(inferred, target_code), alive, None),
    }
    if model.config.loss == "action":
        fits = {"goal_action_loss": actions.now(z_board), "opponent_loss": actions.now(z)}
        if inference.predicts_later and config.horizon > 1:
            fits["opponent_later_loss"] = actions.later(z, config.horizon)
    else:
        fits = {
            "goal_reconstruction": reconstruction_loss(model, steps, chosen, z_board),
            "inferred_reconstruction": reconstruction_loss(model, steps, chosen, z),
            "opponent_loss": actions.now(jax.lax.stop_gradient(z)),
        }
    fits |= inference.loss(evidence, steps.past)
    first, *rest = fits.values()
    fit = sum(rest, first)
    kl = config.kl_weight * terms["goal_kl"] + config.inference_kl_weight * terms["inferred_kl"]
    return fit + kl_scale * kl + terms["goal_value_loss"], terms | fits


def _selected_goals(
    model: GoalModel,
    steps: Steps,
    value_inputs: Float[Array, "chunk slot width"],
    config: GoalModelConfig,
) -> tuple[Int[Array, "chunk slot 1"], Code]:
    """The slots of the boards that are the goals of the steps, and the codes of these boards."""
    boards = model.encode(model.content(steps))
    frozen = jax.lax.stop_gradient(model.value)

    def worth(codes: Codes) -> Float[Array, "chunk slot"]:
        return frozen.given(jax.lax.stop_gradient(value_inputs), codes)[..., 0]

    mean, optimistic = jax.lax.stop_gradient(boards.mean), config.selector == "optimistic"
    chosen = select(worth, mean, steps.left, config.horizon, optimistic)[..., None]
    return chosen, Code(*(jnp.take_along_axis(x, chosen, axis=1) for x in boards))
