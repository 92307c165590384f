"""HOP+: a run from beginning to end, what it learns from, and what it imagines."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.algorithms.hop_plus.config import HopPlusConfig
from coplay.algorithms.hop_plus.imagination import one_of
from coplay.algorithms.hop_plus.learner import HopPlus
from coplay.algorithms.hop_plus.models import HopPlusData, HopPlusState, _newest
from coplay.algorithms.hop_plus.player import HopPlusMemory, between_episodes, everyone
from coplay.bench.hop_plus import parts
from coplay.bench.measure import measure
from coplay.cli.main import run
from coplay.core.config import with_fields
from coplay.core.group import Group
from coplay.core.player import SEATS
from coplay.games.registry import make_game
from coplay.matches.rollout import new_table, rollout
from coplay.models.correction import no_correction
from coplay.models.goal_codes import new_goal_model
from coplay.models.goal_inference import Code
from coplay.nn import categorical
from coplay.nn.networks import flatten, view_shape

FIELDS = {"height": 2, "width": 3, "players": 2, "stags": 1, "hares": 1, "horizon": 5}
SMALL: dict[str, Any] = {
    "network.hidden": (8,),
    "network.kind": "mlp",
    "recordings.samples": 0,
    "imagination.strangers": 0.0,
    "imagination.over": "model",
    "imagination.after": 20,
    "models.learn_opponents": True,
    "goals.dim": 2,
    "goals.width": 5,
    "goals.opponent_hidden": (6,),
    "world_model.channels": 6,
    "models.chunk_length": 4,
    "models.buffer_chunks": 20,
    "models.buffer_transitions": 50,
    "models.batch_chunks": 4,
    "models.batch_transitions": 8,
    "epochs": 1,
    "minibatches": 2,
}
STEPS, COPIES = 8, 6


def small(fields: Mapping[str, Any] = MappingProxyType({})) -> HopPlusConfig:
    return with_fields(HopPlusConfig(), SMALL | fields)  # type: ignore[operator]


def test_buffers_keep_the_newest_rows_that_count() -> None:
    old, keep = np.arange(6), np.array([True, False, True, True, False])
    kept, number = _newest(jnp.asarray(old), jnp.asarray([10, 11, 12, 13, 14]), jnp.asarray(keep))
    np.testing.assert_array_equal(kept, [3, 4, 5, 10, 12, 13])
    assert int(number) == 3
    many = _newest(jnp.arange(2), jnp.arange(10, 15), jnp.ones(5, bool))[0]
    np.testing.assert_array_equal(many, [13, 14])


def test_beginnings_are_drawn_from_the_mask() -> None:
    mask = jnp.array([False, True, False, True, True, False])
    uniform = jnp.linspace(0, 0.999, 300)
    found, counts = np.unique(np.asarray(one_of(mask, uniform)), return_counts=True)
    assert list(found) == [1, 3, 4] and counts.min() >= 99


def test_what_is_known_of_three_seats_is_in_their_order() -> None:
    seats, copies = 3, 2
    mine = np.arange(seats * copies).reshape(seats, copies, 1).astype(np.float32)
    found = np.asarray(jax.vmap(everyone, axis_name=SEATS)(jnp.asarray(mine)))
    for seat in range(seats):
        for other in range(seats):
            np.testing.assert_array_equal(found[seat, :, other], mine[(seat + other) % seats])
    # What a seat noted of all, ego-first, is put back to where they sit.
    game = make_game("stag-hunt", players=seats)
    learner = HopPlus(
        config=small(),
        shape=view_shape(game),
        game_seats=seats,
        seats=(1,),
        active=(1,),
    )
    recorded = jnp.asarray(found[1:2])[None]  # [time, own, copy, seat, unit]
    known = learner._known(HopPlusMemory(recorded, recorded))
    np.testing.assert_array_equal(known.z[0], np.swapaxes(mine, 0, 1))


@pytest.mark.parametrize("fields", [{}, {"belief.inter": False}, {"keep_memory": True}])
def test_what_is_known_when_the_next_episode_begins(fields: dict[str, Any]) -> None:
    game, config = make_game("stag-hunt", **FIELDS), small({"goals.prototypes": 3} | fields)
    goals = new_goal_model(config.goals.model, view_shape(game), 2, jax.random.key(0))
    memory = HopPlusMemory(
        goals=jnp.log(jnp.array([[[1.0, 0.01, 0.01]] * 2] * 2)),
        z=jnp.zeros((2, 2, 2)),
        episodes=jnp.zeros((2, 2, 3)) if config.inter else None,
        acted=no_correction((2, 2, game.actions)),
    )
    new = between_episodes(goals, config, memory, jnp.array([True, False]))
    # The episode goes on in the second copy; corrections are kept in any case.
    jax.tree.map(np.testing.assert_array_equal, *(x.goals[1] for x in (new, memory)))
    jax.tree.map(np.testing.assert_array_equal, new.acted, memory.acted)
    weights = np.asarray(goals.inference.weights(new.goals[0]))  # type: ignore[attr-defined]
    if config.keep_memory:
        np.testing.assert_array_equal(new.goals, memory.goals)
    elif config.inter:
        assert new.episodes is not None and not np.asarray(new.episodes[1]).any()
        np.testing.assert_allclose(new.episodes[0].sum(-1), 1.0, rtol=1e-5)
        assert 0.5 < weights[0, 0] < 0.8  # one episode beside a prior that counts as one
    else:
        np.testing.assert_allclose(weights, 1 / 3, rtol=1e-5)


@pytest.fixture(scope="module")
def played() -> tuple[Any, HopPlus, HopPlusState, Any, HopPlusData]:
    """A learner in both seats after a rollout."""
    game = make_game("stag-hunt", **FIELDS)
    learner = HopPlus(
        config=small({"imagination.share": 0.5, "parameters": "separate"}),
        shape=view_shape(game),
        game_seats=2,
        seats=(0, 1),
        active=(0, 1),
    )

    @jax.jit
    def play(key: Any) -> Any:
        state = learner.init(key, jnp.arange(2))
        groups = (learner.group(state),)
        table = new_table(game, groups, key, COPIES)
        table, _ = rollout(game, groups, table, key, 3, jnp.arange(2))
        table, trajectory = rollout(game, groups, table, key, STEPS, jnp.arange(2))
        return (
            state,
            trajectory,
            table.memory,
            learner.training_data(game, trajectory)._replace(game=None),
        )

    state, trajectory, memory, observed = play(jax.random.key(0))
    return game, learner, state, (trajectory, memory), observed._replace(game=game)


@pytest.mark.slow
def test_codes_in_learning_are_those_it_acted_by(played: Any) -> None:
    _, learner, state, (trajectory, memory), observed = played

    @jax.jit
    def learned(state: HopPlusState, observed: HopPlusData) -> Any:
        seen = state.goals.see(observed.chunks.observation)
        evidence = state.goals.evidence(seen, observed.chunks.joint)
        before, after = state.goals.unroll(evidence, observed.chunks.past)
        own = learner._with_codes(state.goals, observed)
        return (
            before,
            after,
            state.goals.infer(before, seen).mean,
            own,
            learner._after(state.goals, observed),
        )

    before, after, z, own, end = learned(state, observed._replace(game=None))

    def by_seat(x: Any) -> np.ndarray:
        return np.moveaxis(np.asarray(x).reshape(COPIES, 2, STEPS, -1), 2, 0)

    # What players noted is what the memory gives when it runs over the rollout at once.
    alive = np.asarray(trajectory.alive)
    for found, recorded in ((before, observed.known.goals), (z, observed.known.z)):
        np.testing.assert_allclose(by_seat(found)[alive], np.asarray(recorded)[alive], 1e-3, 1e-5)
    assert np.abs(np.asarray(z)).max() > 1e-3
    over = np.asarray(trajectory.over[-1])
    after = np.where(over[:, None, None], 0.0, np.asarray(after).reshape(COPIES, 2, -1))
    np.testing.assert_allclose(end, after, rtol=1e-3, atol=1e-5)
    for own_seat in range(2):
        known = memory[0].goals[own_seat]  # ego-first
        np.testing.assert_allclose(known[:, 1], after[:, 1 - own_seat], rtol=1e-3, atol=1e-5)
    group = learner.group(state)
    logits = jax.vmap(lambda actor, x: actor(x), (0, 2), 2)(
        group.player.actor, flatten(own.observation)
    )
    log_policy = categorical.log_policy(logits, own.observation.legal)
    np.testing.assert_allclose(
        np.asarray(log_policy)[alive],
        np.asarray(trajectory.log_policy)[alive],
        rtol=1e-3,
        atol=1e-4,
    )


@pytest.mark.slow
def test_learning_begins_with_the_policy_that_acted(played: Any) -> None:
    _, learner, state, _, data = played
    ratio = jax.jit(learner.first_ratio)
    assert float(jnp.max(ratio(state, data))) < 1e-5
    # Other codes than it acted by are other inputs of the policy.
    shifted = jax.tree.map(lambda x: x + 0.5, data.known)
    known = data.known._replace(z=shifted.z)
    assert float(jnp.max(ratio(state, data._replace(known=known)))) > 1e-4


@pytest.mark.slow
def test_the_horizon_is_an_end_as_for_a_planner(played: Any) -> None:
    """What was seen at the horizon is worth nothing: learning is the same whatever it was."""
    _, learner, state, _, data = played
    assert data.own.truncated.any()
    final = jax.tree.map(jnp.ones_like, data.own.final)
    other = data._replace(own=data.own._replace(final=final))
    update = jax.jit(learner.update)
    (one, _), (same, _) = (
        update(jax.random.key(1), state, x, jnp.float32(0)) for x in (data, other)
    )
    jax.tree.map(np.testing.assert_array_equal, one.policy, same.policy)


@pytest.mark.slow
def test_the_best_possible_prediction_is_of_the_policies_that_acted(played: Any) -> None:
    _, learner, state, (trajectory, _), observed = played
    found = jax.jit(lambda s, w: learner._prediction_metrics(s, w))(
        state, observed._replace(game=None)
    )
    probs = np.exp(np.asarray(trajectory.log_policy))[np.asarray(trajectory.alive)]
    np.testing.assert_allclose(found["opponent_oracle_top1"], probs.max(-1).mean(), rtol=1e-5)
    assert (np.asarray(found["opponent_top1"]) < 1).all()


@pytest.mark.slow
def test_players_that_share_what_they_infer_act_like_players_that_do_not(played: Any) -> None:
    game, learner, state, (trajectory, _), observed = played
    group = learner.group(state)
    assert group.player.together
    alone = Group(dataclasses.replace(group.player, together=False), group.seats, group.shared)

    @jax.jit
    def play(key: Any) -> Any:
        table = new_table(game, (alone,), key, COPIES)
        table, _ = rollout(game, (alone,), table, key, 3, jnp.arange(2))
        return rollout(game, (alone,), table, key, STEPS, jnp.arange(2))[1]

    other = play(jax.random.key(0))
    np.testing.assert_allclose(other.log_policy, trajectory.log_policy, rtol=1e-4, atol=1e-5)
    recorded = other.recorded[learner.active]
    single = dataclasses.replace(learner, active=(1,))
    known = single._known(jax.tree.map(lambda x: x[:, 1:], recorded))
    np.testing.assert_allclose(known.z, observed.known.z, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(known.goals, observed.known.goals, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_imagination_begins_where_games_were(played: Any) -> None:
    _, learner, state, (trajectory, _), observed = played
    game = observed.game

    @jax.jit
    def rollout(state: HopPlusState, observed: HopPlusData) -> Any:
        observed = observed._replace(game=game)
        return learner._imagination.rollout(jax.random.key(1), state, observed)

    found = rollout(state._replace(updates=jnp.int32(99)), observed._replace(game=None))
    assert found.alive.shape == (STEPS, COPIES, 2)
    assert np.asarray(found.alive).all()  # whoever leaves begins anew at once
    real = {
        np.asarray(x).tobytes()
        for x, there in zip(
            np.asarray(trajectory.observation.planes).reshape(-1, 2 * 3 * 5),
            np.asarray(trajectory.alive).reshape(-1),
            strict=True,
        )
        if there
    }
    for row in np.asarray(found.observation.planes)[0].reshape(-1, 2 * 3 * 5):
        assert row.tobytes() in real
    # Codes are inferred ones: they differ, and are not 0.
    codes = np.asarray(found.observation.features)[..., -2:]
    assert np.abs(codes).max() > 1e-3 and codes.std() > 1e-4
    chosen = np.take_along_axis(
        np.asarray(found.observation.legal), np.asarray(found.action)[..., None], -1
    )
    assert chosen.all()


@pytest.mark.slow
@pytest.mark.parametrize("use", ["inferred", "zero"])
def test_planners_sample_prototypes_by_their_probabilities(use: str) -> None:
    game = make_game("stag-hunt", **FIELDS)
    learner = HopPlus(
        config=small({"goals.use": use, "search.draws": 2000, "goals.prototypes": 3}),
        shape=view_shape(game),
        game_seats=2,
        seats=(0, 1),
        active=(0, 1),
    )
    player = learner.player(learner.init(jax.random.key(0), jnp.arange(2)), 0)
    chance = np.array([0.6, 0.3, 0.1])
    goals = jnp.asarray(np.log([[chance[::-1], chance]]))  # of oneself and of the other
    memory = HopPlusMemory(goals, jnp.zeros((1, 2, 2)))
    code = Code(jnp.zeros((1, 2, 2)), jnp.zeros((1, 2, 2)))
    drawn = player.sample_codes(jax.random.key(1), memory, code)
    codes = np.asarray(player.goals.inference.codes)  # type: ignore[attr-defined]
    near = np.abs(np.asarray(drawn)[:, 0, 0, None] - codes).max(-1) == 0
    shares = chance if use == "inferred" else np.zeros(3)
    np.testing.assert_allclose(near.mean(0), shares, atol=0.04)


@pytest.mark.slow
def test_a_run_from_beginning_to_end(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    out = tmp_path / "run"
    game = [f"--game.{name}={value}" for name, value in FIELDS.items()]
    options: list[str] = []
    for name, value in SMALL.items():
        values = value if isinstance(value, tuple) else (value,)
        flag = f"--{name.replace('_', '-')}"
        options += [flag] if value is True else [flag, *map(str, values)]
    size = ["--copies", "6", "--rollout", "8", "--block", "1", "--episodes", "20"]
    command = ["train", "hop-plus", *game, *options, *size, "--imagination.share", "0.5"]
    assert run([*command, "--steps", "144", "--out", str(out)]) == 0
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert len(rows) == 3
    for name in ("real_value_loss", "imagined_value_loss", "real_reward", "imagined_return"):
        assert np.isfinite(rows[-1][f"{name}/seat_0"])
    for name in ("opponent_loss", "goal_kl", "world_move_loss", "opponent_top1"):
        assert np.isfinite(rows[-1][f"{name}/seat_1"])
    capsys.readouterr()
    seating = f"{out},{out}@planner=search@search.simulations=7@plan_over=model@search.draws=1"
    assert run(["play", "--seating", seating, "--episodes", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 4


@pytest.mark.slow
def test_bench_times_every_part() -> None:
    config = small({"imagination.share": 0.5})
    speeds = measure(parts(make_game("stag-hunt", **FIELDS), config, COPIES, STEPS), 1)
    names = [speed.work.name for speed in speeds]
    assert names[0] == "whole update" and "imagination" in names and len(set(names)) == 8
    assert all(speed.seconds > 0 for speed in speeds)
