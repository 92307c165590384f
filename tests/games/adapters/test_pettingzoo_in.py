"""PettingZoo environments as games: spaces, seats that come and go, masks, seeds, names, errors."""

import sys
from typing import Any

import host_envs
import jax
import numpy as np
import pytest
from gymnasium import spaces

import coplay
from coplay.core.errors import UserError
from coplay.games.adapters.worker_game import WorkerGame
from coplay.games.adapters.workers.pool import Pool
from coplay.games.adapters.workers.seated import SeatedEnv
from coplay.games.adapters.workers.seats import Seats, Views, read_seats
from coplay.games.adapters.workers.worker import episode_seed
from coplay.games.stag_hunt import StagHunt, StagHuntConfig

REAL = [
    ("mpe2.simple_spread_v3", ["max_cycles=4"]),  # cooperative
    ("mpe2.simple_tag_v3", ["max_cycles=5"]),  # competitive; seats see differently much
    ("mpe2.simple_reference_v3", ["max_cycles=4"]),  # mixed; 50 actions
    ("mpe2.simple_speaker_listener_v4", ["max_cycles=4"]),  # seats do differently much
    ("pettingzoo.classic.rps_v2", ["max_cycles=5"]),  # Discrete observations
    ("pettingzoo.sisl.pursuit_v5", ["max_cycles=4", "n_pursuers=3", "n_evaders=2"]),  # boards
]


def game_of(module: str, options: Any = (), workers: int = 2) -> WorkerGame:
    return coplay.make_game(f"pettingzoo:{module}", options=tuple(options), workers=workers)  # type: ignore[return-value]


def play(pool: Pool, steps: int, seed: int = 5) -> list[Any]:
    """[time] what the seats saw, did and got, with random legal actions."""
    random = np.random.default_rng(seed)
    seen, played = pool.reset(seed), []
    for _ in range(steps):
        action = (random.random(seen.legal.shape) * seen.legal).argmax(-1)
        stepped = jax.tree.map(np.copy, pool.step(action))
        played.append((seen, action, stepped))
        over = stepped.over
        seen = Views(
            *(
                np.where(over.reshape(-1, *(1,) * (a.ndim - 1)), f, a)
                for a, f in zip(stepped.after, stepped.fresh, strict=True)
            )
        )
    return played


def flat(observation: Any, size: int) -> np.ndarray:
    out = np.zeros(size, np.float32)
    values = np.asarray(observation, np.float32).reshape(-1)
    out[: values.size] = values
    return out


@pytest.mark.parametrize(("module", "options"), REAL, ids=lambda x: str(x)[:40])
def test_workers_play_what_a_plain_loop_plays(module: str, options: list[str]) -> None:
    """Against a loop over PettingZoo's own dictionaries, one environment at a time."""
    pytest.importorskip(module, reason="its number is another in this version of PettingZoo")
    game = game_of(module, options)
    with game.pool(3) as pool:
        played = play(pool, 11)
    settings = {name: int(value) for name, value in (text.split("=") for text in options)}
    ended = 0
    for copy in range(3):
        env = sys.modules[module].parallel_env(**settings)
        episode = 0
        observations, _ = env.reset(seed=episode_seed(5, 0, copy, 0))
        for seen, action, stepped in played:
            here = [agent in env.agents for agent in env.possible_agents]
            assert seen.alive[copy].tolist() == here
            acting = {
                agent: int(action[copy, seat])
                for seat, agent in enumerate(env.possible_agents)
                if agent in env.agents
            }
            for seat, agent in enumerate(env.possible_agents):
                compare_view(seen, copy, seat, observations[agent], env, agent)
            observations, rewards, terminations, truncations, _ = env.step(acting)
            for seat, agent in enumerate(env.possible_agents):
                assert stepped.reward[copy, seat] == np.float32(rewards[agent])
                assert stepped.terminated[copy, seat] == terminations[agent]
                assert stepped.truncated[copy, seat] == truncations[agent]
                compare_view(stepped.after, copy, seat, observations[agent], env, agent)
            assert stepped.over[copy] == (not env.agents)
            if not env.agents:
                ended += 1
                episode += 1
                observations, _ = env.reset(seed=episode_seed(5, 0, copy, episode))
    assert ended >= 3


def compare_view(views: Views, copy: int, seat: int, given: Any, env: Any, agent: Any) -> None:
    space = env.observation_space(agent)
    planes, features = views.planes[copy, seat], views.features[copy, seat]
    if isinstance(space, spaces.Discrete):
        np.testing.assert_array_equal(features, np.eye(space.n)[given])
    elif len(space.shape) == 3:
        np.testing.assert_array_equal(planes, given)
    else:
        np.testing.assert_array_equal(features, flat(given, features.size))
    actions = np.arange(views.legal.shape[-1])
    np.testing.assert_array_equal(views.legal[copy, seat], actions < env.action_space(agent).n)


def test_agents_that_die_are_not_alive() -> None:
    """Knights, archers, zombies: agents leave one by one."""
    module = "pettingzoo.butterfly.knights_archers_zombies_v11"
    pytest.importorskip(module, reason="its number is another in this version of PettingZoo")
    game = game_of(module, ["max_cycles=400"], 1)
    assert game.seats == 4 and game.table.features == 27 * 5
    with game.pool(1) as pool:
        played = play(pool, 400)
    alive = np.stack([seen.alive[0] for seen, _, _ in played])
    terminated = np.stack([stepped.terminated[0] for _, _, stepped in played])
    over = np.array([stepped.over[0] for _, _, stepped in played])
    assert terminated.any() and over.any() and not alive.all()
    inside = ~over[:-1]
    np.testing.assert_array_equal(alive[1:][inside], (alive & ~terminated)[:-1][inside])
    assert alive[1:][~inside].all()


@pytest.mark.parametrize("masks", ["info", "observation"])
def test_agents_come_and_go_with_masks(masks: str) -> None:
    options = [
        "horizon=6",
        f"masks={masks}",
        "leave={'a': 2}",
        "cut={'b': 3}",
        "silent={'c': 4}",
        "join={'c': 1}",
        "back={'a': 4}",
    ]
    game = game_of("host_envs:little", options)
    with game.pool(2) as pool:
        played = play(pool, 12)
    for t, (seen, action, stepped) in enumerate(played):
        time, after = t % 6, t % 6 + 1
        for copy in range(2):
            alive = [time < 2 or time >= 4, time < 3, 1 <= time < 4]
            assert seen.alive[copy].tolist() == alive
            np.testing.assert_array_equal(stepped.terminated[copy], [after == 2, False, after == 4])
            np.testing.assert_array_equal(stepped.truncated[copy], [after == 6, after == 3, False])
            assert stepped.over[copy] == (after == 6)
            for seat in range(3):
                if not alive[seat]:
                    assert stepped.reward[copy, seat] == 0
                    assert seen.legal[copy, seat].all()
                    continue
                last = int(seen.features[copy, seat, 2]) - 10
                expected = np.arange(3) != last
                np.testing.assert_array_equal(seen.legal[copy, seat], expected)
                chance = stepped.reward[copy, seat] - action[copy, seat] - 10 - seat
                assert 0 <= chance <= 1
            if after == 3:  # what the truncated seat saw last
                kept = stepped.after.features[copy, 1]
                assert kept[:3].tolist() == [1, 3, 10 + action[copy, 1]]


@pytest.mark.slow
def test_trajectories_do_not_depend_on_the_number_of_workers() -> None:
    every = []
    for workers in (1, 2, 3):
        game = game_of("mpe2.simple_spread_v3", ["max_cycles=3"], workers)
        with game.pool(5, sets=2) as pool:
            assert len(pool.handles) == workers
            pool.reset(1, number=1)
            every.append(play(pool, 7))
        assert not pool.handles
    for other in every[1:]:
        jax.tree.map(np.testing.assert_array_equal, every[0], other)
    first = every[0][0][0].features
    assert len({row.tobytes() for row in first}) == 5, "copies must not play the same episode"


def test_sets_of_environments_are_apart() -> None:
    game = game_of("host_envs:little", ["horizon=4"])
    with game.pool(2) as pool:
        alone = play(pool, 6)
    with game.pool(2, sets=2) as pool:
        pool.reset(9, number=1)
        seen, played = pool.reset(5), []
        for _, action, _ in alone:
            played.append(jax.tree.map(np.copy, pool.step(action)))
            pool.step(np.zeros((2, 3), int), number=1)
    for (_, _, one), other in zip(alone, played, strict=True):
        jax.tree.map(np.testing.assert_array_equal, one, other)
    np.testing.assert_array_equal(seen.features, alone[0][0].features)


@pytest.mark.slow
def test_our_own_games_come_back_unchanged() -> None:
    """Out by `to_pettingzoo`, in by `from_pettingzoo`: views, rewards and ends are the game's."""
    config = StagHuntConfig(players=3, height=3, width=3, horizon=5, end_after_first_hunt=1)

    def make() -> Any:
        return coplay.to_pettingzoo(StagHunt(config))

    game = coplay.from_pettingzoo(make, "stags", workers=1)
    assert game.name == "pettingzoo:stags" and game.notes == ()
    with game.pool(2) as pool:
        played = play(pool, 12)
    own = StagHunt(config)
    reset, step = jax.jit(lambda g, k: g.reset(k)), jax.jit(lambda g, k, s, a: g.step(k, s, a))
    observe = jax.jit(lambda g, s: (g.observe(s), g.alive(s)))
    for copy in range(2):
        episode, time = 0, 0
        key = jax.random.fold_in(jax.random.key(episode_seed(5, 0, copy, 0)), 0)
        state = reset(own, jax.random.fold_in(key, 0))
        for seen, action, stepped in played:
            same_views(observe(own, state), seen, copy)
            time += 1
            state, outcome = step(own, jax.random.fold_in(key, time), state, action[copy])
            same_views(observe(own, state), stepped.after, copy)
            alive = np.asarray(own.alive(state))
            np.testing.assert_array_equal(stepped.reward[copy], outcome.reward)
            np.testing.assert_array_equal(stepped.terminated[copy], outcome.terminated)
            np.testing.assert_array_equal(stepped.truncated[copy], alive & outcome.truncated)
            over = bool(outcome.truncated) or not alive.any()
            assert stepped.over[copy] == over
            if over:
                episode, time = episode + 1, 0
                seed = episode_seed(5, 0, copy, episode)
                key = jax.random.fold_in(jax.random.key(seed), 0)
                state = reset(own, jax.random.fold_in(key, 0))


def same_views(expected: Any, views: Views, copy: int) -> None:
    observation, alive = expected
    there = views.alive[copy]
    for mine, theirs in zip((*observation[:3], alive), views[:4], strict=True):
        np.testing.assert_array_equal(np.asarray(mine)[there], theirs[copy][there])


# --- spaces ------------------------------------------------------------------------------------


def box(*shape: int, low: float = -1, high: float = 1, dtype: Any = np.float32) -> spaces.Box:
    return spaces.Box(low, high, shape, dtype)


def seated(seen: dict, actions: dict | None = None) -> tuple[Seats, Views, dict]:
    env = host_envs.Spaces(seen, actions or dict.fromkeys(seen, spaces.Discrete(2)))
    seats = read_seats(env, "odd")
    views = new_views(seats)
    SeatedEnv(env, seats).reset(3, views)
    return seats, views, env.shown


def new_views(seats: Seats) -> Views:
    return Views(
        np.full((seats.count, *seats.planes), 1).astype(seats.plane_type),
        np.full((seats.count, seats.features), np.nan, np.float32),
        np.zeros((seats.count, seats.actions), bool),
        np.zeros(seats.count, bool),
        np.zeros(seats.global_state, np.float32),
    )


def test_seats_of_different_sizes_are_padded_and_it_is_said() -> None:
    seats, views, shown = seated(
        {"x": box(2, 3), "y": spaces.Discrete(4, start=7), "z": box(3, 2, 2)},
        {"x": spaces.Discrete(2), "y": spaces.Discrete(5), "z": spaces.Discrete(1)},
    )
    assert seats.planes == (3, 2, 2) and seats.features == 6 and seats.actions == 5
    np.testing.assert_array_equal(views.features[0], shown["x"].reshape(-1))
    np.testing.assert_array_equal(views.features[1], np.arange(6) == shown["y"] - 7)
    assert not views.features[2].any() and not views.planes[:2].any()
    np.testing.assert_array_equal(views.planes[2], shown["z"])
    assert views.legal.sum(1).tolist() == [2, 5, 1] and views.legal[:, 0].all()
    said = " ".join(seats.notes())
    assert "6, 4, 0" in said and "2, 5, 1" in said and "padded" in said and "3x2x2" in said


def test_boards_of_different_sizes_are_padded() -> None:
    seats, views, shown = seated({"x": box(2, 2, 1), "y": box(1, 3, 2, dtype=np.float64)})
    assert seats.planes == (2, 3, 2) and seats.plane_type == np.float32
    np.testing.assert_array_equal(views.planes[0, :2, :2, :1], shown["x"])
    np.testing.assert_array_equal(views.planes[1, :1, :3, :2], shown["y"].astype(np.float32))
    assert np.count_nonzero(views.planes) <= 4 + 6


def test_pictures_stay_bytes_until_players_see_them_from_0_to_1() -> None:
    image = {"x": box(4, 5, 3, low=0, high=255, dtype=np.uint8)}
    seats, views, shown = seated(image)
    assert seats.plane_type == np.uint8 and seats.image
    np.testing.assert_array_equal(views.planes[0], shown["x"])
    game = coplay.from_pettingzoo(
        lambda: host_envs.Spaces(image, {"x": spaces.Discrete(2)}), "image"
    )
    state = game.reset(jax.random.key(0))
    state = state._replace(seen=state.seen._replace(planes=views.planes))
    np.testing.assert_allclose(game.observe(state).planes[0], shown["x"] / 255, rtol=1e-6)
    _, views, shown = seated({"x": box(4, low=0, high=255, dtype=np.uint8)})
    np.testing.assert_allclose(views.features[0], shown["x"] / 255, rtol=1e-6)
    board = seated({"x": box(2, 2, 1, low=0, high=1, dtype=np.uint8)})[0]
    assert board.plane_type == np.uint8 and not board.image


@pytest.mark.parametrize(
    ("seen", "actions", "message"),
    [
        (box(3), box(2), "continuous_actions=False"),
        (box(3), spaces.MultiDiscrete([2, 2]), "one integer"),
        (spaces.Dict({"a": box(2), "b": box(2)}), spaces.Discrete(2), "spaces.flatten"),
        (spaces.Text(3), spaces.Discrete(2), "Box and Discrete"),
    ],
    ids=["box actions", "several actions", "dictionary", "text"],
)
def test_other_spaces_are_refused(seen: Any, actions: Any, message: str) -> None:
    with pytest.raises(UserError, match=message) as refused:
        seated({"x": seen}, {"x": actions})
    assert "of x are" in str(refused.value)


# --- names -------------------------------------------------------------------------------------

BAD = [
    ("nothing_like_it.env_v0", (), "no module 'nothing_like_it'"),
    ("mpe2.simple_sprad_v3", (), "no module 'mpe2.simple_sprad_v3'"),
    ("mpe2.simple_spread_v3", ("max_cycle=3",), "max_cycle"),
    ("mpe2.simple_spread_v3", ("max_cycles",), "NAME=VALUE"),
    ("mpe2.simple_spread_v3", ("continuous_actions=true",), "continuous_actions=False"),
    ("mpe2.simple_spread_v3:env", (), r"turn-by-turn.*pettingzoo\.utils\.aec_to_parallel\("),
    ("pettingzoo.classic.tictactoe_v3", (), r"utils\.turn_based_aec_to_parallel\("),
    ("host_envs:litle", (), "did you mean 'little'"),
    ("host_envs:little", ("masks=1", "horizon=[]", "leave=5"), "cannot be made"),
    ("pettingzoo.test.example_envs.generated_agents_parallel_v0", (), "possible_agents"),
]


@pytest.mark.parametrize(("name", "options", "message"), BAD, ids=lambda x: str(x)[:40])
def test_what_cannot_be_made_is_named(name: str, options: tuple, message: str) -> None:
    with pytest.raises(UserError, match=message):
        game_of(name, options)


def test_who_waits_in_a_game_of_turns_has_one_action() -> None:
    from pettingzoo.classic import tictactoe_v3
    from pettingzoo.utils import turn_based_aec_to_parallel

    env = turn_based_aec_to_parallel(tictactoe_v3.env())
    seats = read_seats(env, "turns")
    played, views = SeatedEnv(env, seats), new_views(seats)
    played.reset(0, views)
    assert views.legal.sum(axis=1).tolist() == [9, 1]
    marks = [np.zeros(2, kind) for kind in (np.float32, bool, bool)]
    over = [played.step(np.array([cell, cell]), views, *marks) for cell in (0, 3, 1, 4)]
    assert views.legal.sum(axis=1).tolist() == [5, 1] and not any(over)
    assert played.step(np.array([2, 0]), views, *marks)
    assert marks[0].tolist() == [1, -1] and marks[1].all(), "three in a row"


def test_callables_have_names() -> None:
    known = coplay.from_pettingzoo(host_envs.little)
    assert known.name == "pettingzoo:host_envs:little" and coplay.make_game(known.name) == known
    unknown = coplay.from_pettingzoo(lambda: host_envs.Little(horizon=2))
    assert unknown.name == "pettingzoo:environment" and coplay.make_game(unknown.name) == unknown
    with pytest.raises(UserError, match="callable"):
        coplay.from_pettingzoo(host_envs.Little())
    with pytest.raises(UserError, match="timeout"):
        coplay.from_pettingzoo(host_envs.little, timeout=0)


def test_it_cannot_be_stepped_in_a_compiled_program() -> None:
    game = coplay.from_pettingzoo(host_envs.little)
    with pytest.raises(UserError, match="worker processes"):
        coplay.check_game(game)
