"""MAPPO: what its parts are given, its losses against plain loops, and whole runs."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay import UserError
from coplay.algorithms.mappo.config import HyperMAPPOConfig, MAPPOConfig
from coplay.algorithms.mappo.data import MAPPOBatch, MAPPOData, MAPPOState, Parameters, cut
from coplay.algorithms.mappo.player import MAPPOMemory, context_inputs, critic_inputs
from coplay.cli.main import run as cli
from coplay.core.config import inert_fields, parse_fields, with_fields
from coplay.games.registry import make_game
from coplay.rl.ppo_loss import ppo_loss
from tests.algorithms.mappo.teams import COPIES, GAME, STEPS, play, team

RNG = np.random.default_rng(0)


# --- what networks are given --------------------------------------------------------------------


def test_critic_inputs() -> None:
    view = np.array([[1.0, 2.0], [0.0, 0.0]])
    global_state, ids = np.array([[5.0], [6.0]]), np.eye(2)
    own = critic_inputs("own", jnp.asarray(view), jnp.asarray(global_state), jnp.asarray(ids))
    np.testing.assert_array_equal(own, view)
    seen = critic_inputs("global", *map(jnp.asarray, (view, global_state, ids)))
    # Who sees nothing is shown nothing but its number.
    np.testing.assert_array_equal(seen, [[5, 1, 0], [0, 0, 1]])
    both = critic_inputs("agent-specific", *map(jnp.asarray, (view, global_state, ids)))
    np.testing.assert_array_equal(both, [[1, 2, 5, 1, 0], [0, 0, 0, 0, 1]])


def test_context_inputs_forget_the_episode_before() -> None:
    view = jnp.ones((2, 1))
    given = (view, jnp.asarray([True, False]), jnp.asarray([1, 0]), jnp.asarray([3.0, 4.0]))
    new = context_inputs(*given, None, 2, False)
    np.testing.assert_array_equal(new, [[1, 0, 0, 0, 1], [1, 1, 0, 4, 0]])
    kept = context_inputs(*given, jnp.eye(2), 2, True)
    np.testing.assert_array_equal(kept, [[1, 0, 1, 3, 1, 1, 0], [1, 1, 0, 4, 0, 0, 1]])


def test_chunks_are_contiguous_and_begin_with_the_memory_before_them() -> None:
    copies, steps, seats, length = 2, 6, 3, 2
    number = np.arange(copies * steps).reshape(copies, steps, 1) * np.ones((1, 1, seats))
    after = MAPPOMemory(*(number[..., None] + 100 for _ in range(4)))
    start = MAPPOMemory(*(np.full((copies, 1, seats, 1), -1.0) for _ in range(4)))
    batch = MAPPOBatch(*(number for _ in range(9)), memory=start)  # type: ignore[misc]
    chunks = cut(batch, after, length)
    np.testing.assert_array_equal(
        chunks.alive[:, :, 0], [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]
    )
    np.testing.assert_array_equal(chunks.memory.actor[:, 0, 0, 0], [-1, 101, 103, -1, 107, 109])


@pytest.mark.slow
@pytest.mark.parametrize("parameters", ["shared", pytest.param("separate", marks=pytest.mark.slow)])
def test_what_was_remembered_is_what_unrolling_remembers(parameters: str) -> None:
    """Players note their memories as they act; actor and critic unrolled over the whole rollout
    give the same memories and, from the critic's, the same values."""
    learner = team(**{"memory.kind": "lstm", "memory.chunk_length": STEPS}, parameters=parameters)
    played = play(learner)

    @jax.jit
    def both(state: MAPPOState, seen: MAPPOData) -> tuple[MAPPOBatch, Any, Any]:
        _, batch, _ = learner.prepare(state, seen)

        def unrolled(parameters: Parameters, batch: MAPPOBatch) -> Any:
            start, when = batch.memory, (batch.first, batch.alive)
            actor = parameters.actor.unroll(batch.view, start.actor[:, 0], *when)
            return actor, parameters.critic.unroll(batch.critic, start.critic[:, 0], *when)

        return batch, *jax.vmap(unrolled)(state.parameters, batch)

    batch, (_, actor), (value, critic) = both(played.state, played.seen)
    alive, seats = np.asarray(batch.alive), 1 if parameters == "separate" else 3
    assert not alive.all() and np.asarray(batch.first)[:, :, 1:].any()
    for recorded, expected in (
        (played.seen.after.actor, actor),
        (played.seen.after.critic, critic),
    ):
        by_set = np.asarray(recorded).reshape(STEPS, COPIES, -1, seats, recorded.shape[-1])
        np.testing.assert_allclose(by_set.transpose(2, 1, 0, 3, 4), expected, atol=1e-5)
        assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(batch.value[alive], value[..., 0][alive], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("parameters", ["shared", "separate"])
def test_team_rewards_are_the_mean_of_those_who_learn(parameters: str) -> None:
    """Learning from the own rewards of a game that gives everybody that mean is the same."""
    own, shared = (
        team(parameters=parameters, rewards=rewards, value_norm=False)
        for rewards in ("own", "team")
    )
    played = play(own)
    reward = played.seen.trajectory.reward
    mean = jnp.broadcast_to(jnp.mean(reward, axis=-1, keepdims=True), reward.shape)
    assert np.abs(mean - reward).max() > 0.1
    given = played.seen._replace(trajectory=played.seen.trajectory._replace(reward=mean))
    _, expected, _ = jax.jit(own.prepare)(played.state, given)
    _, found, _ = jax.jit(shared.prepare)(played.state, played.seen)
    np.testing.assert_allclose(found.target, expected.target, atol=1e-5)
    np.testing.assert_allclose(found.advantage, expected.advantage, atol=1e-5)


# --- the loss -----------------------------------------------------------------------------------


def test_huber_and_masks_by_a_plain_loop() -> None:
    samples, seats, actions = 6, 2, 3
    log_policy, old = (
        np.asarray(jax.nn.log_softmax(jnp.asarray(RNG.normal(size=(samples, seats, actions)))))
        for _ in range(2)
    )
    value, old_value, target = (RNG.normal(scale=3.0, size=(samples, seats)) for _ in range(3))
    action = RNG.integers(actions, size=(samples, seats))
    advantage = RNG.normal(size=(samples, seats))
    alive = RNG.random((samples, seats)) < 0.8
    acting = alive & (RNG.random((samples, seats)) < 0.7)
    arrays = (log_policy, value, old, old_value, action, advantage, target, alive)
    weights = {"clip": 0.2, "value_clip": 0.5, "entropy_weight": 0.1, "value_weight": 0.7}
    loss, terms = ppo_loss(
        *map(jnp.asarray, arrays),
        **weights,
        huber=1.5,
        acting=jnp.asarray(acting),
    )

    def half_square(error: float) -> float:
        size = abs(error)
        return size**2 / 2 if size <= 1.5 else 1.5 * size - 1.5**2 / 2

    policy, values = [], []
    for s in range(samples):
        for i in range(seats):
            if alive[s, i]:
                near = old_value[s, i] + np.clip(value[s, i] - old_value[s, i], -0.5, 0.5)
                errors = (half_square(v - target[s, i]) for v in (value[s, i], near))
                values.append(max(errors))
            if acting[s, i]:
                ratio = np.exp(log_policy[s, i, action[s, i]] - old[s, i, action[s, i]])
                gain = min(ratio * advantage[s, i], np.clip(ratio, 0.8, 1.2) * advantage[s, i])
                p = np.exp(log_policy[s, i])
                policy.append(-gain + 0.1 * (p * log_policy[s, i]).sum())
    np.testing.assert_allclose(loss, np.mean(policy) + 0.7 * np.mean(values), rtol=1e-5)
    assert terms.value_loss.shape == (seats,)


# --- configuration ------------------------------------------------------------------------------


def test_options_behave() -> None:
    texts = ["hypernetwork.ids=false", "hypernetwork.accumulation=1"]
    off = parse_fields(HyperMAPPOConfig(), texts, "here").hypernetwork
    assert off.ids is False and off.accumulation == 1.0
    plain = parse_fields(MAPPOConfig(), ["network.layer_norm=false"], "here")
    assert plain.network.layer_norm is False and plain.network.activation == "relu"
    for text in ("hypernetwork.ids=maybe", "nonsense=1", "hypernetwork.context=global"):
        with pytest.raises(UserError):
            parse_fields(HyperMAPPOConfig(), [text], "here")
    for wrong in ({"increments": "team"}, {"context": "slow", "accumulation": 0.5}, {"latent": 0}):
        with pytest.raises(UserError):
            with_fields(HyperMAPPOConfig(), {"hypernetwork": wrong})
    for wrong in ({"memory.chunk_length": 0}, {"network.hidden": ()}, {"network.kind": "centred"}):  # type: ignore[assignment]
        with pytest.raises(UserError):
            with_fields(MAPPOConfig(), wrong)


def test_fields_that_do_nothing_are_named() -> None:
    assert not inert_fields(HyperMAPPOConfig()) and not inert_fields(MAPPOConfig())
    config = with_fields(
        HyperMAPPOConfig(parameters="shared"),
        {"hypernetwork.latent": 4, "anchor_every": 5, "memory.units": 3, "memory.chunk_length": 4},
    )
    assert inert_fields(config) == [
        "memory.units does nothing here: memory.kind is none",
        "hypernetwork.latent does nothing here: parameters is shared",
        "anchor_every does nothing here: anchor_weight is 0.0",
    ]


def test_the_critic_may_have_a_rate_of_its_own() -> None:
    plain, other = team(), team(critic_learning_rate=0.5)
    assert plain.optimiser("critic") == plain.optimiser("actor") == plain.config.optimiser
    assert other.optimiser("critic").learning_rate == 0.5
    assert other.optimiser("actor") == plain.optimiser("actor")


# --- whole programs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("player", "options", "message"),
    [
        (
            "mappo",
            ["--memory.kind", "gru", "--memory.chunk-length", "5"],
            r"memory.chunk_length (5) must divide",
        ),
        ("hyper-mappo", ["--memory.chunk-length", "5"], r"chunk_length (5) must divide"),
        ("hop-plus", ["--models.chunk-length", "5"], r"chunk_length (5) must divide"),
    ],
)
def test_chunks_must_divide_rollouts_before_anything_is_written(
    player: str, options: list[str], message: str, tmp_path: Path, capsys: Any
) -> None:
    out = tmp_path / "run"
    assert cli(["train", player, *options, "--rollout", "16", "--out", str(out)]) != 0
    assert message in capsys.readouterr().err and not out.exists()


@pytest.mark.slow
def test_smax_critic_sees_the_world() -> None:
    """What the critic is shown of a battle is JaxMARL's own state of the world, for all seats."""
    pytest.importorskip("jaxmarl")
    game = make_game("smax:3m")
    learner = team(game, critic_input="global")
    played = play(learner, game)
    global_state = np.asarray(played.seen.global_state)
    assert global_state.shape[:3] == (STEPS, COPIES, 3)
    states = jax.tree.map(lambda x: x[3, 1], played.trajectory.state)
    expected = game.global_state(states)
    for seat in range(3):
        np.testing.assert_array_equal(global_state[3, 1, seat], expected)


@pytest.mark.slow
@pytest.mark.parametrize("player", ["mappo", "hyper-mappo"])
def test_runs_train_resume_and_play(player: str, tmp_path: Path) -> None:
    small: dict[str, Any] = {"network.hidden": (6,), "epochs": 1}
    small |= {"hypernetwork.width": 6, "hypernetwork.units": 5} if player == "hyper-mappo" else {}
    run = {"copies": 8, "rollout": 8, "block": 1, "episodes": 8, "evaluate_every": 64}
    summary = coplay.train(
        player, "identity", out=tmp_path / "a", steps=128, **run, **small, pictures=False
    )
    assert summary["steps"] == 128
    rows = (tmp_path / "a" / "evaluations.jsonl").read_text().splitlines()
    assert len(rows) == 3  # before learning, after 64 and after 128 steps
    match = coplay.play(make_game("identity"), ",".join([str(tmp_path / "a")] * 4), 8)
    assert match["episodes"] == 8


def test_game_of_the_tests_has_what_is_tested() -> None:
    assert GAME.view_is_global and not make_game("identity").view_is_global
