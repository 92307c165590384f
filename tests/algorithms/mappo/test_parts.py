"""Each part of the hypernetwork that can be chosen, and a memory that is told what was done and
got: learning begins with the policy that acted, and a fault put in on purpose is caught by the
wiring audit's own checks."""

import copy
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from coplay.algorithms.mappo.data import Context, MAPPOBatch, MAPPOData, MAPPOState
from coplay.algorithms.mappo.hyper import HyperMAPPO
from coplay.algorithms.mappo.hypernetwork import Hypernetwork
from coplay.algorithms.mappo.learner import MAPPO
from coplay.algorithms.mappo.player import HypernetworkWeights
from coplay.core.group import Group
from coplay.evaluation.audits.wiring import Course, input_check, parameter_check, ratio_check
from tests.algorithms.mappo.teams import GAME, Played, course, play, team

pytestmark = pytest.mark.slow


class OneHeadActs(HyperMAPPO):
    """Agents that act hear each other by one head, whatever was asked for."""

    def group(self, state: MAPPOState) -> Group:
        group = super().group(state)
        attention = copy.copy(group.player.hyper.network.attention)  # type: ignore[attr-defined]
        object.__setattr__(attention, "heads", 1)
        player = eqx.tree_at(lambda p: p.hyper.network.attention, group.player, attention)
        return dataclasses.replace(group, player=player)


class Untold(Hypernetwork):
    """What learns is not told the policies of past steps."""

    def contexts(self, weights: HypernetworkWeights, batch: MAPPOBatch) -> Context:
        return super().contexts(
            weights, batch._replace(log_policy=jnp.zeros_like(batch.log_policy))
        )


class LearnsUntold(HyperMAPPO):
    @property
    def hypernetwork(self) -> Hypernetwork | None:
        return Untold(self.config, self.shape, self.game_seats)


class CurrentActs(HyperMAPPO):
    """What learns acts, where the slow copy should."""

    def group(self, state: MAPPOState) -> Group:
        return super().group(state._replace(target=state.parameters.hyper))


def same(seen: MAPPOData) -> MAPPOData:
    return seen


def no_actions(seen: MAPPOData) -> MAPPOData:
    """What was done last is not there to learn from."""
    past = seen.trajectory.past
    assert past is not None
    past = past._replace(action=jnp.zeros_like(past.action))
    return seen._replace(trajectory=seen.trajectory._replace(past=past))


def empty_chunks(seen: MAPPOData) -> MAPPOData:
    """Chunks begin with empty contexts."""
    empty = jnp.zeros_like(seen.after.context)
    return seen._replace(after=seen.after._replace(context=empty))


def half_chunks(seen: MAPPOData) -> MAPPOData:
    """Of a long short-term memory, chunks begin with the first half alone."""
    memory = seen.after.context
    kept = memory.at[..., memory.shape[-1] // 2 :].set(0.0)
    return seen._replace(after=seen.after._replace(context=kept))


class Part(NamedTuple):
    """fields: what chooses it. learner: of MAPPO's family. faulty: a learner with a fault, or
    fault: what is wrong in the data."""

    fields: dict[str, Any]
    learner: type[MAPPO] = HyperMAPPO
    faulty: type[MAPPO] | None = None
    fault: Callable[[MAPPOData], MAPPOData] = same


TOLD = {"memory.kind": "gru", "memory.told": True}
TEAM = {"hypernetwork.context": "team"}
PARTS = {
    "heads": Part(TEAM | {"hypernetwork.attention_heads": 2}, faulty=OneHeadActs),
    "lstm": Part({"hypernetwork.memory": "lstm"}, fault=half_chunks),
    "window": Part({"hypernetwork.memory": "window"}, fault=empty_chunks),
    "policies": Part({"hypernetwork.memory": "policies", "perturbation": 0.2}, faulty=LearnsUntold),
    "target": Part({"hypernetwork.acting": "target"}, faulty=CurrentActs),
    "told": Part(TOLD | {"parameters": "shared+id"}, MAPPO, fault=no_actions),
}


def ratio(learner: MAPPO, played: Played, seen: MAPPOData) -> Any:
    return ratio_check(learner, Course(played.state, played.state, played.table, seen))


@pytest.mark.parametrize("name", PARTS)
def test_learning_begins_with_the_policy_that_acted(name: str) -> None:
    part = PARTS[name]
    right = team(kind=part.learner, **part.fields)
    state = None
    if name == "target":  # two copies that differ
        state = play(right).state
        far = jax.tree.map(lambda x: x + 0.3, state.parameters.hyper)
        state = state._replace(target=far)
    played = play(right, state=state)
    assert ratio(right, played, played.seen).passed
    if part.faulty is None:
        assert not ratio(right, played, part.fault(played.seen)).passed
    else:
        wrong = team(kind=part.faulty, **part.fields)
        faulty = play(wrong, state=played.state)
        assert not ratio(wrong, faulty, faulty.seen).passed


class NotTold(MAPPO):
    """The actor is given nothing in the place of what was done and got last."""

    def _player(self, *given: Any, **named: Any) -> Any:
        player = super()._player(*given, **named)
        numbers = GAME.actions + 2
        layer = player.actor.layers[0]
        return eqx.tree_at(
            lambda p: p.actor.layers[0].weight, player, layer.weight.at[:, -numbers:].set(0.0)
        )


def test_a_memory_that_is_told_declares_what_it_is_told() -> None:
    for kind, passes in ((MAPPO, True), (NotTold, False)):
        learner = team(kind=kind, **TOLD, **{"network.layer_norm": False})
        played = play(learner)
        found = Course(played.state, played.state, played.table, played.seen)
        check = input_check(GAME, learner, found)
        assert check.passed is passes, check.detail
        assert passes or "without effect: last_action, last_reward" in check.detail


class NoFeedForward(HyperMAPPO):
    """The feed-forward part of a Transformer layer is put back after each update."""

    def update(self, key: Any, state: MAPPOState, trajectory: Any, progress: Any) -> Any:
        new, metrics = super().update(key, state, trajectory, progress)
        hyper = eqx.tree_at(
            lambda h: h.network.attention.up,
            new.parameters.hyper,
            state.parameters.hyper.network.attention.up,
        )
        return new._replace(parameters=new.parameters._replace(hyper=hyper)), metrics


def test_every_array_of_a_transformer_layer_moves() -> None:
    fields = tuple(sorted((TEAM | {"hypernetwork.attention": "transformer"}).items()))
    for kind, passes in ((HyperMAPPO, True), (NoFeedForward, False)):
        states = course(kind, 3, fields)[0]
        first, last = (jax.tree.map(lambda x, i=i: x[i], states) for i in (0, -1))
        found: Any = Course(first, last, None, None)
        check = parameter_check(team(kind=kind, **dict(fields)), found)
        assert check.passed is passes, check.detail
        assert passes or "attention.up.weight gets a gradient and does not move" in check.detail
