"""A memory of the last steps in which policies that are near to the present one count most.

What an agent knew while it acted otherwise tells less about what it does now. So past steps are
fused by weights from the distances of their policies:

    fused = Σ_s w_s e_s,    w_s ∝ exp(-KL(π_last ‖ π_s) / temperature)

e_s is what was known at a past step and π_s the policy that acted on it. π_last is the policy of
the step before: that of the present step is not known yet, because it depends on what is fused.
Policies are data, as last actions are: no gradient goes through them.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

LEAST = 1e-8  # probability, so that the distance from a policy that never does something is finite


class PolicyWindow(eqx.Module):
    """See the module docstring. A memory is one flat array of steps, the newest first: what was
    known at each, then the policy of each, zeros where there is none. It has nothing to learn.

    steps: how many are kept, the present one among them. units: width of what is shown.
    """

    inputs: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    temperature: float = eqx.field(static=True)

    @property
    def units(self) -> int:
        """What is known now, and what the past comes to."""
        return 2 * self.inputs

    @property
    def size(self) -> int:
        """Width of a memory."""
        return self.steps * (self.inputs + self.actions)

    def next(
        self, x: Float[Array, "*batch inputs"], memory: Float[Array, "*batch size"]
    ) -> Float[Array, "*batch size"]:
        """The memory with what is known now; the step's policy is yet to be `told`."""
        known, policies = jnp.split(memory, [self.steps * self.inputs], axis=-1)
        none = jnp.zeros((*x.shape[:-1], self.actions))
        parts = (x, known[..., : -self.inputs], none, policies[..., : -self.actions])
        return jnp.concatenate(parts, axis=-1)

    def told(
        self, memory: Float[Array, "*batch size"], log_policy: Float[Array, "*batch actions"]
    ) -> Float[Array, "*batch size"]:
        """The memory with the policy that acted in its newest step."""
        start = self.steps * self.inputs
        policy = jax.lax.stop_gradient(jnp.exp(log_policy))
        return memory.at[..., start : start + self.actions].set(policy)

    def weights(self, memory: Float[Array, "*batch size"]) -> Float[Array, "*batch past"]:
        """Of the past steps, the newest first; 0 for those that were not."""
        policies = memory[..., self.steps * self.inputs :]
        policies = policies.reshape(*memory.shape[:-1], self.steps, self.actions)[..., 1:, :]
        was = jnp.sum(policies, axis=-1) > 0.5
        logs = jnp.log(jnp.maximum(policies, LEAST))
        distance = jnp.sum(policies[..., :1, :] * (logs[..., :1, :] - logs), axis=-1)
        near = jnp.where(was, jnp.exp(-distance / self.temperature), 0.0)
        return near / jnp.maximum(jnp.sum(near, axis=-1, keepdims=True), LEAST)

    def shown(self, memory: Float[Array, "*batch size"]) -> Float[Array, "*batch units"]:
        """What is known now, and what the past comes to; zeros if there is no past."""
        known = memory[..., : self.steps * self.inputs]
        known = known.reshape(*memory.shape[:-1], self.steps, self.inputs)
        fused = jnp.sum(self.weights(memory)[..., None] * known[..., 1:, :], axis=-2)
        return jnp.concatenate([known[..., 0, :], fused], axis=-1)

    def unroll(
        self,
        x: Float[Array, "time *batch inputs"],
        memory: Float[Array, "*batch size"],
        cleared: Bool[Array, "time *batch"],
        alive: Bool[Array, "time *batch"],
        log_policy: Float[Array, "time *batch actions"],
    ) -> tuple[Float[Array, "time *batch units"], Float[Array, "time *batch size"]]:
        """See `Cell.unroll`. log_policy: that acted at each step."""

        def one(memory: Array, line: tuple[Array, Array, Array, Array]) -> tuple[Array, tuple]:
            x, cleared, alive, log_policy = line
            memory = jnp.where(cleared[..., None], 0.0, memory)
            new = self.next(x, memory)
            shown = self.shown(new)
            memory = jnp.where(alive[..., None], self.told(new, log_policy), memory)
            return memory, (shown, memory)

        return jax.lax.scan(one, memory, (x, cleared, alive, log_policy))[1]
