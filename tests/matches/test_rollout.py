"""Rollouts against the same games stepped one by one with the actions the rollout chose."""

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.algorithms.ppo.player import PPOPlayer
from coplay.algorithms.scripted import Random, Scripted, Switcher
from coplay.core.game import Game, Observation
from coplay.core.group import Group, group_players
from coplay.core.trajectory import Trajectory, of_seats, rows_where
from coplay.games.stag_hunt import STAY, StagHunt, StagHuntConfig, StagHuntState
from coplay.matches.rollout import Table, new_table, rollout
from coplay.nn.networks import Network, view_shape

CONFIG = StagHuntConfig(height=3, width=3, players=3, stags=1, hares=2, horizon=6)
COPIES, STEPS, SEATS, ACTIONS = 24, 16, 3, 7
OF_VIEWS = ("observation", "final", "past")
OF_ALL = (*OF_VIEWS, "over", "last", "state", "after", "episode", "memory", "recorded", "insight")
# There are no meetings without partners.
PER_SEAT = [name for name in Trajectory._fields if name not in (*OF_ALL, "meeting_over")]


class Rotated(StagHunt):
    """Deals every position with the seats moved round by `shift` (an array, so that one program
    serves all shifts)."""

    shift: jax.Array

    def __init__(self, config: StagHuntConfig, shift: int):
        super().__init__(config)
        self.shift = jnp.asarray(shift)

    def reset(self, key: jax.Array) -> StagHuntState:
        return self.ego_state(super().reset(key), self.shift)


GAME = Rotated(CONFIG, 0)

play = jax.jit(rollout, static_argnames="steps")
deal_states = jax.jit(lambda game, key: new_table(game, (), key, COPIES))
step_by_hand = jax.jit(jax.vmap(GAME.step))
look = jax.jit(jax.vmap(lambda state: seen(GAME.observe(state))))
nearest_stag = jax.jit(jax.vmap(lambda state: GAME.scripted["ns"](GAME, state)))
as_seat_sees = jax.jit(jax.vmap(GAME.ego_state, in_axes=(0, None)))


@cache
def learned() -> PPOPlayer:
    def make(key: jax.Array) -> Network:
        return Network(
            view_shape(GAME),
            ACTIONS,
            key=key,
            hidden=(4,),
            channels=(),
            activation="tanh",
            head_scale=1.0,
        )

    shapes = eqx.filter_eval_shape(make, jax.random.key(0))
    rng = np.random.default_rng(5)
    return PPOPlayer(
        jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape), x.dtype), shapes),
        jnp.zeros(0),
    )


def all_alike() -> tuple[Group, ...]:
    """Everybody moves at random for five steps, then towards the stag."""
    return group_players([Switcher(Random(), Scripted(GAME.scripted["ns"]), "step", 5)] * SEATS)


def everyone_different() -> tuple[Group, ...]:
    return group_players([Scripted(GAME.scripted["ns"]), Random(), learned()])


def deal(game: Game, groups: tuple[Group, ...], key: jax.Array) -> Table:
    """A new table; the states do not depend on the players, so one program serves all."""
    return deal_states(game, key)._replace(memory=tuple(group.start(COPIES) for group in groups))


@pytest.mark.slow
def test_a_new_table() -> None:
    groups = everyone_different()
    table = new_table(GAME, groups, jax.random.key(1), COPIES)
    assert same(table, deal(GAME, groups, jax.random.key(1)))
    same_tree = jax.tree.structure(table), jax.tree.structure(played()[0][0])
    assert len(set(same_tree)) == 1
    assert table.state.alive.all() and table.state.alive.shape == (COPIES, SEATS)
    for counter in table[2:6]:
        assert (np.asarray(counter) == 0).all()
    assert (np.asarray(table.last_action) == -1).all() and not np.any(table.last_reward)


@cache
def played() -> tuple[list[Table], list[Trajectory]]:
    """Two rollouts that follow each other: three tables and two trajectories, in NumPy."""
    groups = everyone_different()
    tables = [deal(GAME, groups, jax.random.key(1))]
    trajectories = []
    for number in (2, 3):
        table, trajectory = play(
            GAME, groups, tables[-1], jax.random.key(number), steps=STEPS, streams=jnp.arange(SEATS)
        )
        tables.append(table)
        trajectories.append(trajectory)
    return [jax.tree.map(np.asarray, x) for x in tables], [
        jax.tree.map(np.asarray, x) for x in trajectories
    ]


@cache
def joined() -> Trajectory:
    """Both rollouts as one; `last` is the second one's."""
    first, second = played()[1]
    both = jax.tree.map(
        lambda a, b: np.concatenate([a, b]),
        first._replace(last=()),
        second._replace(last=()),
    )
    return both._replace(last=second.last)


def read_state(planes: np.ndarray) -> StagHuntState:
    """The fresh state of one copy that seat 0 sees: [row, column, plane]."""
    flat = planes.reshape(-1, planes.shape[-1])
    cells = [np.flatnonzero(flat[:, plane]) for plane in range(SEATS + 3)]
    assert [len(c) for c in cells] == [1, 1, 1, 0, 1, 2], "all players, no wall, all prey"
    return StagHuntState(
        cell=np.concatenate(cells[:SEATS]).astype(np.int16),
        alive=np.ones(SEATS, bool),
        strength=np.ones(SEATS, np.float32),
        last=np.full(SEATS, STAY, np.int8),
        prey=np.concatenate(cells[4:]).astype(np.int16),
        prey_alive=np.ones(3, bool),
        board=np.int16(0),
        time=np.int16(0),
        first_hunt=np.int16(-1),
    )


def seen(observation: Any) -> Any:
    """What networks read of an observation: the order of indices means nothing to them."""
    return observation._replace(indices=jnp.sort(observation.indices, axis=-1))


def same(one: Any, two: Any) -> bool:
    """Whether two trees of arrays hold the same bits."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in pairs)


@cache
def by_hand() -> list[StagHuntState]:
    """The states before each step of both rollouts, and after the last, [copy, ...] each: checks on
    the way that what the rollouts say of every step is what the game does."""
    trajectory, state = joined(), played()[0][0].state
    states = [state]
    key = jax.random.split(jax.random.key(0), COPIES)  # the rules draw nothing
    for time in range(2 * STEPS):
        state = states[-1]
        assert same(look(state), seen(jax.tree.map(lambda x, t=time: x[t], trajectory.observation)))
        assert same(state.alive, trajectory.alive[time])
        stepped, outcome = jax.tree.map(
            np.asarray, step_by_hand(key, state, trajectory.action[time])
        )
        assert same(outcome.reward, trajectory.reward[time])
        assert same(outcome.terminated, trajectory.terminated[time])
        assert same(outcome.terminated, state.alive & ~stepped.alive)
        for copy in range(COPIES):
            cut = bool(outcome.truncated[copy])
            expected = [cut and bool(alive) for alive in stepped.alive[copy]]
            assert trajectory.truncated[time, copy].tolist() == expected
            assert trajectory.over[time, copy] == (cut or not stepped.alive[copy].any())
            assert cut == (stepped.time[copy] == CONFIG.horizon and stepped.alive[copy].any())
        assert same(look(stepped), seen(jax.tree.map(lambda x, t=time: x[t], trajectory.final)))
        if time + 1 < 2 * STEPS:
            shown = trajectory.observation.planes[time + 1, :, 0]
        else:
            shown = trajectory.last.planes[:, 0]
        # What was dealt after an end can be read from what is seen next.
        following = [
            read_state(shown[copy])
            if trajectory.over[time, copy]
            else jax.tree.map(lambda x, c=copy: x[c], stepped)
            for copy in range(COPIES)
        ]
        states.append(jax.tree.map(lambda *x: np.stack(x), *following))
    return states


def test_every_step_is_the_game_s() -> None:
    states = by_hand()
    assert len(states) == 2 * STEPS + 1
    trajectory = joined()
    assert same(look(states[-1]), seen(trajectory.last))
    assert same(look(played()[0][2].state), seen(trajectory.last))
    assert same(look(played()[0][1].state), seen(played()[1][0].last))
    assert same(look(states[STEPS]), seen(played()[1][0].last))


def test_the_episodes_show_everything() -> None:
    trajectory = joined()
    assert trajectory.truncated.any() and trajectory.terminated.any()
    assert not trajectory.alive.all()
    all_left = trajectory.over & ~trajectory.truncated.any(2)
    assert all_left.any(), "an episode ended because all had left"
    assert (trajectory.over.sum(0) >= 2).all(), "several episodes in every copy"
    assert (played()[0][1].time > 0).any(), "an episode goes on over both rollouts"
    dealt = {
        tuple(joined().observation.planes[time + 1, copy].reshape(-1))
        for time, copy in np.argwhere(trajectory.over[:-1])
    }
    assert len(dealt) > 0.9 * trajectory.over[:-1].sum(), "positions after ends differ"


def test_time_and_episode_counters() -> None:
    trajectory, tables = joined(), played()[0]
    for copy in range(COPIES):
        clock = episodes = 0
        for time in range(2 * STEPS):
            clock += 1
            if trajectory.over[time, copy]:
                clock, episodes = 0, episodes + 1
            if time + 1 == STEPS:
                assert (tables[1].time[copy], tables[1].episode[copy]) == (clock, episodes)
            if time + 1 < 2 * STEPS:
                shown = trajectory.observation.features[time + 1, copy, :, -1]
                assert shown == pytest.approx(clock / CONFIG.horizon)
        assert (tables[2].time[copy], tables[2].episode[copy]) == (clock, episodes)


def test_totals_of_episodes() -> None:
    trajectory, tables = joined(), played()[0]
    for copy in range(COPIES):
        for seat in range(SEATS):
            gained, stayed = 0.0, 0
            for time in range(2 * STEPS):
                at = (time, copy, seat)
                gained += float(trajectory.reward[at])
                stayed += int(trajectory.alive[at])
                assert trajectory.alive[at] or trajectory.reward[at] == 0.0
                assert trajectory.episode_reward[at] == pytest.approx(gained, abs=1e-5)
                assert trajectory.episode_steps[at] == stayed
                if trajectory.over[time, copy]:
                    gained, stayed = 0.0, 0
                if time + 1 == STEPS:
                    assert tables[1].gained[copy, seat] == pytest.approx(gained, abs=1e-5)
                    assert tables[1].stayed[copy, seat] == stayed
            assert tables[2].gained[copy, seat] == pytest.approx(gained, abs=1e-5)
            assert tables[2].stayed[copy, seat] == stayed


def test_actions_are_legal_and_probable() -> None:
    trajectory = joined()
    for at in np.ndindex(trajectory.action.shape):
        action = trajectory.action[at]
        assert trajectory.observation.legal[(*at, action)]
        assert trajectory.log_policy[(*at, action)] > -100


def slow_logits(player: PPOPlayer, planes: np.ndarray, features: np.ndarray) -> np.ndarray:
    x = np.concatenate([planes.reshape(-1).astype(np.float64), features])
    for layer in player.actor.layers:
        x = np.tanh(np.asarray(layer.weight, np.float64) @ x + np.asarray(layer.bias))
    return np.asarray(player.actor.head.weight, np.float64) @ x + np.asarray(player.actor.head.bias)


def test_policies_are_the_players_own() -> None:
    """Seat 0 by its script, seat 1 uniform, seat 2 by its network."""
    trajectory, states = joined(), by_hand()
    policy = np.exp(trajectory.log_policy.astype(np.float64))
    np.testing.assert_allclose(policy.sum(-1), 1.0, atol=1e-5)
    legal = trajectory.observation.legal
    assert (policy[~legal] == 0).all()
    for time in range(2 * STEPS):
        script = np.asarray(nearest_stag(as_seat_sees(states[time], 0)))
        for copy in range(COPIES):
            np.testing.assert_allclose(policy[time, copy, 0], script[copy], atol=1e-5)
            allowed = legal[time, copy, 1]
            np.testing.assert_allclose(policy[time, copy, 1], allowed / allowed.sum(), atol=1e-5)
            view = (getattr(trajectory.observation, name) for name in ("planes", "features"))
            logits = slow_logits(learned(), *(x[time, copy, 2] for x in view))
            weights = np.where(legal[time, copy, 2], np.exp(logits), 0.0)
            np.testing.assert_allclose(policy[time, copy, 2], weights / weights.sum(), atol=1e-4)


def test_the_same_key_gives_the_same_bits_and_another_one_another_game() -> None:
    groups = everyone_different()
    tables, trajectories = played()
    table = deal(GAME, groups, jax.random.key(1))
    again = play(GAME, groups, table, jax.random.key(2), steps=STEPS, streams=jnp.arange(SEATS))
    assert same(again, (tables[1], trajectories[0]))
    _, other = play(GAME, groups, table, jax.random.key(9), steps=STEPS, streams=jnp.arange(SEATS))
    assert not same(other.action, trajectories[0].action)
    assert not same(other.observation.planes, trajectories[0].observation.planes)


@pytest.mark.slow
def test_copies_and_seats_draw_on_their_own() -> None:
    """No two copies, and no two seats, choose by the same random numbers."""
    groups = all_alike()
    table = deal(GAME, groups, jax.random.key(1))
    one = jax.tree.map(lambda x: x[:1], table.state)
    table = table._replace(state=jax.tree.map(lambda x: jnp.repeat(x, COPIES, axis=0), one))
    _, trajectory = play(
        GAME, groups, table, jax.random.key(2), steps=STEPS, streams=jnp.arange(SEATS)
    )
    action = np.asarray(trajectory.action)
    columns = {tuple(action[:, copy, seat]) for copy in range(COPIES) for seat in range(SEATS)}
    assert len(columns) == COPIES * SEATS


@pytest.mark.parametrize("shift", [1, 2])
def test_rotated_seats_rotate_the_trajectory(shift: int) -> None:
    groups = all_alike()
    order = (np.arange(SEATS) + shift) % SEATS  # new seat i is old seat order[i]
    results = []
    for game, streams in ((GAME, np.arange(SEATS)), (Rotated(CONFIG, shift), order)):
        table = deal(game, groups, jax.random.key(4))
        table, trajectory = play(
            game, groups, table, jax.random.key(6), steps=STEPS, streams=jnp.asarray(streams)
        )
        results.append(jax.tree.map(np.asarray, (table, trajectory)))
    (table, trajectory), (turned_table, turned) = results
    assert not same(trajectory.action, turned.action)
    for name in PER_SEAT:
        assert same(getattr(trajectory, name)[:, :, order], getattr(turned, name)), name
    for name in OF_VIEWS:
        moved = jax.tree.map(lambda x: x[:, :, order], getattr(trajectory, name))
        assert same(moved, getattr(turned, name)), name
    assert same(jax.tree.map(lambda x: x[:, order], trajectory.last), turned.last)
    assert same(trajectory.over, turned.over) and trajectory.over.any()
    assert same(table.gained[:, order], turned_table.gained)
    assert same(table.stayed[:, order], turned_table.stayed)
    assert same((table.time, table.episode), (turned_table.time, turned_table.episode))


# --- parts of a trajectory -----------------------------------------------------------------------


@pytest.mark.parametrize("seats", [(0,), (2,), (0, 2), (2, 0), (0, 1, 2), (2, 0, 1)])
def test_of_seats(seats: tuple[int, ...]) -> None:
    trajectory = played()[1][0]
    part = jax.tree.map(np.asarray, of_seats(trajectory, seats))
    for index, seat in enumerate(seats):
        for name in PER_SEAT:
            whole = getattr(trajectory, name)
            assert same(getattr(part, name)[:, :, index], whole[:, :, seat]), name
        for name in OF_VIEWS:
            for mine, whole in zip(getattr(part, name), getattr(trajectory, name), strict=True):
                assert same(mine[:, :, index], whole[:, :, seat]), name
        for mine, whole in zip(*map(jax.tree.leaves, (part.last, trajectory.last)), strict=True):
            assert same(mine[:, index], whole[:, seat])
    assert part.alive.shape == (STEPS, COPIES, len(seats))
    assert part.last.legal.shape == (COPIES, len(seats), ACTIONS)
    assert same(part.over, trajectory.over)


@jax.jit
def chosen_rows(mask: jax.Array, inputs: Any) -> jax.Array:
    """A function of two inputs at once, [row, seat] from [row, seat, number] and [row]."""
    return rows_where(lambda x: jnp.sum(x[0], axis=-1) * 2 + x[1][:, None], mask, inputs)


def masks() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shape = (9, 4)
    one, last = np.zeros(shape, bool), np.zeros(shape, bool)
    one[3, 2], last[-1, -1] = True, True
    first = np.zeros(shape, bool)
    first[0, 0] = True
    exactly = np.zeros(36, bool)
    exactly[rng.permutation(36)[:4]] = True
    more = np.zeros(36, bool)
    more[rng.permutation(36)[:5]] = True
    return {
        "none": np.zeros(shape, bool),
        "one": one,
        "the first": first,
        "the last": last,
        "as many as copies": exactly.reshape(shape),
        "one more than copies": more.reshape(shape),
        "half": rng.random(shape) < 0.5,
        "a whole time": np.repeat(np.arange(9)[:, None] == 4, 4, axis=1),
        "all": np.ones(shape, bool),
    }


@pytest.mark.parametrize("name", list(masks()))
def test_rows_where(name: str) -> None:
    mask = masks()[name]
    rng = np.random.default_rng(1)
    numbers = rng.integers(-50, 50, size=(9, 4, 3, 2)).astype(np.float32)
    more = rng.integers(-50, 50, size=(9, 4)).astype(np.float32)
    result = np.asarray(chosen_rows(mask, (numbers, more)))
    assert result.shape == (9, 4, 3)
    for time, copy, seat in np.ndindex(9, 4, 3):
        expected = 0.0
        if mask[time, copy]:
            pair = numbers[time, copy, seat]
            expected = 2 * (float(pair[0]) + float(pair[1])) + float(more[time, copy])
        assert result[time, copy, seat] == expected


calls: list[int] = []


@jax.jit
def counted_rows(mask: jax.Array, inputs: jax.Array) -> jax.Array:
    def identity(x: jax.Array) -> jax.Array:
        jax.debug.callback(lambda: calls.append(1))
        return x

    return rows_where(identity, mask, inputs)


def test_the_number_of_calls_of_rows_where_follows_the_mask() -> None:
    for name, most in (("none", 0), ("one", 1), ("as many as copies", 1), ("all", 9)):
        calls.clear()
        jax.block_until_ready(counted_rows(masks()[name], np.ones((9, 4), np.float32)))
        jax.effects_barrier()
        assert len(calls) == most, name


def test_games_are_passed_as_arguments() -> None:
    """The rotated game differs only in an array, so both share one program."""
    static = [eqx.partition(game, eqx.is_array)[1] for game in (GAME, Rotated(CONFIG, 2))]
    assert len(set(map(jax.tree.structure, static))) == 1
    assert isinstance(GAME, Game) and isinstance(joined().final, Observation)
