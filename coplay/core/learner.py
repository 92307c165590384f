"""The learner protocol: a player that improves from trajectories.

A learner object describes (configuration, shapes, seats); what changes is in the state that its
methods take and return, so a whole training run is a function of a key.
"""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from coplay.core.config import leaves
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.group import Group
from coplay.core.player import Player
from coplay.core.trajectory import Trajectory, of_seats

LearnerState = Any  # a pytree of arrays, private to its learner


class Learner(eqx.Module):
    """Learns in the seats `active`, out of the `seats` it has parameters for.

    Made as `Kind(config=…, shape=…, game_seats=…, seats=…, active=…)`: its configuration, the
    shapes of the ego views, the number of seats of the game, and the two tuples of seats.

        class A2C(coplay.Learner): …  # examples/own_learner.py is a whole one

        coplay.register_learner("a2c", A2CConfig, A2C)
    """

    config: eqx.AbstractVar[Any]
    seats: eqx.AbstractVar[tuple[int, ...]]
    active: eqx.AbstractVar[tuple[int, ...]]

    meets_partners: ClassVar[bool] = False
    """Whether it can learn in one seat among partners that are drawn anew after some episodes,
    when its players forget all (`--partners`)."""

    needs_partners: ClassVar[bool] = False
    """Whether it learns nothing of use without `--partners`."""

    play_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of the configuration that may be set anew for a player that learns no more."""

    @property
    def play_defaults(self) -> Mapping[str, Any]:
        """Fields of the configuration, by their paths, whose defaults differ for a player that
        learns no more: unless said, those that the configuration names."""
        named: Mapping[str, Any] = getattr(self.config, "play_defaults", {})
        return named

    training_only: ClassVar[tuple[str, ...]] = ()
    """Fields of the state, also of states inside it, that no player needs: optimisers, buffers.
    A player that is shared goes without them."""

    @property
    def declared_inputs(self) -> tuple[str, ...]:
        """What must change what its players do, as the wiring audit asks: `view`, `state` (of the
        game), `last_action`, `last_reward`, `memory`, `identity` (seats that are given the same
        differ), `others` (what co-players of the same learner are given)."""
        return ("view",)

    @property
    def declared_data(self) -> tuple[str, ...]:
        """Parts of what `training_data` gives, by their paths, that must change what is learned."""
        return (".reward",)

    @property
    def coefficients(self) -> tuple[str, ...]:
        """Fields of the configuration that must change what is learned if they are halved, by their
        paths, as the wiring audit asks: unless said, all whose names end in _weight."""
        paths = (leaf.path for leaf in leaves(self.config))
        return tuple(path for path in paths if path.endswith("_weight"))

    def parameters(self, state: LearnerState) -> Any:
        """What is optimised, for the wiring audit: unless said, all modules in the state that
        belong to no optimiser."""
        return _modules(state)

    @classmethod
    def made(cls, **fields: Any) -> "Learner":
        """The learner of these fields for a run; a kind may give another one that fits the shapes
        of the views."""
        return cls(**fields)

    def seated(self, active: tuple[int, ...]) -> "Learner":
        """The same learner, active in other seats."""
        return dataclasses.replace(self, active=active)

    def alone(self, state: LearnerState, seat: int, at: int) -> tuple["Learner", LearnerState]:
        """The learner of one of its seats by itself, to go on learning in seat `at`, and that
        seat's part of the state, of the same shapes for every `seat`."""
        raise UserError(f"a {type(self).__name__} learner cannot go on learning by itself")

    def check(self, game: Game) -> None:
        """An error if it cannot learn this game."""

    def partners_by_copy(self, count: int) -> tuple[int, ...] | None:
        """Which of the `count` partners of a pack it learns with, each in an equal share of the
        game copies, in this order; None: with all of them, drawn for each meeting."""
        return None

    def check_rollout(self, steps: int) -> None:
        """An error if it cannot learn from rollouts of so many steps."""

    def init(
        self,
        key: PRNGKeyArray,
        streams: Int[Array, " seat"],
        parts: Mapping[str, Any] = MappingProxyType({}),
    ) -> LearnerState:
        """Parameters and optimisers before learning; `streams` of all seats of the game.

        parts: what the fields of the configuration named that a learner begins with, loaded: a
            pretrained model, or (learner, state) of a run.
        """
        raise NotImplementedError

    def group(self, state: LearnerState) -> Group:
        """The players of the active seats, as they act while learning."""
        raise NotImplementedError

    def training_data(self, game: Game, trajectory: Trajectory) -> Any:
        """What `update` takes from all that was played: the part of its own seats, unless a learner
        also looks at others."""
        return of_seats(trajectory, self.active)

    def update(
        self,
        key: PRNGKeyArray,
        state: LearnerState,
        trajectory: Any,
        progress: Float[Array, ""],
    ) -> tuple[LearnerState, dict[str, Float[Array, "seat *action"]]]:
        """Learn from what `training_data` gave: a trajectory of the active seats (in that order).
        Metrics
        per active seat, or per seat and action.

        progress: the share of the run that is done, for schedules.
        """
        raise NotImplementedError

    def stages(
        self,
        key: PRNGKeyArray,
        state: LearnerState,
        trajectory: Any,
        progress: Float[Array, ""],
    ) -> dict[str, Any]:
        """What `update` would compute on its way from what `training_data` gave, for the seat
        audit to name
        the stage at fault.

        Optional. Pytrees by stage, in the order "batch", "advantages", "loss", whose arrays have a
        leading axis of the active seats.
        """
        return {}

    def first_ratio(self, state: LearnerState, trajectory: Any) -> Float[Array, " seat"] | None:
        """Of each active seat, the largest |ratio - 1| between the policy that `update` would begin
        with and the one that acted, on what `training_data` gave. None: it learns by no such
        ratio."""
        return None

    def player(self, state: LearnerState, seat: int, greedy: bool = False) -> Player:
        """The player of one seat as it stands, to sit in any seat and learn no more."""
        raise NotImplementedError

    def valued(self, player: Player, state: LearnerState, seat: int) -> Player:
        """What `player` gave, with the critic by which it tells what it expects to get
        (`Insight.value`), if the learner has one that a player can ask. It acts the same."""
        return player


def init_learner(
    learner: Learner,
    key: PRNGKeyArray,
    streams: Int[Array, " seat"],
    parts: Mapping[str, Any] = MappingProxyType({}),
) -> LearnerState:
    """`Learner.init`; a learner whose configuration names nothing to begin with takes no parts."""
    return learner.init(key, streams, parts) if parts else learner.init(key, streams)


def _modules(tree: Any) -> Any:
    """The modules in a tree, in containers like those they are in; nothing of optimisers."""
    if isinstance(tree, eqx.Module):
        return eqx.filter(tree, eqx.is_inexact_array)
    if type(tree).__module__.startswith("optax"):
        return ()
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return {name: _modules(getattr(tree, name)) for name in tree._fields}
    if isinstance(tree, tuple | list):
        return [_modules(item) for item in tree]
    if isinstance(tree, dict):
        return {name: _modules(item) for name, item in tree.items()}
    return ()
