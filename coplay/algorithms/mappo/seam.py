"""Where a hypernetwork comes into MAPPO. MAPPO itself has none: here every place gives nothing, and
`hyper_mappo.py` says what it gives there."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from coplay.algorithms.mappo.data import Context, MAPPOBatch, MAPPOState, Parameters
from coplay.core.learner import Learner
from coplay.core.trajectory import Trajectory
from coplay.nn.generated_weights import Generated


class WithoutHypernetwork(Learner):
    """See the module docstring."""

    def _known(
        self,
        own: Float[Array, "copy time seat inputs"],
        trajectory: Trajectory,
        identity: Float[Array, "seat seats"],
    ) -> Float[Array, "copy time seat known"]:
        """What the context network is given."""
        return own[..., :0]

    def _context(self, hyper: Any, batch: MAPPOBatch) -> Context | None:
        """The contexts of all samples."""
        return None

    def _generated(self, hyper: Any, context: Context | None) -> Generated | None:
        """What contexts change in the actor."""
        return None

    def _critic_generated(
        self, hyper: Any, contexts: Float[Array, "*sample latent"] | None
    ) -> Generated | None:
        """What contexts change in the critic."""
        return None

    def _with_context(
        self, view: Float[Array, "row time seat inputs"], context: Context | None
    ) -> Float[Array, "row time seat all"]:
        """What the actor is given, with the context if that is an input."""
        return view

    def _penalty(
        self, parameters: Parameters, state: MAPPOState, batch: MAPPOBatch, context: Context | None
    ) -> tuple[Float[Array, ""] | float, dict[str, Float[Array, " seat"]]]:
        """What is added to the loss, and its terms."""
        return 0.0, {}

    def _increments(
        self, parameters: Parameters, batch: MAPPOBatch, context: Context | None
    ) -> dict[str, Float[Array, " seat"]]:
        """How large generated increments are, and how much they change within episodes."""
        none = jnp.zeros(batch.alive.shape[-1])
        return {"increment_norm": none, "increment_step": none}

    def _synchronised(self, state: MAPPOState) -> MAPPOState:
        """The state with its slow copy brought up to date, if it has one."""
        return state
