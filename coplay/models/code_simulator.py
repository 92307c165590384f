"""A simulator of co-players with goal codes; each keeps its code along a future."""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from coplay.core.game import Game, Observation, State
from coplay.models.goal_codes import GoalModel
from coplay.models.sparse_inputs import evaluate_sparse, own_rows, sparse_fits
from coplay.nn import categorical
from coplay.nn.ego_centred import centre_indices
from coplay.nn.equivariant import EquivariantPolicy, ExpandedPolicy
from coplay.nn.networks import Network, flatten
from coplay.nn.sparse_views import summed
from coplay.search.simulator import Hypothesis, Simulator


def with_codes(
    features: Float[Array, "*batch feature"],
    told: Float[Array, "*batch other number"],
    alive: Bool[Array, "*batch other"],
) -> Float[Array, "*batch more"]:
    """Features of ego views with what is told of co-players, such as their goal codes; 0 for those
    that left."""
    told = jnp.where(alive[..., None], told, 0.0)
    return jnp.concatenate([features, told.reshape(*features.shape[:-1], -1)], axis=-1)


class CodeSimulator(Simulator):
    """Co-players act by the opponent model, with codes that they may have. Actor and critic
    evaluate positions; they see the inferred codes, as when they learned.

    z: [tree, other, code] that the co-players have. told: [tree, other, number] what actor and
    critic are told of them: codes as inferred, and corrections. corrections: [tree, other, action]
    of the opponent model (`coplay.models.correction`); None: it is taken as it is.
    policy_sees_codes: whether actor and critic have inputs for codes.
    """

    actor: Network
    critic: Network
    goals: GoalModel
    identity: Float[Array, " id"]
    z: Float[Array, "tree other code"]
    told: Float[Array, "tree other number"]
    corrections: Float[Array, "tree other action"] | None
    policy_sees_codes: bool = eqx.field(static=True)

    def prepared(self, game: Game) -> Simulator:
        # Beside the board and the last actions, which sparse views show, there must be time alone.
        opponent = self.goals.opponent
        fits = isinstance(opponent, EquivariantPolicy) and opponent.rest.shape[-1] == 1
        fits = fits and sparse_fits(self.actor, game)
        return SparseCodeSimulator.of(self, game) if fits else self

    def of_trees(self, trees: Int[Array, " some"]) -> Simulator:
        def per_tree(simulator: CodeSimulator) -> tuple:
            return simulator.z, simulator.told, simulator.corrections

        chosen = jax.tree.map(lambda x: x[trees], per_tree(self))
        return eqx.tree_at(per_tree, self, chosen, is_leaf=lambda x: x is None)

    def others(
        self, game: Game, observation: Observation, state: State, hypothesis: Hypothesis
    ) -> Float[Array, "tree other action"]:
        seen = jax.tree.map(lambda x: x[:, 1:], observation)
        return self.goals.predict_actions(
            self.goals.see(seen), self.z, seen.legal, self.corrections
        )

    def evaluate(
        self, game: Game, observation: Observation, state: State, hypothesis: Hypothesis
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        if self.policy_sees_codes:
            alive = jax.vmap(game.alive)(state)[:, 1:]
            features = with_codes(observation.features, self.told, alive)
            observation = observation._replace(features=features)
        view = flatten(observation, self.identity)
        log_policy = categorical.log_policy(self.actor(view), observation.legal)
        return log_policy, self.critic(view)[..., 0]


class SparseCodeSimulator(CodeSimulator):
    """As the `CodeSimulator` it is made of, to rounding; see `coplay.models.sparse_inputs`.

    opponent: the opponent model as plain matrices. own_rows, other_rows: what each input of a view
    adds to the first layers of actor and critic, and of the opponent model.
    """

    opponent: ExpandedPolicy
    own_rows: Float[Array, "row own_unit"]
    other_rows: Float[Array, "other_row unit"]

    @classmethod
    def of(cls, simulator: CodeSimulator, game: Game) -> "SparseCodeSimulator":
        assert isinstance(simulator.goals.opponent, EquivariantPolicy)
        opponent = simulator.goals.opponent.expanded()
        fields = {
            field.name: getattr(simulator, field.name) for field in dataclasses.fields(simulator)
        }
        return cls(
            **fields,
            opponent=opponent,
            own_rows=own_rows(simulator.actor, simulator.critic, game),
            other_rows=board_rows(opponent.board, simulator.goals.shape.planes),
        )

    def prepared(self, game: Game) -> Simulator:
        return self

    def others(
        self, game: Game, observation: Observation, state: State, hypothesis: Hypothesis
    ) -> Float[Array, "tree other action"]:
        # The last actions come last among the indices: the opponent model does not see them.
        indices = jax.vmap(game.sparse_view)(state)[:, 1:, : -game.seats]
        indices = centre_indices(indices, self.goals.shape.planes)
        indices = jnp.minimum(indices, self.other_rows.shape[0] - 1)
        time = observation.features[:, 0, -1:]
        seen = time @ self.opponent.rest + self.opponent.bias
        # One co-player after the other: on CPU quicker than lookups [tree, other].
        parts = [
            seen + summed(self.other_rows, indices[:, other]) for other in range(game.seats - 1)
        ]
        logits = self.opponent.given(jnp.stack(parts, axis=1), self.z)
        if self.corrections is not None:
            logits = logits + self.corrections
        return categorical.log_policy(logits, observation.legal[:, 1:])

    def evaluate(
        self, game: Game, observation: Observation, state: State, hypothesis: Hypothesis
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        more = jnp.broadcast_to(self.identity, (self.z.shape[0], *self.identity.shape))
        if self.policy_sees_codes:
            alive = jax.vmap(game.alive)(state)[:, 1:]
            more = jnp.concatenate([with_codes(more[:, :0], self.told, alive), more], axis=-1)
        return evaluate_sparse(
            self.actor, self.critic, self.own_rows, game, observation, state, (more,)
        )


def board_rows(
    weight: Float[Array, "input unit"], board: tuple[int, int, int]
) -> Float[Array, "row unit"]:
    """What each index of a sparse view, as `centre_indices` numbers them, adds to a layer on boards
    as `coplay.nn.conditioned.centred` shows them; the last row, of what is missing, is 0.

    The own player is always in the middle; its cell says which cells are on the board.
    """
    height, width, planes = board
    rows, columns = 2 * height - 1, 2 * width - 1
    cube = weight.reshape(rows, columns, planes + 1, -1)
    down, right = np.arange(rows) - (height - 1), np.arange(columns) - (width - 1)
    row = np.arange(height)[:, None] + down  # [own row, window row] of the board
    column = np.arange(width)[:, None] + right
    on_rows = ((row >= 0) & (row < height)).astype(np.float32)
    on_columns = ((column >= 0) & (column < width)).astype(np.float32)
    edges = jnp.einsum("hr,wc,rcu->hwu", on_rows, on_columns, cube[:, :, planes])
    own = (edges + cube[height - 1, width - 1, 0]).reshape(height * width, -1)
    rest = cube[:, :, 1:planes].reshape(math.prod((rows, columns, planes - 1)), -1)
    return jnp.concatenate([own, rest, jnp.zeros_like(own[:1])])
