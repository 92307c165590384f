"""The adapter to SMAC and SMACv2, with stand-ins for their environments."""

import json
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from smac_double import FakeCapabilityWrapper, FakeStarCraft2Env

import coplay
from coplay import UserError
from coplay.algorithms.mappo import data as data
from coplay.algorithms.scripted import Random
from coplay.core.group import group_players
from coplay.games.adapters.worker_game import WorkerGame
from coplay.games.adapters.workers.smac_env import SmacParallel, make
from coplay.games.adapters.workers.smac_maps import battle_options
from coplay.games.registry import make_game
from coplay.matches.match import play_match
from coplay.matches.rollout import Table
from coplay.matches.worker_match import worker_table
from coplay.matches.worker_rollout import worker_rollout
from coplay.nn.networks import view_shape

pytest.importorskip("gymnasium")


def env(**options: int) -> SmacParallel:
    return SmacParallel(FakeStarCraft2Env, battle_options("smac", "3m", options))


def attack(battle: SmacParallel, views: dict) -> dict[str, int]:
    """Every unit attacks the first enemy it can, or does what it may."""
    return {a: int(np.flatnonzero(views[a]["action_mask"])[-1]) for a in battle.agents}


def test_a_battle_that_is_won() -> None:
    battle = env()
    views, _ = battle.reset(seed=0)
    total, over = 0.0, False
    while not over:
        views, rewards, terminated, truncated, _ = battle.step(attack(battle, views))
        total += rewards["unit_0"]
        over = not battle.agents
    assert all(terminated.values()) and not any(truncated.values())
    assert battle.scores() == (1.0,) and len(set(rewards.values())) == 1
    assert total == 6.0 + 10.0


def test_the_dead_stay_see_nothing_and_can_only_wait() -> None:
    battle = env(step_limit=40)
    views, _ = battle.reset(seed=0)
    while views["unit_0"]["observation"].any():
        views, *_ = battle.step(dict.fromkeys(battle.agents, 1))
    assert battle.agents == ["unit_0", "unit_1", "unit_2"]
    assert views["unit_0"]["action_mask"].tolist() == [1] + [0] * 8


def test_running_out_of_time_is_a_truncation() -> None:
    battle = env(step_limit=2)
    battle.reset(seed=0)
    battle.step(dict.fromkeys(battle.agents, 1))
    _, _, terminated, truncated, _ = battle.step(dict.fromkeys(battle.agents, 1))
    assert all(truncated.values()) and not any(terminated.values())
    assert battle.scores() == (0.0,)


def test_a_battle_whose_starcraft_crashed_is_truncated() -> None:
    """SMAC then answers `0, True, {}`."""
    battle = env()
    battle.reset(seed=0)
    battle.env.step = lambda actions: (0, True, {})
    _, _, terminated, truncated, _ = battle.step(dict.fromkeys(battle.agents, 1))
    assert all(truncated.values()) and not any(terminated.values())


def test_scenarios_of_smacv2() -> None:
    options = battle_options("smacv2", "terran_10_vs_11", {})
    config = options["capability_config"]
    assert options["map_name"] == "10gen_terran" and options["use_unit_ranges"]
    assert (config["n_units"], config["n_enemies"]) == (10, 11)
    assert config["team_gen"]["unit_types"] == ["marine", "marauder", "medivac"]
    assert battle_options("smacv2", "10gen_zerg", {})["capability_config"]["n_units"] == 5
    assert battle_options("smacv2", "zerg_5_vs_5_epo", {})["prob_obs_enemy"] == 0.0
    assert battle_options("smacv2", "terran_5_vs_5", {"conic_fov": True})["conic_fov"]
    own = {"n_units": 2}
    assert battle_options("smacv2", "mine", {"capability_config": own})["capability_config"] is own
    with pytest.raises(UserError, match="no scenario of SMACv2"):
        battle_options("smacv2", "3m", {})


def test_smacv2_draws_each_battle_by_its_seed() -> None:
    """Its own generators have no seeds; and it writes into what it is given."""
    options = battle_options("smacv2", "protoss_5_vs_5", {})
    battle = SmacParallel(FakeCapabilityWrapper, options)

    def drawn(seed: int) -> list[float]:
        battle.reset(seed=seed)
        return battle.env.drawn

    first = drawn(3)
    assert len(set(first)) == 6  # no two generators have the same seed
    assert drawn(4) != first and drawn(3) == first
    assert "env_key" not in options["capability_config"]["team_gen"]
    assert battle.env.given["continuing_episode"]


def test_pictures_are_made_small() -> None:
    battle = env()
    battle.reset(seed=0)
    picture = battle.render()
    assert picture is not None and picture.shape == (200, 633, 3) and (picture == 7).all()


def test_seeds_repeat_battles() -> None:
    def course(seed: int) -> np.ndarray:
        battle = env()
        battle.reset(seed=seed)
        seen = [battle.step(dict.fromkeys(battle.agents, 1))[0] for _ in range(2)]
        return np.array([x["unit_0"]["observation"] for x in seen])

    np.testing.assert_array_equal(course(3), course(3))
    assert not np.array_equal(course(3), course(4))


def test_played_in_workers_with_win_rate() -> None:
    game = make_game("smac:3m", options=("module=smac_double:FakeStarCraft2Env",), workers=1)
    assert (game.seats, game.actions) == (3, 9)
    match = play_match(game, group_players([Random()] * 3), 6, copies=3)
    assert match.reward.shape == (6, 3)
    np.testing.assert_array_equal(match.reward[:, 0], match.reward[:, 1])
    # Only a battle that is won pays more than the damage that can be done.
    np.testing.assert_array_equal(match.scores["won"] == 1, match.reward[:, 0] >= 10)


@pytest.mark.slow
def test_teams_learn_from_what_they_remembered(tmp_path: Path) -> None:
    """Chunks of rollouts begin with the memories that players in other processes' battles noted:
    then every update begins with the very policy that played."""
    coplay.train(
        "hyper-mappo",
        "smac:3m",
        tmp_path / "run",
        game_fields={"options": ("module=smac_double:FakeStarCraft2Env",), "workers": 1},
        steps=48,
        copies=2,
        rollout=8,
        memory={"kind": "gru", "units": 5, "chunk_length": 2},
        network={"hidden": (6,)},
        optimiser={"learning_rate": 0.05},
        critic_learning_rate=7e-4,
        hypernetwork={"width": 6, "units": 5, "learning_rate": 0.05},
        epochs=1,
        block=1,
        episodes=2,
    )
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").open()]
    assert len(rows) == 3
    assert max(row[f"ratio_error/seat_{seat}"] for row in rows for seat in range(3)) < 1e-5


@pytest.mark.slow
def test_critics_see_the_state_of_the_world() -> None:
    """What SMAC's `get_state` gives goes to critics: at each step, and after those that end one."""
    game = make_game("smac:3m", options=("module=smac_double:FakeStarCraft2Env",), workers=1)
    assert isinstance(game, WorkerGame)
    assert game.has_global_state and view_shape(game).global_state == 7
    steps, copies, seats = 8, 2, (0, 1, 2)
    with game.pool(copies) as pool:
        table = worker_table(game, (), pool.reset(0))

        def act(table: Table, step: int) -> tuple:
            # Everyone attacks the last enemy that can be attacked.
            legal = np.asarray(table.state.seen.legal)
            chosen = legal.shape[-1] - 1 - np.argmax(legal[..., ::-1], axis=-1)
            return chosen, np.zeros((copies, 3, 9)), (), ()

        table, played = worker_rollout(act, pool, 0, table, steps)
    global_state, final, last = data.global_states(game, jax.tree.map(jnp.asarray, played), seats)
    assert global_state.shape == (steps, copies, 3, 7) and not np.any(played.truncated)
    np.testing.assert_array_equal(final, 0)
    # Health of the units, which they see as well, that of the enemies, and the steps so far.
    assert played.past is not None
    first = np.asarray(played.past.first[..., 0])
    time = np.asarray(global_state[..., 0, 6])
    assert first.sum() > copies and (time[first] == 0).all() and time.max() > 0
    own = np.asarray(played.observation.features[..., 0])
    np.testing.assert_allclose(np.maximum(global_state[:, :, 0, :3], 0), own)
    np.testing.assert_array_equal(global_state[:, :, 0], global_state[:, :, 2])
    assert (np.asarray(last)[..., 6] > 0).all()  # before the reset
    np.testing.assert_array_equal(game.global_state(table.state)[:, 6] == 0, played.over[-1])


@pytest.mark.parametrize("library", ["smac", "smacv2", "smaclite"])
def test_what_is_not_installed_says_what_to_do(library: str) -> None:
    if find_spec(library) is not None:
        pytest.skip(f"{library} is installed")
    with pytest.raises(UserError, match=rf"{library} is not installed.*pip install.* git"):
        make_game(f"{library}:3m")


def test_unknown_maps_are_said() -> None:
    with pytest.raises(UserError, match="no map 9z"):
        make_game("smac:9z", options=("module=smac_double:FakeStarCraft2Env",))
    with pytest.raises(ModuleNotFoundError, match="different"):
        make("smac", "3m")
