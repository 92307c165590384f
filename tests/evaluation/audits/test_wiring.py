"""The wiring audit: learners of ours pass, and each planted fault is named."""

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from coplay.algorithms.mappo.config import HyperMAPPOConfig, MAPPOConfig
from coplay.algorithms.mappo.hyper import HyperMAPPO
from coplay.algorithms.ppo.config import PPOConfig
from coplay.algorithms.ppo.learner import PPO, PPOState
from coplay.cli import main as cli
from coplay.core.config import leaves, with_fields
from coplay.core.group import Group
from coplay.core.learner import Learner
from coplay.evaluation.audits.wiring import (
    CHECKS,
    Course,
    audit_size,
    audit_wiring,
    constants,
    data_check,
    influences,
    input_check,
    learn_twice,
    parameter_check,
    play_course,
    quick,
    ratio_check,
)
from coplay.evaluation.audits.wiring_fields import alternatives, coefficient_check, field_check
from coplay.games.registry import make_game
from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.matches.rollout import new_table
from coplay.nn.config import NetworkConfig
from coplay.nn.networks import view_shape
from coplay.training.config import TrainConfig

SMALL = StagHuntConfig(height=3, width=3, players=3, stags=1, hares=2, horizon=5)
GAME = StagHunt(SMALL)


@dataclass(frozen=True)
class OddConfig(PPOConfig):
    """PPO with a weight that nothing is made of."""

    network: NetworkConfig = field(default_factory=lambda: NetworkConfig(hidden=(6,)))
    epochs: int = 2
    minibatches: int = 1
    curiosity_weight: float = 0.5
    """Of nothing."""


class FrozenHead(PPO):
    """Its actor's head is put back after each update."""

    def update(self, key: Any, state: Any, trajectory: Any, progress: Any) -> Any:
        new, metrics = super().update(key, state, trajectory, progress)
        return new._replace(
            actor=eqx.tree_at(lambda a: a.head, new.actor, state.actor.head)
        ), metrics


class AnotherActs(PPO):
    """What acts is not what learns."""

    def group(self, state: PPOState) -> Group:
        return super().group(state._replace(actor=jax.tree.map(lambda x: 2 * x, state.actor)))


class SaysMore(PPO):
    """Declares inputs and data that it does not use."""

    @property
    def declared_inputs(self) -> tuple[str, ...]:
        return ("view", "last_reward", "others")

    @property
    def declared_data(self) -> tuple[str, ...]:
        return (".reward", ".episode_steps")


def learner(kind: Any = PPO, config: Any = None) -> Learner:
    config = config or OddConfig()
    return kind(
        config=config, shape=view_shape(GAME), game_seats=3, seats=(0, 1, 2), active=(0, 1, 2)
    )


@cache
def course(kind: Any) -> Course:
    mine = learner(kind)
    program = quick(lambda key: play_course(GAME, mine, key, 8, 16), jax.random.key(0))
    return program(jax.random.key(0))


pytestmark = pytest.mark.slow


def test_parameters_that_do_not_move_are_named() -> None:
    assert parameter_check(learner(), course(PPO)).passed
    check = parameter_check(learner(FrozenHead), course(FrozenHead))
    assert not check.passed and check.stage == "optimiser"
    assert len(check.figures["still"]) == 2 and "actor" in check.detail
    assert "head.weight gets a gradient and does not move" in check.detail


def test_acting_by_other_parameters_is_found() -> None:
    assert ratio_check(learner(), course(PPO)).passed
    check = ratio_check(learner(AnotherActs), course(AnotherActs))
    assert not check.passed and check.figures["ratio_error"] > 1e-3


def test_declared_inputs_and_data_without_effect_are_named() -> None:
    assert input_check(GAME, learner(), course(PPO)).passed
    check = input_check(GAME, learner(SaysMore), course(PPO))
    assert not check.passed and check.detail.startswith(
        "declared and without effect: last_reward, others"
    )
    mine = learner(SaysMore)
    update = quick(lambda *given: learn_twice(mine, *given), course(PPO).state, course(PPO).watched)
    check = data_check(mine, course(PPO), update)
    assert not check.passed and "without effect: .episode_steps." in check.detail
    assert check.figures["data"][".reward"] > 0


class Sparse(NamedTuple):
    """What was played: arrays [time, copy]."""

    reward: jax.Array
    action: jax.Array
    time: jax.Array


class Toy:
    """Learns from rewards and times; also says that it does from actions."""

    declared_data = (".reward", ".action", ".time")

    @staticmethod
    def parameters(state: Any) -> Any:
        return {"weight": state}


@pytest.mark.parametrize("seen", [False, True])
def test_data_that_a_rollout_left_constant_are_not_tried(seen: bool) -> None:
    action = jnp.array([[0, 1, 2], [2, 2, 0]])
    reward = jnp.zeros((2, 3)).at[0, 1].set(float(seen))
    watched = Sparse(reward, action, time=jnp.array([[0, 1, 2], [1, 2, 3]]))
    toy: Any = Toy()
    course = Course(jnp.zeros(3), jnp.zeros(3), None, watched)
    check = data_check(toy, course, lambda state, played: state + played.reward[0] + played.time[0])
    assert not check.passed and check.detail.startswith("declared and without effect: .action.")
    assert check.figures["constant"] == ([] if seen else [".reward"])
    assert ("not tried: constant in this rollout: .reward" in check.detail) != seen
    assert (check.figures["data"].get(".reward", 0) > 0) == seen


def test_what_a_game_leaves_constant_is_told_from_what_it_changes() -> None:
    for game, constant in ((make_game("hidden-target"), True), (GAME, False)):
        table = jax.jit(lambda key, game=game: new_table(game, (), key, 6))(jax.random.key(0))
        found = constants(game, table)
        assert bool(found["view"]) == bool(found["others"]) == constant
        assert not found["state"]  # the targets are in it


def test_constant_inputs_are_reported_and_others_still_fail() -> None:
    game = make_game("hidden-target", players=3)
    seats = (0, 1, 2)
    mine = SaysMore(
        config=OddConfig(), shape=view_shape(game), game_seats=3, seats=seats, active=seats
    )
    played = quick(lambda key: play_course(game, mine, key, 4, 8), jax.random.key(0))
    check = input_check(game, mine, played(jax.random.key(0)))
    assert not check.passed and check.figures["constant"] == ["view", "others"]
    assert check.detail.startswith("declared and without effect: last_reward.")


def test_coefficients_without_effect_are_named() -> None:
    given = (learner(), course(PPO).state, course(PPO).watched, learn_twice, quick)
    check = coefficient_check(*given)
    assert not check.passed and check.stage == "loss"
    assert check.detail.startswith("without effect: curiosity_weight.")
    found = check.figures["coefficients"]
    assert found["entropy_weight"] > 0 and found["value_weight"] > 0


def test_inert_fields_are_reported() -> None:
    config = TrainConfig("ppo", "stag-hunt", OddConfig(), SMALL)
    check = field_check(config, GAME, 8, 16)
    # Convolutions are not there with flattened planes.
    inert = ["network.channels", "curiosity_weight"]
    assert check.figures["inert"] == inert and not check.figures["untried"]
    assert "optimiser.kind" in check.figures["active"]


def test_alternatives() -> None:
    found = {field.path: list(alternatives(field)) for field in leaves(HyperMAPPOConfig())}
    assert found["memory.kind"] == ["gru", "lstm"]
    assert found["network.layer_norm"] == [False]
    assert found["huber"] == [None, 5.0, 20.0]
    assert found["critic_learning_rate"] == [0.25, 1.0]
    assert found["network.hidden"] == [(128, 64)]
    assert not found["warm_start"]


def test_copies_and_steps_go_with_minibatches_and_chunks() -> None:
    config = with_fields(MAPPOConfig(), {"minibatches": 3, "memory.chunk_length": 12})
    assert audit_size(TrainConfig("mappo", "stag-hunt", config, SMALL)) == (9, 24)
    assert audit_size(TrainConfig("ppo", "stag-hunt", PPOConfig(), SMALL)) == (8, 16)


def test_team_and_identity_are_felt() -> None:
    """The measure itself: attention hears others, numbers tell seats apart, local does neither."""
    found = {}
    for context, ids in (("team", True), ("local", False)):
        hyper = {"latent": 3, "width": 6, "units": 5, "layers": "all"}
        hyper |= {"context": context, "ids": ids}
        fields = {"network.hidden": (6,), "hypernetwork": hyper}
        config = with_fields(HyperMAPPOConfig(), fields)
        mine = learner(HyperMAPPO, config)

        def played(key: Any, mine: Any = mine) -> Any:
            done = play_course(GAME, mine, key, 4, 8)
            return influences(GAME, mine, done)

        found[context] = quick(played, jax.random.key(0))(jax.random.key(0))
    for name in ("view", "last_action", "last_reward", "memory", "identity", "others"):
        assert found["team"][name] > 0, name
    assert found["local"]["others"] == 0 and found["local"]["identity"] == 0
    assert found["local"]["state"] == 0


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "audit",
        "wiring",
        "--player",
        "ppo",
        "--network.hidden",
        "6",
        "--minibatches",
        "1",
    ]
    arguments += ["--game.height", "3", "--game.width", "3", "--out", str(tmp_path / "a"), "--json"]
    assert cli.run(arguments) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["verdict"] == "pass" and shown["stage"] is None
    assert {check["stage"] for check in shown["checks"]} >= {"acting", "input", "loss", "optimiser"}
    assert (tmp_path / "a" / "index.html").exists()


def test_the_configuration_may_be_left_out() -> None:
    config = TrainConfig("ppo", "stag-hunt", OddConfig(), SMALL)
    stages = [check.stage for check in audit_wiring(config, configuration=False).checks]
    assert len(stages) == CHECKS
    assert stages == ["acting", "optimiser", "input", "data", "loss"]


def test_games_in_workers_are_refused() -> None:
    from coplay import UserError
    from coplay.games.adapters.worker_game import WorkerConfig

    config = TrainConfig("ppo", "pettingzoo:mpe2.simple_spread_v3", PPOConfig(), WorkerConfig())
    with pytest.raises(UserError, match="compiled game"):
        audit_wiring(config)
