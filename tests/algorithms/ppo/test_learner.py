"""PPO against an update written out in NumPy: samples by loops, backpropagation, clipping, Adam."""

import itertools
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.algorithms.ppo.config import PPOConfig
from coplay.algorithms.ppo.learner import PPO, PPOState
from coplay.core.config import with_fields
from coplay.core.game import Observation
from coplay.core.player import View
from coplay.core.trajectory import Trajectory, of_seats
from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.matches.rollout import Table, new_table, rollout
from coplay.nn import categorical
from coplay.nn.networks import view_shape
from tests.algorithms.ppo.reference import Slow, flat, forward, learn_from, net, samples_of

GAME = StagHunt(StagHuntConfig(height=3, width=3, players=3, stags=1, hares=2, horizon=4))
SHAPE = view_shape(GAME)
STEPS, COPIES, SEATS, ACTIONS = 6, 8, 3, 7
RATE = 1e-3
SMALL = {
    "network.hidden": (8,),
    "minibatches": 1,
    "optimiser": {"learning_rate": RATE, "max_grad_norm": 0.3},
}
LINEAR = {"optimiser.schedule": "linear"}
EVERYBODY = (0, 1, 2)


def small(**fields: Any) -> PPOConfig:
    return with_fields(with_fields(PPOConfig(), SMALL), fields)


@cache
def updater(learner: PPO) -> Any:
    return jax.jit(learner.update)


def update(
    learner: PPO, state: PPOState, trajectory: Trajectory, progress: float = 0.0, seed: int = 0
) -> tuple[PPOState, dict[str, np.ndarray]]:
    """One compiled update from what all seats played, in NumPy."""
    part = of_seats(trajectory, learner.active)
    result = updater(learner)(jax.random.key(seed), state, part, np.float32(progress))
    return jax.tree.map(np.asarray, result)


# Parameter sets in an order of their own, and seat 0 does not learn.
SEPARATE = PPO(small(epochs=1, **LINEAR), SHAPE, SEATS, (2, 0, 1), (1, 2))
HALVES = PPO(small(epochs=1, minibatches=2, **LINEAR), SHAPE, SEATS, EVERYBODY, EVERYBODY)
WITH_ID = PPO(small(epochs=2, parameters="shared+id"), SHAPE, SEATS, EVERYBODY, EVERYBODY)
SHARED = PPO(small(parameters="shared"), SHAPE, SEATS, EVERYBODY, EVERYBODY)


def filled(learner: PPO, seed: int = 0) -> PPOState:
    """Random networks (fresh biases would be zero) and fresh optimisers."""
    rng = np.random.default_rng(seed)
    shapes = eqx.filter_eval_shape(learner.init, jax.random.key(0), np.arange(learner.game_seats))
    networks = jax.tree.map(
        lambda x: (0.4 * rng.normal(size=x.shape)).astype(np.float32), shapes[:2]
    )
    optimisers = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes[2:4])
    sets, seats, ids = shapes.identity.shape
    return PPOState(*networks, *optimisers, jnp.tile(jnp.eye(seats, ids), (sets, 1, 1)))  # type: ignore[call-arg]


def views(rng: np.random.Generator, *lead: int) -> Observation:
    legal = rng.random((*lead, ACTIONS)) < 0.6
    legal[..., 2] |= ~legal.any(-1)
    return Observation(
        planes=rng.random((*lead, *SHAPE.planes)) < 0.4,
        features=rng.normal(size=(*lead, SHAPE.features)).astype(np.float32),
        legal=legal,
    )


@cache
def made_up(seed: int = 0) -> Trajectory:
    """Seats that leave, episodes that are cut, and new ones after them; all in NumPy."""
    rng = np.random.default_rng(seed)
    shape = (STEPS, COPIES, SEATS)
    alive, terminated, truncated = (np.zeros(shape, bool) for _ in range(3))
    over = np.zeros(shape[:2], bool)
    for copy in range(COPIES):
        here = np.ones(SEATS, bool)
        for time in range(STEPS):
            alive[time, copy] = here
            terminated[time, copy] = here & (rng.random(SEATS) < 0.2)
            here = here & ~terminated[time, copy]
            if here.any() and rng.random() < 0.15:
                truncated[time, copy] = here
                here = np.zeros(SEATS, bool)
            if not here.any():
                over[time, copy] = True
                here = np.ones(SEATS, bool)
    observation = views(rng, *shape)
    old = rng.normal(scale=0.8, size=(*shape, ACTIONS)).astype(np.float32)
    old = np.where(observation.legal, old, -1e9)
    scores = rng.random((*shape, ACTIONS)) * observation.legal
    return Trajectory(
        observation=observation,
        alive=alive,
        action=scores.argmax(-1).astype(np.int32),
        log_policy=(old - np.log(np.exp(old).sum(-1, keepdims=True))).astype(np.float32),
        reward=np.where(alive, rng.normal(size=shape), 0.0).astype(np.float32),
        terminated=terminated,
        truncated=truncated,
        over=over,
        final=views(rng, *shape),
        last=views(rng, COPIES, SEATS),
        episode_reward=np.zeros(shape, np.float32),
        episode_steps=np.zeros(shape, np.int32),
    )


def test_the_made_up_episodes_show_everything() -> None:
    trajectory = made_up()
    ended = trajectory.terminated | trajectory.truncated
    for seat in range(SEATS):
        assert trajectory.terminated[..., seat].any() and trajectory.truncated[..., seat].any()
        assert not trajectory.alive[..., seat].all()
        assert ended[:-1, :, seat][trajectory.alive[1:, :, seat]].any()
        assert (trajectory.alive[-1, :, seat] & ~ended[-1, :, seat]).any()


def assert_close(state: PPOState, row: int, slow: Slow, before: PPOState) -> None:
    """Parameters and moments of one set."""
    for name in ("actor", "critic"):
        new, old = net(getattr(state, name), row), net(getattr(before, name), row)
        expected, adam = getattr(slow, name), getattr(slow, f"{name}_adam")
        moments = getattr(state, f"{name}_optimiser")[1]
        first, second = net(moments.mu, row), net(moments.nu, row)
        assert int(moments.count[row]) == adam.count
        for part in range(4):
            np.testing.assert_allclose(first[part], adam.first[part], rtol=1e-3, atol=3e-7)
            np.testing.assert_allclose(second[part], adam.second[part], rtol=1e-3, atol=1e-9)
            moved, should = new[part] - old[part], expected[part] - old[part]
            np.testing.assert_allclose(moved, should, rtol=1e-2, atol=0.02 * RATE)
            assert np.abs(moved).max() > 0.1 * RATE


def identities_of(learner: PPO) -> np.ndarray:
    return np.eye(SEATS, SEATS if learner.config.parameters == "shared+id" else 0)


@pytest.mark.parametrize("learner", [SEPARATE, WITH_ID])
def test_updates_are_the_ones_written_out(learner: PPO) -> None:
    """Two updates in a row, so that the moments of Adam must be kept."""
    start = state = filled(learner)
    separate = learner.config.parameters == "separate"
    # Which parameter set (row) learns from which seats.
    sets = {0: learner.active}
    if separate:
        sets = {learner.seats.index(seat): (seat,) for seat in learner.active}
    slow = {
        row: Slow(net(start.actor, row), net(start.critic, row), learner.config) for row in sets
    }
    for number in (0, 1):
        trajectory = made_up(number)
        state, metrics = update(learner, state, trajectory)
        expected: dict[str, list[float]] = {}
        for row, seats in sets.items():
            mine = slow[row].update(trajectory, seats, identities_of(learner), RATE)
            for name, values in mine.items():
                expected.setdefault(name, []).extend(values)
        assert set(metrics) == set(expected)
        for name, values in expected.items():
            assert metrics[name].shape == (len(learner.active),)
            np.testing.assert_allclose(metrics[name], values, rtol=2e-3, atol=2e-4, err_msg=name)
    assert max(expected["clip_fraction"]) > 0.1 and max(expected["gradient_norm"]) > 0.6
    for row in sets:
        assert_close(state, row, slow[row], start)
    for row in set(range(len(start.actor.head.bias))) - set(sets):
        for old, new in zip(jax.tree.leaves(start), jax.tree.leaves(state), strict=True):
            assert (old[row] == new[row]).all(), "a seat that is not active keeps its parameters"


@pytest.mark.slow
def test_minibatches_share_the_copies_out() -> None:
    """At the end of a linear schedule parameters stand still, but the moments of Adam tell which
    copies the two minibatches were made of: one of the ways to halve them, nothing else."""
    config, start, trajectory = HALVES.config, filled(HALVES), made_up()
    seen = set()
    for seed in range(3):
        state, _ = update(HALVES, start, trajectory, progress=1.0, seed=seed)
        for old, new in zip(jax.tree.leaves(start[:2]), jax.tree.leaves(state[:2]), strict=True):
            assert (old == new).all()
        for row in range(SEATS):
            actor, critic = net(start.actor, row), net(start.critic, row)
            samples = samples_of(trajectory, (row,), np.zeros((SEATS, 0)), critic, config)
            learned = [(s.copy, learn_from(s, actor, critic, config)[0]) for s in samples]
            count = np.bincount([copy for copy, _ in learned], minlength=COPIES)
            # Sums over the samples of every copy, all weights in one row.
            total = np.zeros((COPIES, sum(part.size for part in actor)))
            for copy, gradient in learned:
                total[copy] += np.concatenate([part.reshape(-1) for part in gradient])
            moments = net(state.actor_optimiser[1].mu, row)
            mu = np.concatenate([part.reshape(-1) for part in moments])
            errors = {}
            for half in itertools.combinations(range(COPIES), COPIES // 2):
                expected = np.zeros_like(mu)
                for part in (list(half), [c for c in range(COPIES) if c not in half]):
                    mean = total[part].sum(0) / count[part].sum()
                    mean *= min(1.0, config.optimiser.max_grad_norm / np.sqrt((mean**2).sum()))
                    expected = 0.9 * expected + 0.1 * mean
                errors[half] = float(np.abs(expected - mu).max())
            best, second = sorted(errors, key=errors.__getitem__)[:2]
            assert errors[best] < 1e-6 and errors[second] > 1e-5
            seen.add(best)
    assert len(seen) > 1, "another key shuffles otherwise"


# --- what must not matter ------------------------------------------------------------------------


def same(one: Any, two: Any) -> bool:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def set_of(state: Any, row: int) -> Any:
    return jax.tree.map(lambda x: x[row], state)


def test_separate_seats_do_not_see_each_other_s_rewards() -> None:
    start, trajectory = filled(SEPARATE), made_up()
    state, metrics = update(SEPARATE, start, trajectory)
    reward = trajectory.reward.copy()
    reward[..., 1] = np.where(trajectory.alive[..., 1], reward[..., 1] * 3 + 1, 0.0)
    other, other_metrics = update(SEPARATE, start, trajectory._replace(reward=reward))
    mine, theirs = (SEPARATE.seats.index(seat) for seat in (1, 2))
    assert same(set_of(state, theirs), set_of(other, theirs))
    assert not same(set_of(start, theirs), set_of(other, theirs))
    assert all(metrics[name][1] == other_metrics[name][1] for name in metrics)
    assert not same(set_of(state, mine), set_of(other, mine))
    pooled = [
        update(WITH_ID, filled(WITH_ID), played)[0]
        for played in (trajectory, trajectory._replace(reward=reward))
    ]
    assert not same(*pooled)


@pytest.mark.parametrize("learner", [SEPARATE, WITH_ID])
def test_what_comes_after_leaving_does_not_matter(learner: PPO) -> None:
    start, trajectory = filled(learner), made_up()
    rng = np.random.default_rng(8)
    dead = ~trajectory.alive
    ended = dead | trajectory.terminated | trajectory.truncated

    def spoilt(values: np.ndarray, where: np.ndarray) -> np.ndarray:
        changed = values.copy()
        if values.dtype == bool:
            changed[where] = rng.random(values[where].shape) < 0.5
        elif values.dtype == np.int32:
            changed[where] = rng.integers(ACTIONS, size=values[where].shape)
        else:
            changed[where] = rng.normal(scale=1e6, size=values[where].shape)
        return changed

    changed = trajectory._replace(
        observation=jax.tree.map(lambda x: spoilt(x, dead), trajectory.observation),
        action=spoilt(trajectory.action, dead),
        log_policy=spoilt(trajectory.log_policy, dead),
        reward=spoilt(trajectory.reward, dead),
        final=jax.tree.map(lambda x: spoilt(x, ~trajectory.truncated), trajectory.final),
        last=jax.tree.map(lambda x: spoilt(x, ended[-1]), trajectory.last),
        episode_reward=spoilt(trajectory.episode_reward, ~dead | dead),
    )
    assert not same(changed, trajectory)
    assert same(update(learner, start, trajectory), update(learner, start, changed))


def test_a_linear_schedule_scales_the_step_and_a_constant_one_does_not() -> None:
    start, trajectory = filled(SEPARATE), made_up()
    full, half, none = (
        jax.tree.leaves(jax.tree.map(lambda new, old: new - old, state[:2], start[:2]))
        for state in (update(SEPARATE, start, trajectory, p)[0] for p in (0.0, 0.75, 1.0))
    )
    for whole, quarter, nothing in zip(full, half, none, strict=True):
        np.testing.assert_allclose(quarter, whole / 4, atol=1e-7)
        assert (nothing == 0).all() and np.abs(whole).max() > 0.5 * RATE
    constant = [update(WITH_ID, filled(WITH_ID), trajectory, p)[0] for p in (0.0, 0.75)]
    assert same(*constant)


# --- players -------------------------------------------------------------------------------------


def view_of(observation: Observation) -> View:
    return View(observation, *[None] * 6)


@jax.jit
def act(player: Any, observation: Observation) -> jax.Array:
    return player.act(GAME, jax.random.key(0), view_of(observation), ())[0]


def logits_of(player: Any, observation: Observation) -> np.ndarray:
    return np.asarray(act(player, observation))


@pytest.mark.parametrize("learner", [SEPARATE, SHARED, WITH_ID])
def test_players_act_by_the_network_of_their_seat(learner: PPO) -> None:
    state, seen = filled(learner), views(np.random.default_rng(1), COPIES)
    for seat in learner.seats:
        row = learner.seats.index(seat) if learner.config.parameters == "separate" else 0
        logits = logits_of(learner.player(state, seat), seen)
        greedy = logits_of(learner.player(state, seat, greedy=True), seen)
        policy = np.exp(categorical.log_policy(jnp.asarray(greedy), jnp.asarray(seen.legal)))
        for copy in range(COPIES):
            x = flat(seen, (copy,), identities_of(learner)[seat])
            expected = forward(net(state.actor, row), x)
            np.testing.assert_allclose(logits[copy], expected, atol=1e-5)
            best = max(np.flatnonzero(seen.legal[copy]), key=lambda a: expected[a])
            assert policy[copy].tolist() == [float(a == best) for a in range(ACTIONS)]
    unmasked = [int(np.argmax(logits[copy])) for copy in range(COPIES)]
    assert not all(seen.legal[copy, best] for copy, best in enumerate(unmasked))


@pytest.mark.parametrize("learner", [SEPARATE, SHARED, WITH_ID])
def test_a_valued_player_tells_what_the_critic_of_its_seat_says(learner: PPO) -> None:
    state, seen = filled(learner), views(np.random.default_rng(4), COPIES)
    for seat in learner.seats:
        row = learner.seats.index(seat) if learner.config.parameters == "separate" else 0
        plain = learner.player(state, seat)
        asked = learner.valued(plain, state, seat)
        logits, _, insight = asked.explain(GAME, jax.random.key(0), view_of(seen), ())
        np.testing.assert_array_equal(
            logits, plain.act(GAME, jax.random.key(0), view_of(seen), ())[0]
        )
        assert insight is not None and insight.value is not None
        for copy in range(COPIES):
            x = flat(seen, (copy,), identities_of(learner)[seat])
            expected = forward(net(state.critic, row), x)
            np.testing.assert_allclose(insight.value[copy], expected[0], atol=1e-5)
        assert plain.insight(GAME, view_of(seen), ()) is None


@pytest.mark.parametrize("learner", [SEPARATE, SHARED, WITH_ID])
def test_a_group_acts_like_the_players_of_its_seats(learner: PPO) -> None:
    state = filled(learner)
    group = learner.group(state)
    assert group.seats == learner.active
    each = views(np.random.default_rng(2), len(learner.active), COPIES)
    keys = jax.random.split(jax.random.key(0), len(learner.active))
    logits = jax.jit(lambda group, seen: group.act(GAME, keys, view_of(seen), ())[0])(group, each)
    for index, seat in enumerate(learner.active):
        mine = jax.tree.map(lambda x, index=index: x[index], each)
        expected = logits_of(learner.player(state, seat), mine)
        np.testing.assert_allclose(logits[index], expected, atol=1e-6)


def test_only_an_identity_tells_shared_seats_apart() -> None:
    seen = views(np.random.default_rng(3), COPIES)
    for learner, differ in ((SHARED, False), (WITH_ID, True), (SEPARATE, True)):
        state = filled(learner)
        first, second = (logits_of(learner.player(state, seat), seen) for seat in (0, 1))
        assert (np.abs(first - second).max() > 0.01) == differ


# --- parameters at the start ---------------------------------------------------------------------


def test_seats_start_by_their_streams_and_all_differently() -> None:
    learner = PPO(small(**{"network.hidden": ()}), SHAPE, SEATS, EVERYBODY, EVERYBODY)
    begin = jax.jit(learner.init)
    state = jax.tree.map(np.asarray, begin(jax.random.key(1), jnp.arange(SEATS)))
    turned = jax.tree.map(np.asarray, begin(jax.random.key(1), jnp.array([1, 2, 0])))
    assert same(jax.tree.map(lambda x: x[[1, 2, 0]], state), turned)
    for network, scale in ((state.actor, 0.01), (state.critic, 1.0)):
        for one, two in itertools.combinations(range(SEATS), 2):
            assert not np.allclose(network.head.weight[one], network.head.weight[two], atol=1e-4)
        for seat in range(SEATS):
            head = network.head.weight[seat].astype(np.float64)
            np.testing.assert_allclose(head @ head.T, scale**2 * np.eye(len(head)), atol=1e-6)
    assert all((x == 0).all() for x in jax.tree.leaves(state[2:])), "optimisers start empty"


def test_a_learner_of_some_seats_starts_them_differently_too() -> None:
    """They start as they would in a learner of all seats."""
    few = PPO(small(**{"network.hidden": ()}), SHAPE, SEATS, (1, 2), (1, 2))
    everybody = PPO(small(**{"network.hidden": ()}), SHAPE, SEATS, EVERYBODY, EVERYBODY)
    streams = jnp.array([2, 0, 1])
    state, whole = (
        jax.tree.map(np.asarray, jax.jit(learner.init)(jax.random.key(1), streams))
        for learner in (few, everybody)
    )
    for mine, all_ in zip(jax.tree.leaves(state), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(mine, all_[[1, 2]], atol=1e-6)
    for network in (state.actor, state.critic):
        weight = network.head.weight
        assert weight.shape[0] == 2 and not np.allclose(weight[0], weight[1], atol=1e-4)


# --- learning in a real game ---------------------------------------------------------------------


@jax.jit
def play(state: PPOState, table: Table, key: jax.Array) -> tuple[Table, Trajectory]:
    return rollout(GAME, (HALVES.group(state),), table, key, STEPS, jnp.arange(SEATS))


@pytest.mark.slow
def test_every_parameter_learns_in_a_game() -> None:
    """All weights move but those of inputs that were never there (no walls on this board)."""
    start = state = filled(HALVES)
    table = jax.jit(lambda key: new_table(GAME, (), key, COPIES))(jax.random.key(1))
    table = table._replace(memory=((),))
    there = np.zeros((SEATS, 3 * 3 * 6 + 3 * 7 + 1), bool)  # [seat, input]
    for number in range(4):
        table, trajectory = play(state, table, jax.random.key(number))
        trajectory = jax.tree.map(np.asarray, trajectory)
        state, metrics = update(HALVES, state, trajectory, seed=number)
        for name, values in metrics.items():
            assert values.shape == (SEATS,) and np.isfinite(values).all(), name
        for at in np.argwhere(trajectory.alive):
            there[at[2]] |= flat(trajectory.observation, tuple(at), np.zeros(0)) != 0
    assert set(metrics) == {
        *("policy_loss", "value_loss", "entropy", "kl", "clip_fraction", "gradient_norm"),
        *("explained_variance", "value"),
    }
    assert (state.actor_optimiser[1].count == 4 * 2).all()
    walls = np.zeros((3, 3, 6), bool)
    walls[..., 3] = True
    assert not there[:, :54][:, walls.reshape(-1)].any() and there.mean() > 0.6
    for old, new in ((start.actor, state.actor), (start.critic, state.critic)):
        moved = jax.tree.map(lambda a, b: a != b, old, new)
        for seat in range(SEATS):
            assert moved.layers[0].weight[seat][:, there[seat]].all()
            assert not moved.layers[0].weight[seat][:, ~there[seat]].any()
        assert moved.layers[0].bias.all() and moved.head.weight.all() and moved.head.bias.all()
