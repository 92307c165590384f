"""Advantage Alignment: its advantages against plain loops, and reciprocity in the dilemma."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.algorithms.advantage_alignment.config import AdvantageAlignmentConfig
from coplay.algorithms.advantage_alignment.learner import AdvantageAlignment, aligned
from coplay.core.config import with_fields
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.trajectory import Trajectory
from coplay.games.matrix import matrix_parts
from coplay.matches.rollout import new_table, rollout
from coplay.nn.networks import read, view_shape
from coplay.training.players import make_player
from coplay.training.records import read_rows

STEPS, COPIES, SEATS = 9, 4, 3


def slow_alignment(
    advantage: np.ndarray,
    one_step: np.ndarray,
    alive: np.ndarray,
    first: np.ndarray,
    weight: float,
    discount: float,
) -> np.ndarray:
    """[time, copy, seat] sums over earlier steps of the episode and over others, one by one."""
    found = np.zeros_like(advantage)
    for t, copy, seat in np.ndindex(advantage.shape):
        if not alive[t, copy, seat]:
            continue
        begin = max([k for k in range(t + 1) if first[k, copy, seat]], default=0)
        past = sum(
            discount ** (t - k) * one_step[k, copy, seat]
            for k in range(begin, t)
            if alive[k, copy, seat]
        )
        for other in range(advantage.shape[2]):
            if other != seat and alive[t, copy, other]:
                found[t, copy, seat] += weight * past * advantage[t, copy, other]
        found[t, copy, seat] += advantage[t, copy, seat]
    return found


def test_advantages_are_those_of_plain_loops() -> None:
    rng = np.random.default_rng(0)
    shape = (STEPS, COPIES, SEATS)
    advantage, one_step = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
    alive = rng.random(advantage.shape) < 0.8
    first = np.repeat(rng.random((STEPS, COPIES, 1)) < 0.3, SEATS, axis=-1)
    assert (~alive).any() and first.any()
    given = (advantage, one_step, alive, first)
    found = jax.jit(aligned, static_argnums=(4, 5))(*given, 0.7, 0.9)
    expected = slow_alignment(*given, 0.7, 0.9)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    arrays = [jnp.asarray(x) for x in given]
    plain = aligned(arrays[0], arrays[1], arrays[2], arrays[3], 0.0, 0.9)
    np.testing.assert_allclose(plain, np.where(alive, advantage, 0.0))


def learner(**fields: Any) -> AdvantageAlignment:
    small = {"network.hidden": (4,), "minibatches": 1, "epochs": 1}
    config = with_fields(AdvantageAlignmentConfig(), small | fields)
    seats = (0, 1)
    return AdvantageAlignment(config, view_shape(DILEMMA), 2, seats, seats)


KIND, MAKE = matrix_parts("prisoners-dilemma")
DILEMMA = MAKE(KIND(rounds=5))


def played(made: AdvantageAlignment) -> tuple[Any, Trajectory]:
    @jax.jit
    def play(key: jax.Array) -> tuple[Any, Trajectory]:
        state = made.init(key, jnp.arange(2))
        groups = (made.group(state),)
        table = new_table(DILEMMA, groups, key, COPIES)
        return state, rollout(DILEMMA, groups, table, key, STEPS, jnp.arange(2))[1]

    return play(jax.random.key(1))


def steps_alone(made: AdvantageAlignment, state: Any, trajectory: Trajectory) -> np.ndarray:
    """[time, copy, seat] advantages of single steps: those of GAE with lambda 0."""
    alone = dataclasses.replace(made, config=dataclasses.replace(made.config, gae_lambda=0.0))
    _, batch = alone.prepare(state, alone.training_data(DILEMMA, trajectory))
    raw = np.asarray(batch.target - batch.value)
    return np.moveaxis(raw, 0, -2).reshape(COPIES, STEPS, 2).swapaxes(0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("parameters", ["shared", "separate", "shared+id"])
def test_a_seat_learns_from_its_own_advantages(parameters: str) -> None:
    """Each seat by its own critic; what the others' rewards change is their part of A* alone, and
    without weight it is PPO."""
    made = learner(parameters=parameters, discount=0.9)
    state, trajectory = played(made)
    _, batch = made.prepare(state, made.training_data(DILEMMA, trajectory))
    plain = learner(parameters=parameters, discount=0.9, alignment_weight=0.0)
    _, before = plain.prepare(state, plain.training_data(DILEMMA, trajectory))
    sets = 2 if parameters == "separate" else 1
    assert batch.advantage.shape == (sets, COPIES, STEPS, 2 // sets)
    np.testing.assert_array_equal(batch.target, before.target)
    # As arrays [time, copy, seat]: the values that targets were made with.
    raw = np.asarray(before.target - before.value)
    raw = np.moveaxis(raw, 0, -2).reshape(COPIES, STEPS, 2).swapaxes(0, 1)
    assert trajectory.past is not None
    first = np.asarray(trajectory.past.first)
    found = np.moveaxis(np.asarray(batch.advantage), 0, -2).reshape(COPIES, STEPS, 2)
    found = found.swapaxes(0, 1)
    if parameters == "separate":  # every set judges the others by its own critic
        assert np.abs(found).max() > 0
        return
    one_step = steps_alone(made, state, trajectory)
    raw, one_step = ((x - x.mean()) / x.std() for x in (raw, one_step))
    expected = slow_alignment(raw, one_step, np.ones(raw.shape, bool), first, 1.0, 0.9)
    expected = (expected - expected.mean()) / expected.std()
    np.testing.assert_allclose(found, expected, atol=2e-3)


def cooperation(run: Path) -> np.ndarray:
    """[own last, other's last] probability of cooperating in the game with a chance to go on."""
    game = coplay.make_game("matrix:prisoners-dilemma", **ENDLESS)
    player: Any = make_player(str(run), game)
    found = np.zeros((2, 2))
    for last in np.ndindex(2, 2):
        state = game.reset(jax.random.key(0))
        state = state._replace(last=jnp.array(last, jnp.int8), time=jnp.int16(5))
        seen = jax.tree.map(lambda x: x[:1], game.observe(state))
        logits = player.actor(read(player.actor, seen, player.identity))
        found[last] = jax.nn.softmax(logits)[0, 0]
    return found


ENDLESS: Any = {"continuation": 0.96, "rounds": 200}


@pytest.mark.slow
def test_it_cooperates_with_who_cooperates_where_ppo_defects(tmp_path: Path) -> None:
    """As the paper reports for the iterated prisoner's dilemma, though less sharply: what it does
    hangs on what the other did, and both cooperate."""
    fields: Any = {"steps": 300_000, "copies": 128, "network.hidden": (16,), "episodes": 128}
    shares, found = {}, {}
    for player in ("advantage-alignment", "ppo"):
        out = tmp_path / player
        own: Any = (
            {} if player != "ppo" else {"discount": 0.96, "rollout": 128, "parameters": "shared"}
        )
        coplay.train(
            player, "matrix:prisoners-dilemma", out, game_fields=ENDLESS, quiet=True,
            pictures=False, **fields, **own,
        )  # fmt: skip
        shares[player] = read_rows(out / "metrics.jsonl")[-1]["action_cooperate/seat_0"]
        found[player] = cooperation(out)
    assert shares["advantage-alignment"] > 0.9 and shares["ppo"] < 0.1
    kind, unkind = found["advantage-alignment"].T
    assert (kind > 0.95).all() and (unkind < kind - 0.2).all()
    assert (found["ppo"] < 0.1).all()


class Alone(Game):
    """Has a single seat."""

    name = "alone"
    action_names = ("wait",)

    @property
    def seats(self) -> int:
        return 1


def test_it_needs_somebody_to_shape() -> None:
    with pytest.raises(UserError, match="two seats"):
        learner().check(Alone())
