"""A world of goals whose networks read where an ego view is 1, instead of the view itself.

Of the inputs of a network on a board nearly all are 0. Where a game says which are 1, by
`Game.marks`, the first layer is a sum of a few rows of its weights, and no view is built.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from coplay.games.game import Game, Observation, State
from coplay.minds import categorical
from coplay.minds.centred import centre_marks, centred_size
from coplay.minds.networks import Network, function_of, view_shape
from coplay.minds.planning import Mind
from coplay.minds.worlds import GoalWorld, circumstances

FIELDS = tuple(field.name for field in dataclasses.fields(GoalWorld))


class MarkedWorld(GoalWorld):
    """As the `GoalWorld` it is made of, to rounding.

    own_rows, other_rows: what each input of a view adds to the first layers of actor and critic,
        and of the co-players' models; the last row, of marks that are missing, is 0.
    """

    own_rows: Float[Array, "row own_unit"]
    other_rows: Float[Array, "other row unit"]

    @staticmethod
    def fits(world: GoalWorld, game: Game) -> bool:
        """Whether the game gives marks and the networks begin with a layer that reads them."""
        return game.marked and bool(world.actor.layers) and not world.actor.convolutions

    @classmethod
    def of(cls, world: GoalWorld, game: Game) -> "MarkedWorld":
        shape = view_shape(game)
        board = shape.planes
        size = centred_size(board) if world.actor.centred else math.prod(board)
        inputs = size + shape.features  # what else the networks are told comes after the view
        weights = [network.layers[0].weight[:, :inputs] for network in (world.actor, world.critic)]
        seen = world.opponents.layers[0].weight[..., :inputs]  # [other or 1, unit, input]
        seen = jnp.broadcast_to(seen, (game.seats - 1, *seen.shape[1:]))
        return cls(
            **{name: getattr(world, name) for name in FIELDS},
            own_rows=_rows(jnp.concatenate(weights)),
            other_rows=_rows(seen),
        )

    def prepared(self, game: Game) -> "MarkedWorld":
        return self

    def _marks(self, game: Game, state: State, seats: slice) -> Int[Array, "tree seat mark"]:
        """Where the networks' inputs are 1, for these seats."""
        marks = jax.vmap(game.marks)(state)[:, seats]
        return centre_marks(marks, self.actor.board) if self.actor.centred else marks

    def others(
        self, game: Game, observation: Observation, state: State, mind: Mind
    ) -> Float[Array, "tree other action"]:
        marks, time = self._marks(game, state, slice(1, None)), observation.features[:, 0, -1]
        rows = self.other_rows.shape[1]
        goal, layer = self.goals_seen(state, mind), self.opponents.layers[0]
        weight = layer.weight[..., rows - 1 :]  # [other or 1, unit, feature]
        parts = []
        # One co-player after the other: on CPU quicker than lookups [tree, other].
        for other, table in enumerate(self.other_rows):
            first = time[:, None] * table[-2] + summed(table, marks[:, other])
            model = min(other, len(weight) - 1)
            for feature in range(weight.shape[-1]):
                first = first + goal[:, other, feature, None] * weight[model, :, feature]
            parts.append(first + layer.bias[model])
        logits = _rest(self.opponents, jnp.stack(parts))
        legal = observation.legal[:, 1:]
        expected = categorical.log_policy(jnp.moveaxis(logits, 0, 1), legal)
        return self.by_chance(expected, goal, legal)

    def judged(
        self, game: Game, observation: Observation, state: State, drive: Int[Array, " tree"]
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        marks, time = self._marks(game, state, slice(1))[:, 0], observation.features[:, -1]
        first = time[:, None] * self.own_rows[-2] + summed(self.own_rows, marks)
        told = circumstances(game, state, self.goals, self.belief, drive, self.drives)
        inputs = self.own_rows.shape[0] - 1
        layers = self.actor.layers[0], self.critic.layers[0]
        weight = jnp.concatenate([layer.weight[:, inputs:] for layer in layers])
        bias = jnp.concatenate([layer.bias for layer in layers])
        # Actor and critic in one piece: read by two, every row would be written out first.
        act = function_of(self.actor.activation)
        seen, judged = jnp.split(act(first + told @ weight.T + bias), 2, axis=-1)
        logits, value = after_first(self.actor, seen), after_first(self.critic, judged)
        return categorical.log_policy(logits, observation.legal), value[..., 0]


def summed(
    rows: Float[Array, "row unit"], marks: Int[Array, "*batch mark"]
) -> Float[Array, "*batch unit"]:
    """The sum of the rows of the marks."""
    # One lookup of whole rows for each mark: together they would be a batch of marks in memory.
    parts = [rows.at[marks[..., m]].get(mode="promise_in_bounds") for m in range(marks.shape[-1])]
    return sum(parts[1:], parts[0])


def _rows(weight: Float[Array, "*other unit input"]) -> Float[Array, "*other row unit"]:
    """Weights by input, and a row of zeros for what is not there."""
    rows = jnp.swapaxes(weight, -1, -2)
    return jnp.concatenate([rows, jnp.zeros_like(rows[..., :1, :])], axis=-2)


def after_first(network: Network, x: Float[Array, "*batch unit"]) -> Float[Array, "*batch output"]:
    """A network's outputs from the units of its first layer."""
    for layer in network.layers[1:]:
        x = function_of(network.activation)(layer(x))
    return network.head(x)


def _rest(models: Network, first: Float[Array, "other tree unit"]) -> Float[Array, "other tree n"]:
    """`rest_of` by models [other or 1, ...]."""
    number, units = models.head.bias.shape[0], function_of(models.activation)(first)
    if number == 1:
        return after_first(jax.tree.map(lambda x: x[0], models), units)
    return jax.vmap(after_first)(models, units)
