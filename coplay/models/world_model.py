"""The world model: (ego board, ego-first joint action) → next board, reward, whether I leave.

Everything is predicted as classes. A player moves to one of the cells beside it, stays, or is gone;
whatever else is in a cell is there or not; a reward is one of the values that occur. The most
probable classes then make one board, never a blur of several. The network is local: what happens in
a cell depends on the cells around it and on what the players there do. Actions enter in the cell of
their player, so the network sees "two hunters at once" instead of an average. It learns what
actions do.
"""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from coplay.core.config import Config, PositiveInt
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.numerics import masked_mean
from coplay.nn.categorical import NEVER
from coplay.nn.layers import Conv3x3, Linear, default_init

MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1), (0, 0))
"""Where a player can be after a step, as rows and columns; one more class: gone."""
UNKNOWN = 1e9  # stands for a reward that has not occurred yet
NEW = 1e-3  # a reward this far from all known ones is another one


@dataclass(frozen=True)
class WorldModelConfig(Config):
    """The world model."""

    channels: PositiveInt = 48
    """Numbers that the network keeps for every cell."""
    width: PositiveInt = 64
    """Width of the hidden layer before reward and leaving."""
    reward_values: PositiveInt = 48
    """How many different rewards it can predict."""


class WorldPrediction(NamedTuple):
    """Logits of what a step brings, [..., ...].

    move: [..., seat, 6] where each player goes, ego-first. there: [..., height, width, kind]
    whether something of each other plane will be in a cell. reward: [..., value]. leaves: [...] the
    ego player is out of the game afterwards.
    """

    move: Float[Array, "*batch seat move"]
    there: Float[Array, "*batch height width kind"]
    reward: Float[Array, "*batch value"]
    leaves: Float[Array, "*batch"]


class Transition(NamedTuple):
    """Steps to learn from, [sample, ...]; boards as the ego seat sees them, actions ego-first.

    alive: [sample] whether the step counts. legal: of the ego player before the step.
    """

    planes: Bool[Array, "sample height width plane"]
    action: Integer[Array, "sample seat"]
    following: Bool[Array, "sample height width plane"]
    reward: Float[Array, " sample"]
    leaves: Bool[Array, " sample"]
    legal: Bool[Array, "sample action"]
    alive: Bool[Array, " sample"]


class WorldModel(eqx.Module):
    """See the module docstring.

    surroundings, cell: features of every cell from the cells around it. move: where players go.
    there: what is in a cell. outcome: leaving and the reward's classes. reward_sum: the reward as a
    sum over cells; values near it become more probable, the more so the higher reward_precision.
    legal_surroundings, legal_head: legal actions. values: [value] the rewards that occur, then
    `UNKNOWN`.
    """

    surroundings: Conv3x3
    cell: Linear
    move: tuple[Linear, Linear]
    there: Linear
    outcome: tuple[Linear, Linear]
    reward_sum: Linear
    reward_precision: Float[Array, ""]
    legal_surroundings: Conv3x3
    legal_head: Linear
    values: Float[Array, " value"]
    seats: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)

    def __init__(
        self, config: WorldModelConfig, planes: int, seats: int, actions: int, key: PRNGKeyArray
    ):
        keys = jax.random.split(key, 10)
        wide = config.channels
        self.seats, self.actions = seats, actions
        self.values = jnp.full(config.reward_values, UNKNOWN)
        kinds = planes - seats
        self.surroundings = Conv3x3(kinds + 3 + 2 * actions, wide, keys[0])
        self.cell = Linear(wide, wide, keys[1])
        half = max(wide // 2, len(MOVES) + 1)
        self.move = (
            Linear(wide + actions, half, keys[2]),
            Linear(half, 1 + len(MOVES), keys[3], 0.1),
        )
        self.there = Linear(wide, kinds, keys[4], 0.1)
        self.outcome = (
            Linear(2 * wide + actions, config.width, keys[5]),
            Linear(config.width, 1 + config.reward_values, keys[6], 0.1),
        )
        self.reward_sum = Linear(2 * wide + actions, 1, keys[9], 0.1)
        self.reward_precision = jnp.float32(0.0)
        self.legal_surroundings = Conv3x3(kinds + 1, wide, keys[7])
        self.legal_head = Linear(wide, actions, keys[8], 0.1)

    def __call__(
        self,
        planes: Float[Array, "*batch height width plane"],
        action: Integer[Array, "*batch seat"],
    ) -> WorldPrediction:
        players, rest = planes[..., : self.seats], planes[..., self.seats :]
        done = (action[..., None] == jnp.arange(self.actions)).astype(jnp.float32)
        doing = jnp.einsum("...hws,...sa->...hwa", players, done)
        mine = players[..., :1] * done[..., None, None, 0, :]
        everyone = jnp.sum(players, axis=-1, keepdims=True)
        board = jnp.ones_like(everyone)
        x = jnp.concatenate([rest, board, everyone, players[..., :1], doing, mine], axis=-1)
        cells = jax.nn.relu(self.cell(jax.nn.relu(self.surroundings(x))))
        stands = jnp.einsum("...hws,...hwc->...sc", players, cells)
        move = self.move[1](jax.nn.relu(self.move[0](jnp.concatenate([stands, done], axis=-1))))
        total = jnp.sum(cells, axis=(-3, -2))
        own = jnp.concatenate([total, stands[..., 0, :], done[..., 0, :]], axis=-1)
        outcome = self.outcome[1](jax.nn.relu(self.outcome[0](own)))
        values = jax.lax.stop_gradient(self.values)
        known = values < UNKNOWN
        # Rewards of several cells add up. A rare sum has hardly been learned as a class, but it is
        # near to its value.
        far = jnp.square(jnp.where(known, values, 0.0) - self.reward_sum(own))
        reward = jnp.where(known, outcome[..., 1:] - jnp.exp(self.reward_precision) * far, NEVER)
        return WorldPrediction(move, self.there(cells), reward, outcome[..., 0])

    def likely_reward(self, prediction: WorldPrediction) -> Float[Array, "*batch"]:
        """The most probable reward; 0 while none is known."""
        best = jnp.argmax(prediction.reward, axis=-1)[..., None] == jnp.arange(len(self.values))
        return jnp.sum(jnp.where(best & (self.values < UNKNOWN), self.values, 0.0), axis=-1)

    def legal(
        self, planes: Float[Array, "*batch height width plane"]
    ) -> Float[Array, "*batch seat action"]:
        """Logits of which actions are legal for each player, ego-first."""
        players, rest = planes[..., : self.seats], planes[..., self.seats :]
        x = jnp.concatenate([rest, jnp.ones_like(rest[..., :1])], axis=-1)
        cells = jax.nn.relu(self.legal_surroundings(x))
        return self.legal_head(jnp.einsum("...hws,...hwc->...sc", players, cells))


def new_world_model(
    config: WorldModelConfig, planes: int, seats: int, actions: int, key: PRNGKeyArray
) -> WorldModel:
    """A model before learning; no reward is known."""
    model = default_init(lambda key: WorldModel(config, planes, seats, actions, key), key)
    return eqx.tree_at(lambda one: one.values, model, jnp.full(config.reward_values, UNKNOWN))


def shifted(x: Float[Array, "*batch height width player"], move: tuple[int, int]) -> Array:
    """Planes moved by rows and columns; what leaves the board is lost."""
    height, width = x.shape[-3:-1]
    down, right = move
    padded = jnp.pad(x, [(0, 0)] * (x.ndim - 3) + [(1, 1), (1, 1), (0, 0)])
    return padded[..., 1 - down : 1 - down + height, 1 - right : 1 - right + width, :]


def expected_board(
    planes: Float[Array, "*batch height width plane"], prediction: WorldPrediction
) -> Float[Array, "*batch height width plane"]:
    """The probability that each thing will be in each cell: raw, nothing rounded."""
    seats = prediction.move.shape[-2]
    probs = jax.nn.softmax(prediction.move, axis=-1)
    return jnp.concatenate(
        [_moved(planes[..., :seats], probs), jax.nn.sigmoid(prediction.there)], axis=-1
    )


def likely_board(
    planes: Float[Array, "*batch height width plane"], prediction: WorldPrediction
) -> Float[Array, "*batch height width plane"]:
    """The next board if every class is the most probable one; planes of zeros and ones."""
    seats = prediction.move.shape[-2]
    best = jnp.argmax(prediction.move, axis=-1)[..., None] == jnp.arange(1 + len(MOVES))
    there = (prediction.there > 0).astype(jnp.float32)
    players = _moved(planes[..., :seats], best.astype(jnp.float32))
    return jnp.concatenate([players, there], axis=-1)


def _moved(
    players: Float[Array, "*batch height width seat"], move: Float[Array, "*batch seat move"]
) -> Float[Array, "*batch height width seat"]:
    """Players' planes after moves taken with these weights."""
    moved = jnp.zeros_like(players)
    for index, one in enumerate(MOVES):
        moved = moved + move[..., None, None, :, index] * shifted(players, one)
    return moved


def true_moves(
    planes: Float[Array, "*batch height width plane"],
    following: Float[Array, "*batch height width plane"],
    seats: int,
) -> tuple[Int[Array, "*batch seat"], Bool[Array, "*batch seat"]]:
    """Which of `MOVES` each player made (one more: gone), and whether that is known: it was on the
    board, and is in a cell beside its old one, or gone."""
    players, after = planes[..., :seats], following[..., :seats]
    there, still = (jnp.any(x > 0, axis=(-3, -2)) for x in (players, after))
    went = jnp.stack(
        [jnp.sum(shifted(players, one) * after, axis=(-3, -2)) > 0 for one in MOVES], axis=-1
    )
    went = jnp.concatenate([went, ~still[..., None]], axis=-1)
    return jnp.argmax(went, axis=-1), there & jnp.any(went, axis=-1)


def reward_class(
    values: Float[Array, " value"], reward: Float[Array, "*batch"]
) -> Int[Array, "*batch"]:
    """Which of the values is nearest to each reward."""
    return jnp.argmin(jnp.abs(reward[..., None] - values), axis=-1)


def with_rewards(
    values: Float[Array, " value"], reward: Float[Array, " sample"], mask: Bool[Array, " sample"]
) -> Float[Array, " value"]:
    """The values with rewards that were not among them, as long as there is room; a few at a time:
    what is left out now comes again."""

    def one(values: Float[Array, " value"], _: None) -> tuple[Float[Array, " value"], None]:
        far = jnp.min(jnp.abs(reward[:, None] - values), axis=1)
        far = jnp.where(mask, far, 0.0)
        which = jnp.argmax(far)
        free = jnp.argmax(values >= UNKNOWN)
        place = (jnp.arange(values.shape[0]) == free) & (values >= UNKNOWN) & (far[which] > NEW)
        return jnp.where(place, reward[which], values), None

    return jax.lax.scan(one, values, None, length=8)[0]


def world_loss(
    model: WorldModel, steps: Transition
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """The sum of all cross-entropies, and each by its name, in nats per step."""
    planes, following = (x.astype(jnp.float32) for x in (steps.planes, steps.following))
    prediction = model(planes, steps.action)
    move, known = true_moves(planes, following, model.seats)

    def cross(logits: Float[Array, "*batch n"], index: Int[Array, "*batch"]) -> Array:
        chosen = index[..., None] == jnp.arange(logits.shape[-1])
        return -jnp.sum(jnp.where(chosen, jax.nn.log_softmax(logits, axis=-1), 0.0), axis=-1)

    def binary(logits: Float[Array, "*batch"], truth: Float[Array, "*batch"]) -> Array:
        return jax.nn.softplus(logits) - truth * logits

    rest = following[..., model.seats :]
    legal = model.legal(planes)[..., 0, :]
    reward = reward_class(jax.lax.stop_gradient(model.values), steps.reward)
    each = {
        "world_move_loss": jnp.sum(jnp.where(known, cross(prediction.move, move), 0.0), axis=-1),
        "world_cell_loss": jnp.sum(binary(prediction.there, rest), axis=(-3, -2, -1)),
        "world_reward_loss": cross(prediction.reward, reward),
        "world_exit_loss": binary(prediction.leaves, steps.leaves.astype(jnp.float32)),
        "world_legal_loss": jnp.sum(binary(legal, steps.legal.astype(jnp.float32)), axis=-1),
    }
    terms = {name: masked_mean(value, steps.alive, None) for name, value in each.items()}
    return sum(terms.values(), jnp.float32(0)), terms


def refuse_unseen(game: Game) -> None:
    """A world model is of boards that are seen in full, and whose planes are true or false."""
    state = jax.eval_shape(game.reset, jax.random.key(0))
    binary = jax.eval_shape(game.observe, state).planes.dtype == bool
    if not (game.on_grid and game.full_view and binary):
        raise UserError(
            "the world model is for games on a board that players see in full, planes of 0 and 1; "
            f"'{game.name}' as configured is not: leave out game.view, or do without a world model "
            "(--imagination.over game, --plan-over game)"
        )
