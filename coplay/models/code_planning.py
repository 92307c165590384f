"""Worlds of co-players that are after what goal codes say, each with a code that lasts."""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from coplay.core.game import Game, Observation, State
from coplay.models.goal_codes import GoalModel
from coplay.models.sparse_inputs import judged_by_marks, marks_fit, own_rows, summed
from coplay.nn import categorical
from coplay.nn.ego_centred import centre_marks
from coplay.nn.equivariant import Spelled
from coplay.nn.networks import Network, flatten
from coplay.search.planning import Mind, World


def told(
    features: Float[Array, "*batch feature"],
    z: Float[Array, "*batch other code"],
    alive: Bool[Array, "*batch other"],
) -> Float[Array, "*batch more"]:
    """Features of ego views with the goal codes of co-players, 0 for those that left."""
    known = jnp.where(alive[..., None], z, 0.0)
    return jnp.concatenate([features, known.reshape(*features.shape[:-1], -1)], axis=-1)


class CodeWorld(World):
    """Co-players act by the opponent model, with codes that they may have; positions are judged by
    actor and critic, which are told what is known of the co-players, as when they learned.

    z: [tree, other, code] that the co-players have. known: [tree, other, code] as inferred.
    policy_told: whether actor and critic have inputs for codes.
    """

    actor: Network
    critic: Network
    goals: GoalModel
    identity: Float[Array, " id"]
    z: Float[Array, "tree other code"]
    known: Float[Array, "tree other code"]
    policy_told: bool = eqx.field(static=True)

    def prepared(self, game: Game) -> World:
        # Beside the board and what was done last, which marks show, there must be time alone.
        fits = marks_fit(self.actor, game) and self.goals.opponent.rest.shape[-1] == 1
        return MarkedCodeWorld.of(self, game) if fits else self

    def of_trees(self, trees: Int[Array, " some"]) -> World:
        return eqx.tree_at(
            lambda world: (world.z, world.known), self, (self.z[trees], self.known[trees])
        )

    def others(
        self, game: Game, observation: Observation, state: State, mind: Mind
    ) -> Float[Array, "tree other action"]:
        seen = jax.tree.map(lambda x: x[:, 1:], observation)
        return self.goals.foresee(self.goals.see(seen), self.z, seen.legal)

    def judge(
        self, game: Game, observation: Observation, state: State, mind: Mind
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        if self.policy_told:
            alive = jax.vmap(game.alive)(state)[:, 1:]
            features = told(observation.features, self.known, alive)
            observation = observation._replace(features=features)
        view = flatten(observation, self.identity)
        log_policy = categorical.log_policy(self.actor(view), observation.legal)
        return log_policy, self.critic(view)[..., 0]


class MarkedCodeWorld(CodeWorld):
    """As the `CodeWorld` it is made of, to rounding; see `coplay.models.sparse_inputs`.

    opponent: the opponent model spelled out. own_rows, other_rows: what each input of a view adds
    to the first layers of actor and critic, and of the opponent model.
    """

    opponent: Spelled
    own_rows: Float[Array, "row own_unit"]
    other_rows: Float[Array, "other_row unit"]

    @classmethod
    def of(cls, world: CodeWorld, game: Game) -> "MarkedCodeWorld":
        opponent = world.goals.opponent.spelled()
        fields = {field.name: getattr(world, field.name) for field in dataclasses.fields(world)}
        return cls(
            **fields,
            opponent=opponent,
            own_rows=own_rows(world.actor, world.critic, game),
            other_rows=board_rows(opponent.board, world.goals.shape.planes),
        )

    def prepared(self, game: Game) -> World:
        return self

    def others(
        self, game: Game, observation: Observation, state: State, mind: Mind
    ) -> Float[Array, "tree other action"]:
        # What was done last comes last among the marks: the opponent model does not look at it.
        marks = jax.vmap(game.marks)(state)[:, 1:, : -game.seats]
        marks = centre_marks(marks, self.goals.shape.planes)
        marks = jnp.minimum(marks, self.other_rows.shape[0] - 1)
        time = observation.features[:, 0, -1:]
        seen = time @ self.opponent.rest + self.opponent.bias
        # One co-player after the other: on CPU quicker than lookups [tree, other].
        parts = [seen + summed(self.other_rows, marks[:, other]) for other in range(game.seats - 1)]
        logits = self.opponent.given(jnp.stack(parts, axis=1), self.z)
        return categorical.log_policy(logits, observation.legal[:, 1:])

    def judge(
        self, game: Game, observation: Observation, state: State, mind: Mind
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        more = jnp.broadcast_to(self.identity, (self.z.shape[0], *self.identity.shape))
        if self.policy_told:
            alive = jax.vmap(game.alive)(state)[:, 1:]
            more = jnp.concatenate([told(more[:, :0], self.known, alive), more], axis=-1)
        return judged_by_marks(
            self.actor, self.critic, self.own_rows, game, observation, state, more
        )


def board_rows(
    weight: Float[Array, "input unit"], board: tuple[int, int, int]
) -> Float[Array, "row unit"]:
    """What each mark, as `centre_marks` numbers them, adds to a layer on boards as
    `coplay.nn.conditioned.centred` shows them; the last row, of what is not there, is 0.

    The own player is always in the middle; where it stands says which cells are on the board.
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
