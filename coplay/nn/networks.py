"""Networks on ego views: an encoder (of planes, numbers or sets), hidden layers, a head.

Modules act on arrays with any leading axes, so one matrix product serves a whole batch.
"""

import dataclasses
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from coplay.core.entities import EntityList
from coplay.core.errors import UserError
from coplay.core.game import Game, Observation
from coplay.core.hidden import first_view
from coplay.nn.config import NetworkConfig
from coplay.nn.ego_centred import centre, centre_indices, centred_size
from coplay.nn.entities import EntityEncoder
from coplay.nn.layers import Activation, Conv3x3, Linear, activation_function
from coplay.nn.sparse_views import WORTHWHILE, SparseView


class ViewShape(eqx.Module):
    """The shapes of one ego view: what a network must fit.

    planes: (height, width, plane). features: how many numbers. actions: how many.
    goals, goal_features, habits, personas: how many candidate goals the game declares, by how many
    numbers each is described, how many habits and how many personas there are; 0 if it
    declares none.
    global_state: how many numbers a critic that sees all is shown; 0 if the own view is all there
    is.
    seat_planes: how many planes each seat has at the front. plane_type: the dtype of planes.
    on_grid: planes are a board on which every player has a cell, the first four actions are its
    moves, and features begin with what everybody did last.
    full_view: a player may use the state of the game, with its own seat first, and it tells what
    everybody did last.
    alike: all seats of the game are alike.
    indices: how many indices of its numbers that are 1 a view has; 0: the game gives none.
    entities: the lists among the features, see `Game.entities`.
    hidden: shapes and types of the arrays of a state that a seat imagines (`Game.hidden`); none:
    the game does not say how.

        shape: coplay.ViewShape  # a field of every learner
        inputs = math.prod(self.shape.planes) + self.shape.features
    """

    planes: tuple[int, int, int] = eqx.field(static=True)
    features: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    goals: int = eqx.field(static=True, default=0)
    goal_features: int = eqx.field(static=True, default=0)
    habits: int = eqx.field(static=True, default=0)
    personas: int = eqx.field(static=True, default=0)
    global_state: int = eqx.field(static=True, default=0)
    seat_planes: int = eqx.field(static=True, default=0)
    plane_type: str = eqx.field(static=True, default="bool")
    on_grid: bool = eqx.field(static=True, default=False)
    full_view: bool = eqx.field(static=True, default=True)
    alike: bool = eqx.field(static=True, default=True)
    indices: int = eqx.field(static=True, default=0)
    entities: tuple[EntityList, ...] = eqx.field(static=True, default=())
    hidden: tuple[tuple[tuple[int, ...], str], ...] = eqx.field(static=True, default=())

    def with_more(self, numbers: int) -> "ViewShape":
        """What a network must fit that is given so many numbers behind the view."""
        return ViewShape(self.planes, self.features + numbers, self.actions, entities=self.entities)

    @property
    def places(self) -> int:
        """How many numbers of a view may be 1: all but the last one."""
        return math.prod(self.planes) + self.features - 1


class Network(eqx.Module):
    """From ego views to `outputs` numbers: optional convolutions, or an encoder of entities, then
    hidden layers, a head. centred (without convolutions): boards are seen from the own cell, see
    `coplay.nn.ego_centred`."""

    convolutions: tuple[Conv3x3, ...]
    sets: EntityEncoder | None
    layers: tuple[Linear, ...]
    head: Linear
    activation: Activation = eqx.field(static=True)
    board: tuple[int, int, int] = eqx.field(static=True)
    centred: bool = eqx.field(static=True)

    def __init__(
        self,
        shape: ViewShape,
        outputs: int,
        *,
        key: PRNGKeyArray,
        hidden: tuple[int, ...],
        channels: tuple[int, ...],
        activation: Activation,
        head_scale: float,
        centred: bool = False,
        set_width: int = 0,
    ):
        """set_width: units for entities, `NetworkConfig.set_width`; 0: lists are read as they
        are."""
        keys = iter(jax.random.split(key, len(channels) + len(hidden) + 1))
        height, width, planes = shape.planes
        convolutions = []
        for channel in channels:
            convolutions.append(Conv3x3(planes, channel, next(keys)))
            planes = channel
        size = centred_size(shape.planes) if centred else height * width * planes
        size += shape.features
        self.sets = new_entity_encoder(shape, set_width, activation, key) if set_width else None
        if self.sets is not None:
            size = self.sets.outputs
        layers = []
        for wide in hidden:
            layers.append(Linear(size, wide, next(keys)))
            size = wide
        self.convolutions = tuple(convolutions)
        self.layers = tuple(layers)
        self.head = Linear(size, outputs, next(keys), head_scale)
        self.activation = activation
        self.board = shape.planes
        self.centred = centred

    def __call__(
        self, x: Float[Array, "*batch inputs"] | SparseView
    ) -> Float[Array, "*batch outputs"]:
        """From ego views as `read` or `flatten` give them."""
        act = activation_function(self.activation)
        if isinstance(x, SparseView):
            return self.after_first(act(self.layers[0].sparse(x)))
        if self.convolutions:
            size = math.prod(self.board)
            board = x[..., :size].reshape(*x.shape[:-1], *self.board)
            for convolution in self.convolutions:
                board = act(convolution(board))
            x = jnp.concatenate([board.reshape(*x.shape[:-1], -1), x[..., size:]], axis=-1)
        if self.centred:
            x = centre(x, self.board)
        if self.sets is not None:
            x = self.sets(x)
        return self.after_first(act(self.layers[0](x))) if self.layers else self.head(x)

    def after_first(self, x: Float[Array, "*batch unit"]) -> Float[Array, "*batch outputs"]:
        """The outputs from the units of the first layer."""
        for layer in self.layers[1:]:
            x = activation_function(self.activation)(layer(x))
        return self.head(x)


def new_entity_encoder(
    shape: ViewShape, width: int, activation: Activation, key: PRNGKeyArray
) -> EntityEncoder:
    """An encoder of the lists of a view. key: of the whole network."""
    check_entities(shape)
    key = jax.random.fold_in(key, 1)
    return EntityEncoder(shape.entities, shape.planes, shape.features, width, activation, key)


def check_entities(shape: ViewShape) -> None:
    """An error if views have no lists of entities."""
    if not shape.entities:
        nearest = "cnn" if shape.planes[0] else "mlp"
        raise UserError(
            "network.kind=entities is for games that say which of their numbers are lists of "
            f"entities (Game.entities), and this game has none: give --network.kind {nearest}"
        )


def make_network(
    config: NetworkConfig, shape: ViewShape, outputs: int, key: PRNGKeyArray, head_scale: float
) -> Network:
    """A new network by its configuration."""
    return Network(
        shape,
        outputs,
        key=key,
        hidden=config.hidden,
        channels=config.convolutions,
        centred=config.kind == "centred",
        set_width=config.set_width,
        activation=config.activation,
        head_scale=head_scale,
    )


class SparseObservation(NamedTuple):
    """What is left of an `Observation` that is read by its indices, with the same leading axes.

    indices: as in `Observation`. time: [..., 1] the last feature.
    """

    indices: Integer[Array, "*batch index"]
    time: Float[Array, "*batch one"]
    legal: Bool[Array, "*batch action"]


def reads_indices(config: NetworkConfig, shape: ViewShape) -> bool:
    """Whether networks like this read views like this by their indices."""
    plain = not config.convolutions and not config.set_width
    return bool(config.hidden) and plain and _few(shape.places, shape.indices)


def _few(places: int, indices: int) -> bool:
    return 0 < WORTHWHILE * indices <= places


def as_read(
    config: NetworkConfig, shape: ViewShape, observation: Observation
) -> Observation | SparseObservation:
    """What networks like this need of ego views, to be kept: less than all of it where they read
    indices."""
    indices = observation.indices
    if indices is None or not reads_indices(config, shape):
        return observation._replace(indices=None)
    short = jnp.int16 if shape.places < np.iinfo(np.int16).max else jnp.int32
    return SparseObservation(
        indices.astype(short), observation.features[..., -1:], observation.legal
    )


def nothing_read(
    config: NetworkConfig, shape: ViewShape, size: tuple[int, ...]
) -> Observation | SparseObservation:
    """Views [*size] of zeros with all actions legal, as `as_read` gives them."""
    sparse = reads_indices(config, shape)
    empty = Observation(
        planes=jnp.zeros((*size, *shape.planes), shape.plane_type),
        features=jnp.zeros((*size, shape.features)),
        legal=jnp.ones((*size, shape.actions), bool),
        indices=jnp.zeros((*size, shape.indices), jnp.int32) if sparse else None,
    )
    return as_read(config, shape, empty)


def read(
    network: Network,
    observation: Observation | SparseObservation,
    identity: Float[Array, "*#batch id"] | None = None,
) -> Float[Array, "*batch inputs"] | SparseView:
    """Ego views and identities as a network reads them fastest: by their indices where it can, and
    else as `flatten` gives them."""
    if isinstance(observation, SparseObservation):
        view = _sparse(network, observation.indices.astype(jnp.int32), observation.time)
        return view if identity is None else with_inputs(view, identity)
    indices = observation.indices
    if indices is None or network.convolutions or network.sets or not network.layers:
        return flatten(observation, identity)
    height, width, planes = observation.planes.shape[-3:]
    places = height * width * planes + observation.features.shape[-1] - 1
    if not _few(places, indices.shape[-1]):
        return flatten(observation, identity)
    view = _sparse(network, indices, observation.features[..., -1:])
    return view if identity is None else with_inputs(view, identity)


def _sparse(
    network: Network, indices: Int[Array, "*batch index"], time: Float[Array, "*batch one"]
) -> SparseView:
    return SparseView(centre_indices(indices, network.board) if network.centred else indices, time)


def with_inputs(
    view: Float[Array, "*batch inputs"] | SparseView, more: Float[Array, "*#batch more"]
) -> Float[Array, "*batch inputs_and_more"] | SparseView:
    """What a network is given, with further inputs behind."""
    rest = view.rest if isinstance(view, SparseView) else view
    more = jnp.broadcast_to(more, (*rest.shape[:-1], more.shape[-1]))
    rest = jnp.concatenate([rest, more], axis=-1)
    return view._replace(rest=rest) if isinstance(view, SparseView) else rest


def flatten(
    observation: Observation, identity: Float[Array, "*#batch id"] | None = None
) -> Float[Array, "*batch inputs"]:
    """Ego views as one vector of floats each: planes, features, identity."""
    planes, features = observation.planes, observation.features
    *batch, height, width, count = planes.shape
    parts = [planes.reshape(*batch, height * width * count).astype(jnp.float32), features]
    if identity is not None:
        parts.append(jnp.broadcast_to(identity, (*features.shape[:-1], identity.shape[-1])))
    return jnp.concatenate(parts, axis=-1)


def hidden_arrays(game: Game) -> tuple[tuple[tuple[int, ...], str], ...]:
    """Shapes and types of the arrays of a state that a seat imagines; none: the game does not say
    how."""
    if game.hidden is None:
        return ()
    imagined = jax.eval_shape(
        lambda key: game.hidden.begin(key, first_view(game, game.reset(key))), jax.random.key(0)
    )
    return tuple((x.shape, str(x.dtype)) for x in jax.tree.leaves(imagined))


def view_shape(game: Game) -> ViewShape:
    """The shapes of a game's ego views and goals."""
    key = jax.random.key(0)
    views = jax.eval_shape(lambda key: game.observe(game.reset(key)), key)
    height, width, planes = views.planes.shape[1:]
    shape = ViewShape(
        (height, width, planes),
        views.features.shape[1],
        views.legal.shape[1],
        seat_planes=game.seat_planes,
        plane_type=str(views.planes.dtype),
        on_grid=game.on_grid and game.seat_planes == 1 and game.seat_features == game.actions,
        full_view=game.full_view and game.symmetric and game.tells(game.last_actions),
        alike=game.symmetric,
        indices=0 if views.indices is None else views.indices.shape[1],
        entities=game.entities,
        hidden=hidden_arrays(game),
    )
    if not game.view_is_global:
        global_state = jax.eval_shape(lambda key: game.global_state(game.reset(key)), key)
        shape = dataclasses.replace(shape, global_state=global_state.shape[0])
    goals = game.goals
    if goals is None:
        return shape
    features = jax.eval_shape(lambda key: goals.features(game.reset(key)), key)
    return dataclasses.replace(
        shape,
        goals=len(goals.names),
        goal_features=features.shape[2],
        habits=len(goals.habit_names),
        personas=len(goals.personas),
    )
