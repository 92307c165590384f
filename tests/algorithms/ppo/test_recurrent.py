"""Recurrent PPO: memory and gradients against plain loops, and a task that needs a memory."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.algorithms.ppo.config import RecurrentPPOConfig
from coplay.algorithms.ppo.learner import PPOState
from coplay.algorithms.ppo.recurrent import (
    GRUMemory,
    GRUPlayer,
    RecurrentPPO,
    inputs,
    unrolled,
)
from coplay.core.config import with_fields
from coplay.core.game import Game, Observation, Outcome
from coplay.core.player import View
from coplay.core.trajectory import Trajectory
from coplay.games.registry import register_game
from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.matches.rollout import Table, new_table, rollout, seat_views
from coplay.nn import categorical
from coplay.nn.networks import ViewShape, view_shape
from coplay.nn.recurrent import GRUNetwork
from coplay.rl.parameter_sets import by_seat
from coplay.training.block import TrainState, enter_phase
from coplay.training.phases import Phase
from coplay.training.run import RunFolder

pytestmark = pytest.mark.slow

GAME = StagHunt(StagHuntConfig(height=3, width=3, players=3, stags=1, hares=2, horizon=4))
STEPS, COPIES, SEATS, UNITS = 6, 4, 3, 5
SMALL: dict[str, Any] = {
    "network.hidden": (6,),
    "memory.units": UNITS,
    "minibatches": 1,
    "epochs": 1,
}


def learner(active: tuple[int, ...] = (0, 1, 2), **fields: Any) -> RecurrentPPO:
    config = with_fields(RecurrentPPOConfig(), SMALL | fields)
    return RecurrentPPO(config, view_shape(GAME), SEATS, (0, 1, 2), active)


def wide(state: PPOState, seed: int = 0) -> PPOState:
    """Parameters large enough for every part of the networks to matter."""
    rng = np.random.default_rng(seed)

    def larger(x: jax.Array) -> jax.Array:
        return jnp.asarray(x + 0.5 * rng.normal(size=x.shape), jnp.float32)

    return state._replace(
        actor=jax.tree.map(larger, state.actor), critic=jax.tree.map(larger, state.critic)
    )


class Played(NamedTuple):
    """Two rollouts, one after the other, as the learner gets them."""

    state: PPOState
    tables: list[Table]
    parts: list[Trajectory]


@cache
def played(keep: bool, parameters: str = "separate", kind: str = "gru") -> Played:
    mine = learner(**{"memory.keep": keep, "memory.kind": kind}, parameters=parameters)
    state = wide(jax.jit(mine.init)(jax.random.key(0), jnp.arange(SEATS)))

    groups = (mine.group(state),)
    play = jax.jit(
        lambda groups, table, key: rollout(GAME, groups, table, key, STEPS, jnp.arange(SEATS))
    )
    table = jax.jit(lambda groups, key: new_table(GAME, groups, key, COPIES))(
        groups, jax.random.key(5)
    )
    tables, parts = [table], []
    for number in range(2):
        table, trajectory = play(groups, table, jax.random.key(number))
        tables.append(table)
        parts.append(mine.training_data(GAME, trajectory))
    return Played(state, tables, parts)


def test_a_valued_player_tells_what_its_critic_says_of_all_it_saw() -> None:
    """Over the steps of an episode; it acts as the player that tells nothing."""
    mine, state = learner(), played(True).state
    plain = mine.player(state, 1)
    told = mine.valued(plain, state, 1)
    assert isinstance(told, GRUPlayer)
    table = played(True).tables[0]
    seen = jax.vmap(GAME.observe)(table.state)
    view = jax.tree.map(lambda x: x[1], seat_views(GAME, table.state, seen, table))
    critic = jax.tree.map(lambda x: np.asarray(x[1]), state.critic)
    memories, hidden = [player.start(COPIES) for player in (plain, told)], np.zeros(UNITS)
    for time in range(3):
        view = view._replace(time=jnp.full(COPIES, time), last_reward=jnp.full(COPIES, 1.0 * time))
        expected, memories[0] = plain.act(GAME, jax.random.key(0), view, memories[0])
        logits, memories[1], insight = told.explain(GAME, jax.random.key(0), view, memories[1])
        np.testing.assert_array_equal(logits, expected)
        x = inputs(
            view.observation,
            told.identity,
            view.time == 0,
            view.last_action,
            view.last_reward,
            True,
        )
        value, hidden = slow_step(critic, np.asarray(x)[0], hidden)
        assert insight is not None and insight.value is not None
        np.testing.assert_allclose(insight.value[0], value[0], atol=1e-5)


# --- the network ----------------------------------------------------------------------------------


def slow_step(network: GRUNetwork, x: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One step of one network for one vector, in NumPy."""
    for layer in network.encoder.layers:
        x = np.tanh(layer.weight @ x + layer.bias)
    a = (network.encoder.head.weight @ x + network.encoder.head.bias).reshape(3, UNITS)
    u = network.recurrent.weight.reshape(3, UNITS, UNITS) @ h
    u = u + network.recurrent.bias.reshape(3, UNITS)
    r, z = (1 / (1 + np.exp(-(a[i] + u[i]))) for i in (0, 1))
    n = np.tanh(a[2] + r * u[2])
    h = (1 - z) * n + z * h
    return network.head.weight @ h + network.head.bias, h  # type: ignore[return-value]


def slow_inputs(part: Trajectory, time: int, copy: int, seat: int, keep: bool) -> np.ndarray:
    view, past = part.observation, part.past
    assert past is not None
    begins = bool(past.first[time, copy, seat])
    known = keep or not begins
    action = np.zeros(7)
    if known and past.action[time, copy, seat] >= 0:
        action[past.action[time, copy, seat]] = 1
    reward = past.reward[time, copy, seat] if known else 0.0
    row = (time, copy, seat)
    return np.concatenate(
        [view.planes[row].reshape(-1), view.features[row], action, [reward, begins]]
    )


@pytest.mark.parametrize("keep", [True, False])
def test_acting_is_what_plain_loops_compute(keep: bool) -> None:
    """Memory over steps, episodes and rollouts; also what the table holds at the end."""
    state, tables, parts = jax.tree.map(np.asarray, played(keep))
    kept = 0
    for seat in range(SEATS):
        actor, critic = (
            jax.tree.map(lambda x, seat=seat: x[seat], net) for net in (state.actor, state.critic)
        )
        for copy in range(COPIES):
            memories = [np.zeros(UNITS), np.zeros(UNITS)]
            for part in parts:
                for time in range(STEPS):
                    row = (time, copy, seat)
                    if part.past.first[row] and not keep:
                        memories = [np.zeros(UNITS), np.zeros(UNITS)]
                    if not part.alive[row]:
                        continue
                    kept += bool(part.past.first[row] and np.any(memories[0]))
                    x = slow_inputs(part, *row, keep)
                    logits, memories[0] = slow_step(actor, x, memories[0])
                    _, memories[1] = slow_step(critic, x, memories[1])
                    logits = np.where(part.observation.legal[row], logits, -1e30)
                    expected = logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
                    legal = part.observation.legal[row]
                    np.testing.assert_allclose(
                        part.log_policy[row][legal], expected[legal], atol=1e-4
                    )
            for mine, table in zip(memories, tables[-1].memory[0], strict=True):
                np.testing.assert_allclose(table[seat, copy], mine, atol=1e-4)
    assert (kept > 0) == keep


def test_past_is_what_was_done_and_got_while_in_the_game() -> None:
    _, tables, parts = jax.tree.map(np.asarray, played(True))
    action, reward = np.full((COPIES, SEATS), -1), np.zeros((COPIES, SEATS))
    first = np.ones(COPIES, bool)
    for part in parts:
        for time in range(STEPS):
            np.testing.assert_array_equal(part.past.action[time], action)
            np.testing.assert_array_equal(part.past.reward[time], reward)
            np.testing.assert_array_equal(part.past.first[time], first[:, None] | [[False] * SEATS])
            action = np.where(part.alive[time], part.action[time], action)
            reward = np.where(part.alive[time], part.reward[time], reward)
            first = part.over[time]
    assert np.any(reward != 0)
    np.testing.assert_array_equal(tables[-1].last_action, action)
    np.testing.assert_array_equal(tables[-1].last_reward, reward)


# --- learning -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keep", "parameters", "kind"),
    [(True, "separate", "gru"), (False, "shared", "gru"), (True, "shared", "lstm")],
)
def test_the_update_sees_what_acting_saw(keep: bool, parameters: str, kind: str) -> None:
    """Importance ratios are 1 before the first step, and a rollout's last values are the first of
    the next one: the critic's memory is carried on as the actor's is."""
    length = 4 if kind == "lstm" else 0
    fields = {"memory.keep": keep, "memory.kind": kind, "memory.sequence_length": length}
    mine = learner(**fields, parameters=parameters)
    state, _, parts = played(keep, parameters, kind)

    @jax.jit
    def evaluate(state: PPOState, part: Trajectory) -> tuple:
        learning, batch = mine.prepare(state, part)
        logits, _ = jax.vmap(mine.outputs)((learning.actor, learning.critic), batch)
        new = categorical.log_policy(logits, batch.legal)
        by_set = by_seat(part) if mine.separate else jax.tree.map(lambda x: x[None], part)
        identity = jnp.zeros((*by_set.alive.shape[::3], 0))
        last = jax.vmap(mine.values)(learning, by_set, identity)[4]
        return batch, jnp.exp(new - batch.log_policy), last

    early, late = (jax.tree.map(np.asarray, evaluate(state, part)) for part in parts)
    for batch, ratio, _ in (early, late):
        rows = batch.alive[..., None] & batch.legal
        np.testing.assert_allclose(ratio[rows], 1.0, atol=1e-5)
    going = ~np.asarray(parts[0].over[-1])[:, None] & late[0].alive[:, :, 0]
    assert going.any()
    np.testing.assert_allclose(early[2][going], late[0].value[:, :, 0][going], atol=1e-5)


def test_sequences_cut_gradients_and_nothing_else() -> None:
    shape, key = ViewShape((0, 0, 0), 2, 3), jax.random.key(0)
    options: Any = {"hidden": (4,), "channels": (), "activation": "tanh", "head_scale": 1.0}
    network = GRUNetwork(shape, 3, UNITS, key=key, kind="lstm", **options)
    view, memory = jax.random.normal(key, (1, 6, 1, 2)), jnp.ones((1, 1, 2 * UNITS))
    cleared, alive = jnp.zeros((1, 6, 1), bool), jnp.ones((1, 6, 1), bool)

    def late(view: jax.Array, length: int) -> jax.Array:
        """Of the last two steps."""
        outputs = unrolled(network, view, memory, cleared, alive, length)
        return jnp.sum(jnp.square(outputs[:, 4:]))

    both = jax.jit(lambda view: [jax.value_and_grad(late)(view, length) for length in (0, 2)])
    (whole, slope), (cut, shorter) = jax.tree.map(np.asarray, both(view))
    np.testing.assert_allclose(whole, cut, rtol=1e-5)
    np.testing.assert_allclose(slope[:, 4:], shorter[:, 4:], rtol=1e-4)
    assert np.abs(slope[:, :4]).min() > 0 and not shorter[:, :4].any()


@pytest.mark.parametrize("keep", [True, False])
def test_gradients_are_those_of_an_unrolled_computation(keep: bool) -> None:
    """Against JAX's derivative of plain loops over copies, steps and seats."""
    mine = learner((0, 2), **{"memory.keep": keep}, parameters="shared", entropy_weight=0.1)
    state, _, parts = played(keep, "shared")
    rng = np.random.default_rng(1)
    # Only two of the seats learn; their memories before the rollout are what they happen to be.
    index = np.array([0, 2])
    everyone = parts[1]._replace(over=None, last=None, memory=None)
    memory = GRUMemory(*(jnp.asarray(rng.normal(size=(COPIES, 2, UNITS)), "f4") for _ in "ab"))
    part = jax.tree.map(lambda x: x[:, :, index], everyone)._replace(
        over=parts[1].over,
        last=jax.tree.map(lambda x: x[:, index], parts[1].last),
        memory=memory,
    )
    learning, batch = jax.jit(mine.prepare)(state, part)
    learning, batch = jax.tree.map(lambda x: x[0], (learning, batch))
    (actor, critic), _ = jax.jit(mine.gradients)(learning, batch)

    def step(network: GRUNetwork, x: jax.Array, h: jax.Array) -> tuple[jax.Array, jax.Array]:
        for layer in network.encoder.layers:
            x = jnp.tanh(layer.weight @ x + layer.bias)
        a = (network.encoder.head.weight @ x + network.encoder.head.bias).reshape(3, UNITS)
        u = (network.recurrent.weight @ h + network.recurrent.bias).reshape(3, UNITS)
        r, z = jax.nn.sigmoid(a[:2] + u[:2])
        h = (1 - z) * jnp.tanh(a[2] + r * u[2]) + z * h
        return network.head.weight @ h + network.head.bias, h

    plain = jax.tree.map(np.asarray, part)
    held = jax.tree.map(np.asarray, batch)

    def loss(networks: tuple[GRUNetwork, GRUNetwork]) -> jax.Array:
        total, count = jnp.float32(0), 0
        for copy in range(COPIES):
            for seat in range(2):
                h = [memory.actor[copy, seat], memory.critic[copy, seat]]
                for time in range(STEPS):
                    row, other = (time, copy, seat), (copy, time, seat)
                    if plain.past.first[row] and not keep:
                        h = [jnp.zeros(UNITS), jnp.zeros(UNITS)]
                    if not plain.alive[row]:
                        continue
                    x = jnp.asarray(slow_inputs(plain, *row, keep), jnp.float32)
                    logits, h[0] = step(networks[0], x, h[0])
                    value, h[1] = step(networks[1], x, h[1])
                    legal = plain.observation.legal[row]
                    logs = jax.nn.log_softmax(jnp.where(legal, logits, -1e30))
                    old = plain.log_policy[row][plain.action[row]]
                    ratio = jnp.exp(logs[plain.action[row]] - old)
                    gain = held.advantage[other]
                    policy = -jnp.minimum(ratio * gain, jnp.clip(ratio, 0.8, 1.2) * gain)
                    entropy = -jnp.sum(jnp.where(legal, jnp.exp(logs) * logs, 0.0))
                    error = 0.5 * (value[0] - held.target[other]) ** 2
                    total = total + policy - 0.1 * entropy + 0.5 * error
                    count += 1
        return total / count

    networks = (learning.actor, learning.critic)
    expected = jax.grad(loss)(networks)
    for mine_leaf, other_leaf in zip(
        jax.tree.leaves((actor, critic)), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(mine_leaf, other_leaf, rtol=1e-3, atol=1e-5)
    assert np.abs(actor.recurrent.weight).max() > 1e-4


def test_a_player_that_learns_no_more_acts_alike() -> None:
    """The frozen player has no critic; with memory.keep it goes on from episode to episode."""
    mine = learner()
    state, tables, _ = played(True)
    frozen = mine.player(state, 1)
    assert isinstance(frozen, GRUPlayer) and frozen.critic is None
    table = tables[1]
    seen = jax.vmap(GAME.observe)(table.state)
    alive = jax.vmap(GAME.alive)(table.state)
    view = View(
        observation=jax.tree.map(lambda x: x[:, 1], seen),
        alive=alive[:, 1],
        state=None,
        time=table.time,
        episode=table.episode,
        last_action=table.last_action[:, 1],
        last_reward=table.last_reward[:, 1],
    )
    learning = jax.tree.map(lambda x: x[1], mine.group(state).player)
    memory = jax.tree.map(lambda x: x[1], table.memory[0])
    act = eqx.filter_jit(lambda player, memory: player.act(GAME, jax.random.key(0), view, memory))
    one, _ = act(learning, memory)
    other, _ = act(frozen, GRUMemory(memory.actor, ()))
    np.testing.assert_allclose(one, other, atol=1e-6)


# --- memory when players change -------------------------------------------------------------------


def test_players_that_stay_remember_when_others_change() -> None:
    state, tables, _ = played(True)
    mine = learner()
    before = Phase(0, ("ppo-gru",) * 3, (mine,), ())
    two = mine.seated((0, 2))
    other = learner((1,), **{"optimiser.learning_rate": 3e-4})
    after = Phase(
        1, ("ppo-gru", "ppo-gru:optimiser.learning_rate=3e-4", "ppo-gru"), (two, other), ()
    )
    train = TrainState((state, state), tables[1])
    entered = enter_phase(
        replace(before, learners=(mine, other.seated(()))), after, train, COPIES
    ).table
    old = tables[1].memory[0]
    for name in ("actor", "critic"):
        kept, new = (getattr(entered.memory[group], name) for group in (0, 1))
        np.testing.assert_array_equal(kept, getattr(old, name)[np.array([0, 2])])
        assert np.abs(kept).max() > 0 and not new.any()
    np.testing.assert_array_equal(entered.last_action[:, [0, 2]], tables[1].last_action[:, [0, 2]])
    assert (np.asarray(entered.last_action[:, 1]) == -1).all()
    assert not np.asarray(entered.last_reward[:, 1]).any()


# --- a task for a memory --------------------------------------------------------------------------


@dataclass(frozen=True)
class CueConfig:
    """The right action is shown in the first step of an episode and rewarded in the last."""

    horizon: int = 3
    """Steps of an episode."""


class CueState(NamedTuple):
    cue: jax.Array
    time: jax.Array


class Cue(Game):
    config: CueConfig = eqx.field(static=True)
    name = "cue"
    action_names = ("left", "right")

    @property
    def seats(self) -> int:
        return 1

    def reset(self, key: Any) -> CueState:
        return CueState(jax.random.randint(key, (1,), 0, 2), jnp.int32(0))

    def step(self, key: Any, state: CueState, actions: Any) -> tuple[CueState, Outcome]:
        time = state.time + 1
        last = time >= self.config.horizon
        reward = (last & (actions == state.cue)).astype(jnp.float32)
        return CueState(state.cue, time), Outcome(reward, last[None], jnp.bool_(False))

    def observe(self, state: CueState) -> Observation:
        shown = (state.cue[:, None] == jnp.arange(2)) & (state.time == 0)
        return Observation(
            jnp.zeros((1, 0, 0, 0), bool), shown.astype(jnp.float32), jnp.ones((1, 2), bool)
        )

    def alive(self, state: CueState) -> Any:
        return (state.time < self.config.horizon)[None]

    def permute_seats(self, state: CueState, order: Any) -> CueState:
        return state


CUE = {
    "copies": 32,
    "rollout": 12,
    "network.hidden": (16,),
    "minibatches": 4,
    "optimiser.learning_rate": 5e-3,
}


@pytest.mark.parametrize(("player", "fields"), [("ppo-gru", {"memory.units": 16}), ("ppo", {})])
def test_a_memory_task(tmp_path: Path, player: str, fields: dict[str, Any]) -> None:
    register_game(CueConfig, Cue)
    out = tmp_path / "run"
    summary = coplay.train(
        player, "cue", out, steps=20_000, episodes=500, **CUE, **fields, pictures=False
    )
    got = summary["team_mean"]
    assert got > 0.95 if player == "ppo-gru" else 0.4 < got < 0.6


def test_a_resumed_run_ends_where_a_straight_one_ends(tmp_path: Path) -> None:
    register_game(CueConfig, Cue)
    fields = {**CUE, "rollout": 4, "memory.units": 8, "episodes": 20, "block": 1}
    coplay.train("ppo-gru", "cue", tmp_path / "straight", steps=1024, **fields, pictures=False)
    coplay.train("ppo-gru", "cue", tmp_path / "cut", steps=512, **fields, pictures=False)
    coplay.train("ppo-gru", "cue", tmp_path / "cut", steps=1024, resume=True, pictures=False)
    straight, cut = (
        RunFolder(tmp_path / name).checkpoints().all()[-1] for name in ("straight", "cut")
    )
    with np.load(straight) as one, np.load(cut) as other:
        names = [name for name in one.files if name != "note.json"]
        assert any("memory" in name for name in names)
        for name in names:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)
