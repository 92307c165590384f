"""SMAClite: the library where it is installed, battles recorded from it, and a stand-in for it."""

import json
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from record_smaclite import EASY, FILE, POLICIES, battle_of, play

import coplay
from coplay import UserError
from coplay.algorithms.scripted import Random
from coplay.core.group import group_players
from coplay.games.adapters.versions import library_versions
from coplay.games.adapters.worker_game import WorkerGame
from coplay.games.adapters.workers.smac_env import make
from coplay.games.adapters.workers.smac_maps import LIMITS
from coplay.games.registry import make_game
from coplay.matches.worker_match import record_worker_episode

pytest.importorskip("gymnasium")

DOUBLE = "smaclite_double:FakeSMACliteEnv"
RECORDED: dict[str, dict[str, Any]] = json.loads(FILE.read_text())
installed = pytest.mark.skipif(
    find_spec("smaclite") is None, reason="SMAClite is not installed: docs/how-to/smac.md"
)
both = pytest.mark.parametrize(
    "options", [{"module": DOUBLE}, pytest.param({}, marks=installed)], ids=["double", "library"]
)


def close(one: Any, other: Any) -> None:
    np.testing.assert_allclose(one, other, atol=1e-4)


@installed
@pytest.mark.parametrize("name", POLICIES)
def test_the_library_fights_the_recorded_battles(name: str) -> None:
    noted, again = RECORDED[name], play(battle_of(name), RECORDED[name]["actions"])
    for part in ("observation", "states", "rewards"):
        close(again[part], noted[part])
    for part in ("legal", "over", "won"):
        assert again[part] == noted[part]


@pytest.mark.parametrize("name", POLICIES)
def test_the_double_begins_as_recorded_and_keeps_to_the_form(name: str) -> None:
    noted, mine = RECORDED[name], play(battle_of(name, module=DOUBLE), POLICIES[name])
    close(mine["observation"], noted["observation"])
    close(mine["states"][0], noted["states"][0])
    assert mine["legal"][0] == noted["legal"][0]
    done = len(noted["actions"][0]) * len(noted["legal"][0][0])
    if mine["actions"][0] == noted["actions"][0]:
        close(mine["states"][1][-done:], noted["states"][1][-done:])
    for battle in (noted, mine):
        assert battle["over"]
        for steps in battle["legal"]:
            assert all(row[1] == "1" if row[0] == "0" else set(row[1:]) == {"0"} for row in steps)
        assert np.shape(battle["states"]) == np.shape(noted["states"])
        # All the damage, all the kills and the win make 20.
        if battle["won"]:
            assert sum(battle["rewards"]) == pytest.approx(20, abs=1e-3)
        assert battle["won"] or name != EASY.stem


@both
def test_battles_end_after_smacs_steps(options: dict[str, Any]) -> None:
    battle = make("smaclite", "3m", **options)
    assert battle.limit == LIMITS["3m"] == 60
    battle = make("smaclite", "3m", episode_limit=2, **options)
    battle.reset(seed=0)
    chosen = dict.fromkeys(battle.possible_agents, np.int32(1))  # the library wants plain int
    _, _, terminated, truncated, _ = battle.step(chosen)
    assert not any(truncated.values()) and battle.agents
    _, _, terminated, truncated, _ = battle.step(chosen)
    assert all(truncated.values()) and not any(terminated.values()) and not battle.agents


@both
def test_a_battle_depends_on_its_seed_and_not_on_the_one_before(options: dict[str, Any]) -> None:
    battle = make("smaclite", "3m", **options)

    def course(seed: int) -> np.ndarray:
        battle.reset(seed=seed)
        seen = [battle.global_state()]
        for _ in range(3):
            battle.step(dict.fromkeys(battle.agents, 4))
            seen.append(battle.global_state())
        return np.array(seen)

    first = course(5)
    assert first[1, -27:].sum() == 3  # the state holds what was done last
    np.testing.assert_array_equal(first, course(5))


@both
def test_nothing_is_printed_and_pictures_are_small(
    options: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    battle = make("smaclite", "3m", render_mode="rgb_array", **options)
    battle.reset(seed=0)
    picture = battle.render()
    assert picture is not None and picture.shape == (512, 512, 3) and picture.dtype == np.uint8
    assert picture.min() < 100 < picture.max()
    assert capsys.readouterr().out == ""


def doubled(*options: str) -> WorkerGame:
    game = make_game("smaclite:3m", options=(f"module={DOUBLE}", *options), workers=1)
    assert isinstance(game, WorkerGame)
    return game


def test_played_in_workers_and_filmed() -> None:
    game = doubled("episode_limit=4")
    assert (game.seats, game.actions) == (3, 9) and game.table.global_state == 48
    assert game.notes == ("the map 3m is coplay's own: smaclite has none of this name",)
    states, actions, _ = record_worker_episode(game, group_players([Random()] * 3), 0)
    assert len(actions) == 4 and states[0].picture is not None
    assert not np.array_equal(states[0].picture, states[-1].picture)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("smaclite:custom", (), "needs a file with the map"),
        ("smaclite:3m", ("episode_limit=0",), "is a number of steps, not 0"),
    ],
)
def test_errors_say_what_to_do(name: str, options: tuple[str, ...], said: str) -> None:
    with pytest.raises(UserError, match=said):
        make_game(name, options=(f"module={DOUBLE}", *options))


def test_the_library_behind_a_game_is_named_with_its_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Found:
        version = "0.0.1"

        def read_text(self, name: str) -> str:
            return json.dumps({"url": "u", "vcs_info": {"commit_id": "0d6abbea13340119"}})

    monkeypatch.setattr(metadata, "distribution", lambda name: Found())
    assert library_versions("smaclite:3m") == {"smaclite": "0.0.1 (commit 0d6abbea1334)"}
    assert library_versions("stag-hunt") == {}


@installed
def test_unknown_maps_are_said() -> None:
    with pytest.raises(UserError, match="unknown map of SMAClite '2s4z': did you mean '2s3z'"):
        make_game("smaclite:2s4z")


@installed
@pytest.mark.parametrize("name", sorted(LIMITS))
def test_every_map_is_known(name: str) -> None:
    game = make_game(f"smaclite:{name}", workers=1)
    assert isinstance(game, WorkerGame) and game.pictures and game.table.scores == ("won",)


@installed
@pytest.mark.slow
def test_a_map_is_trained_on_and_resumed(tmp_path: Path) -> None:
    run, options = tmp_path / "run", ("episode_limit=6", f"map_file={EASY}")
    fields = {"options": options, "workers": 1}
    small = {"copies": 2, "rollout": 6, "episodes": 2, "block": 1, "network": {"hidden": (8,)}}
    coplay.train("mappo", "smaclite:custom", run, game_fields=fields, steps=12, **small)
    coplay.train(
        "mappo", "smaclite:custom", run, game_fields=fields, steps=24, resume=True, **small
    )
    history = [json.loads(line) for line in (run / "history.jsonl").open()]
    assert [row["event"] for row in history if "versions" in row] == ["begun", "resumed"]
    assert all(row["versions"]["smaclite"] for row in history if "versions" in row)
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 2
