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
from coplay.minds.networks import Network, view_shape
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

    def _marks(self, game: Game, state: State) -> Int[Array, "tree seat mark"]:
        """Where the networks' inputs are 1, for every seat."""
        marks = jax.vmap(game.marks)(state)
        return centre_marks(marks, self.actor.board) if self.actor.centred else marks

    def others(
        self, game: Game, observation: Observation, state: State, mind: Mind
    ) -> Float[Array, "tree other action"]:
        marks, time = self._marks(game, state)[:, 1:], observation.features[:, 0, -1]
        others, rows, units = self.other_rows.shape
        # All rows in one table, those of the next co-player after those of the one before.
        shift = jnp.arange(others)[:, None] * rows
        first = time[:, None] * self.other_rows[:, None, -2]  # [other, tree, unit]
        seen = summed(self.other_rows.reshape(-1, units), shift + marks)  # [tree, other, unit]
        first = first + jnp.moveaxis(seen, 1, 0)
        layer = self.opponents.layers[0]
        weight = layer.weight[..., rows - 1 :]  # [other or 1, unit, feature]
        goal = self.goals_seen(state, mind)
        by_other = jnp.moveaxis(goal, 1, 0)
        for feature in range(weight.shape[-1]):
            first = first + by_other[..., feature, None] * weight[:, None, :, feature]
        logits = _rest(self.opponents, first + layer.bias[:, None])
        legal = observation.legal[:, 1:]
        expected = categorical.log_policy(jnp.moveaxis(logits, 0, 1), legal)
        return self.by_chance(expected, goal, legal)

    def judged(
        self, game: Game, observation: Observation, state: State, drive: Int[Array, " tree"]
    ) -> tuple[Float[Array, "tree action"], Float[Array, " tree"]]:
        marks, time = self._marks(game, state)[:, 0], observation.features[:, -1]
        first = time[:, None] * self.own_rows[-2] + summed(self.own_rows, marks)
        told = circumstances(game, state, self.goals, self.belief, drive, self.drives)
        inputs = self.own_rows.shape[0] - 1
        actor, critic = self.actor.layers[0], self.critic.layers[0]
        split = actor.bias.shape[0]
        seen = first[:, :split] + told @ actor.weight[:, inputs:].T + actor.bias
        judged = first[:, split:] + told @ critic.weight[:, inputs:].T + critic.bias
        logits, value = rest_of(self.actor, seen), rest_of(self.critic, judged)
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


def rest_of(network: Network, first: Float[Array, "*batch unit"]) -> Float[Array, "*batch output"]:
    """A network's outputs from what its first layer gave."""
    act = jnp.tanh if network.activation == "tanh" else jax.nn.relu
    x = act(first)
    for layer in network.layers[1:]:
        x = act(layer(x))
    return network.head(x)


def _rest(models: Network, first: Float[Array, "other tree unit"]) -> Float[Array, "other tree n"]:
    """`rest_of` by models [other or 1, ...]."""
    number = models.head.bias.shape[0]
    if number == 1:
        return rest_of(jax.tree.map(lambda x: x[0], models), first)
    return jax.vmap(rest_of)(models, first)
