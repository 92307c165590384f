"""Runs on environments in worker processes: trajectories, bits, trouble, stopping, resume."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from PIL import Image

import coplay
from coplay.cli.main import run as cli
from coplay.core.errors import WorkerFailed
from coplay.games.adapters.worker_game import WorkerGame, state_of
from coplay.games.adapters.workers.seats import Views
from coplay.games.adapters.workers.worker import episode_seed
from coplay.matches.rollout import Table, nothing_done
from coplay.matches.worker_rollout import worker_rollout
from coplay.training import checkpoints
from coplay.training.records import read_rows
from coplay.training.run import RunFolder
from tests.processes import coplay_process

ENVS = Path(__file__).parents[1] / "games" / "adapters"
LITTLE = "pettingzoo:host_envs:little"

SMALL: dict[str, Any] = {
    "copies": 4,
    "rollout": 6,
    "network.hidden": (8,),
    "minibatches": 2,
    "epochs": 2,
    "checkpoint_every": 48,
    "episodes": 12,
    "steps": 192,
}
OPTIONS = [
    *("--copies", "4", "--rollout", "6", "--network.hidden", "8"),
    *("--minibatches", "2", "--epochs", "2"),
    *("--checkpoint-every", "48", "--episodes", "12", "--steps", "192", "--game.workers", "2"),
]


@pytest.fixture(autouse=True)
def envs_can_be_imported(monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(str(ENVS))


def workers_of(parent: int) -> list[int]:
    """The worker processes that a process has started and that still are."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            status, command = (path / "stat").read_text(), (path / "cmdline").read_text()
        except OSError:
            continue
        if (
            "coplay.games.adapters.workers.worker" in command
            and int(status.rsplit(")", 1)[1].split()[1]) == parent
        ):
            found.append(int(path.name))
    return found


def learned(folder: Path) -> dict[str, np.ndarray]:
    with np.load(RunFolder(folder).checkpoints().all()[-1]) as data:
        return {name: data[name] for name in data.files if name != checkpoints.NOTE}


def little(**fields: Any) -> WorkerGame:
    return coplay.make_game(LITTLE, **fields)  # type: ignore[return-value]


def test_the_trajectory_is_what_a_plain_loop_gives() -> None:
    """Agents that leave, are cut, and come late; against dictionaries of a single environment."""
    options = {"horizon": 4, "leave": {"a": 2}, "cut": {"b": 3}, "join": {"c": 1}}
    game = little(options=tuple(f"{name}={value}" for name, value in options.items()))
    steps, copies = 10, 2
    actions = np.random.default_rng(0).integers(0, 3, (steps, copies, 3))
    log_policy = np.random.default_rng(1).random((copies, 3, 3), np.float32)
    with game.pool(copies) as pool:
        state = state_of(pool.reset(7, 2))
        nothing = np.zeros((copies, 3))
        number: Any = np.zeros(copies, np.int32)
        counts: Any = (number, number, nothing, nothing)
        table: Any = Table(state, (), *counts, **nothing_done(copies, 3))
        table = table._replace(gained=nothing.astype(np.float32), stayed=nothing.astype(np.int32))
        shown: list[Any] = []

        def act(table: Table, t: int) -> tuple[Any, Any, Any, Any]:
            shown.append(jax.tree.map(np.copy, table))
            return actions[t], log_policy + t, (), ()

        table, played = worker_rollout(act, pool, 0, table, steps)

    import host_envs

    for copy in range(copies):
        env = host_envs.Little(**options)
        episode = age = 0
        seen, _ = env.reset(seed=episode_seed(7, 2, copy, 0))
        gained, stayed = np.zeros(3, np.float32), np.zeros(3)
        for t in range(steps):
            before = [agent in env.agents for agent in "abc"]
            assert played.alive[t, copy].tolist() == before
            assert shown[t].time[copy] == age and shown[t].episode[copy] == episode
            np.testing.assert_array_equal(shown[t].gained[copy], gained)
            for seat, agent in enumerate("abc"):
                if before[seat]:
                    np.testing.assert_array_equal(
                        played.observation.features[t, copy, seat], seen[agent]
                    )
            doing = {a: 10 + int(actions[t, copy, "abc".index(a)]) for a in env.agents}
            seen, rewards, ended, cut, _ = env.step(doing)
            age += 1
            for seat, agent in enumerate("abc"):
                assert played.reward[t, copy, seat] == np.float32(rewards.get(agent, 0))
                assert played.terminated[t, copy, seat] == ended.get(agent, False)
                assert played.truncated[t, copy, seat] == cut.get(agent, False)
                if cut.get(agent):
                    np.testing.assert_array_equal(played.final.features[t, copy, seat], seen[agent])
            gained, stayed = gained + played.reward[t, copy], stayed + before
            np.testing.assert_array_equal(played.episode_reward[t, copy], gained)
            np.testing.assert_array_equal(played.episode_steps[t, copy], stayed)
            assert played.over[t, copy] == (not env.agents)
            if not env.agents:
                episode, age, gained, stayed = episode + 1, 0, gained * 0, stayed * 0
                seen, _ = env.reset(seed=episode_seed(7, 2, copy, episode))
        for seat, agent in enumerate("abc"):
            if agent in env.agents:
                np.testing.assert_array_equal(played.last.features[copy, seat], seen[agent])
        assert table.time[copy] == age and table.episode[copy] == episode == 2
    np.testing.assert_array_equal(played.action, actions)
    np.testing.assert_array_equal(played.log_policy[3], log_policy + 3)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two seeds among a random player."""
    sys.path.insert(0, str(ENVS))
    folder = tmp_path_factory.mktemp("host") / "runs" / "whole"
    fields = {"workers": 2, "options": ("horizon=5", "masks=info", "leave={'c': 3}")}
    coplay.train(
        "ppo", LITTLE, folder, game_fields=fields, seeds=2, seating="ppo,random,ppo", **SMALL
    )
    sys.path.remove(str(ENVS))
    return folder


@pytest.mark.slow
def test_a_run_leaves_everything(whole: Path, capsys: Any) -> None:
    summary = json.loads((whole / "summary.json").read_text())
    assert summary["game"] == LITTLE and summary["episodes"] == 24 and summary["steps"] == 192
    assert [seat["steps"] for seat in summary["seats"]] == [5, 5, 3]
    assert [row["seed"] for row in summary["seeds"]] == [0, 1]
    rows = read_rows(whole / "metrics.jsonl")
    assert [row["step"] for row in rows] == [24 * (i // 2 + 1) for i in range(16)]
    assert rows[-1]["kl/seat_0"] > 0 and rows[-1]["kl/seat_1"] is None
    assert rows[3]["length/seat_2"] == 3
    seating = f"{whole}@seed=1,{whole}@seat=2@best,random"
    assert cli(["play", "--seating", seating, "--episodes", "6", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 6
    assert workers_of(os.getpid()) == []


@pytest.mark.slow
def test_a_seed_gives_the_same_bits_alone_and_with_other_workers(
    whole: Path, tmp_path: Path
) -> None:
    fields = {"workers": 1, "options": ("horizon=5", "masks=info", "leave={'c': 3}")}
    settings = SMALL | {"seating": "ppo,random,ppo", "seed": 1}
    coplay.train("ppo", LITTLE, tmp_path / "run", game_fields=fields, **settings, pictures=False)
    both, alone = learned(whole), learned(tmp_path / "run")
    for name in alone:
        np.testing.assert_array_equal(both[name][1], alone[name][0], err_msg=name)


@pytest.mark.slow
def test_players_learn(tmp_path: Path) -> None:
    """The reward grows with the action: 12 is best, and worth about 12.5 + seat a step."""
    settings = SMALL | {"steps": 4800, "copies": 16, "rollout": 10, "checkpoint_every": 1600}
    settings |= {"optimiser.learning_rate": 1e-2, "discount": 0.5, "epochs": 4}
    game = little(options=("horizon=5",))
    summary = coplay.train("ppo", game, tmp_path / "run", **settings, pictures=False)
    for seat, row in enumerate(summary["seats"]):  # random players get 5 less
        assert row["reward"] == pytest.approx(5 * (12.5 + seat), abs=1.2)


def test_matches_count_whole_episodes() -> None:
    game = little(options=("horizon=4", "leave={'a': 2}"), workers=2)
    record = coplay.play(game, "random,random,random", episodes=10, copies=3)
    assert record["episodes"] == 10
    assert [seat["steps"] for seat in record["seats"]] == [2, 4, 4]
    assert record["seats"][2]["reward"] == pytest.approx(4 * 13.5, abs=2)
    again = coplay.play(little(options=game.config.options, workers=1), "random,random,random", 10,
                        copies=3)  # fmt: skip
    assert again == record


TROUBLE = [
    ("raise", "failed", "the dice fell off the table"),
    pytest.param("hang", "gave no answer for 3 s", "_trouble", marks=pytest.mark.slow),
    pytest.param("exit", "died (exit code 3)", "no traceback", marks=pytest.mark.slow),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "what", "trace"), TROUBLE, ids=lambda x: str(x)[:8])
def test_a_worker_in_trouble_stops_the_run_which_can_go_on(
    tmp_path: Path, capsys: Any, kind: str, what: str, trace: str
) -> None:
    flag, folder = tmp_path / "trouble", tmp_path / "run"
    flag.touch()
    game = ["--game", LITTLE, "--game.timeout", "3"]
    game += ["--game.options", f"trouble=('{kind}', 3, '{flag}')", "horizon=40"]
    assert cli(["train", "ppo", *OPTIONS, *game, "--out", str(folder)]) == 1
    shown = capsys.readouterr().err
    assert re.search(rf"worker \d {re.escape(what)} at environment \d, episode 1, step 3", shown)
    assert trace in shown and f"--resume {folder}" in shown
    assert shown.count("Traceback") <= (kind == "raise")
    assert workers_of(os.getpid()) == []
    assert not list(folder.rglob("*.tmp")) and not (folder / "summary.json").exists()
    step = RunFolder(folder).checkpoints().last_step()
    assert 0 < step < 192 and f"up to step {step}" in shown
    flag.unlink()
    assert cli(["train", "ppo", "--resume", str(folder)]) == 0
    shown = capsys.readouterr().err
    assert "begin new episodes" in shown and "not bit for bit" in shown
    rows = read_rows(folder / "metrics.jsonl")
    assert [row["step"] for row in rows] == [24 * (i + 1) for i in range(8)]


@pytest.mark.slow
def test_a_run_goes_on_when_environments_are_restarted(tmp_path: Path) -> None:
    options = ("wrong=raise", "at=3", "after=2")
    game = coplay.make_game("pettingzoo:host_envs:unruly", options=options, restart_workers=True)
    more = SMALL | {"episodes": 128}
    summary = coplay.train("ppo", game, tmp_path / "run", quiet=True, pictures=False, **more)
    # Each of 4 copies plays 48 steps: a whole episode of 5 and a crash in the third, in turn.
    note = checkpoints.load_note(RunFolder(tmp_path / "run").checkpoints().all()[-1])
    assert note["restarts"] == 4 * 48 // 8 and summary["steps"] == 192
    # Each of 64 copies plays two episodes in the end: a whole one and a crash.
    assert summary["restarts"] == note["restarts"] + 64
    rows = read_rows(tmp_path / "run" / "metrics.jsonl")
    assert len(rows) == 8 and sum(row["episodes"] for row in rows) >= note["restarts"]


@pytest.mark.slow
def test_trouble_in_a_match(tmp_path: Path, capsys: Any) -> None:
    flag = tmp_path / "trouble"
    flag.touch()
    options = (f"trouble=('raise', 2, '{flag}')",)
    with pytest.raises(WorkerFailed, match=r"step 2(.|\n)*fell off the table"):
        coplay.play(little(options=options), "random,random,random", 20, copies=2)
    game = ["--game", LITTLE, "--game.options", *options]
    seating = ["--seating", "random,random,random", "--copies", "2"]
    assert cli(["play", *game, *seating]) == 1
    assert "fell off the table" in capsys.readouterr().err
    assert workers_of(os.getpid()) == []


def test_an_environment_that_breaks_its_promise_is_named(tmp_path: Path) -> None:
    """It sees what no mask allows, or is given no observation: said with the agent's name."""
    import host_envs

    class Blind(host_envs.Little):
        def step(self, actions: Any) -> Any:
            observations, *rest = super().step(actions)
            observations.pop("b", None)
            return observations, *rest

    class Bound(host_envs.Little):
        def _shown(self, agents: Any) -> Any:
            observations, infos = super()._shown(agents)
            return observations, {agent: {"action_mask": np.zeros(3)} for agent in infos}

    for kind, message in ((Blind, "'b' is in the game and got no"), (Bound, "'a' allows nothing")):
        game = coplay.from_pettingzoo(lambda kind=kind: kind(), kind.__name__)
        with pytest.raises(WorkerFailed, match=message):
            coplay.play(game, "random,random,random", 4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        signal.SIGTERM,
        *(pytest.param(s, marks=pytest.mark.slow) for s in (signal.SIGINT, signal.SIGKILL)),
    ],
)
def test_a_stopped_run_ends_its_workers_and_goes_on(tmp_path: Path, how: int) -> None:
    folder = tmp_path / "run"
    arguments = [*OPTIONS, "--steps", "200000", "--game", LITTLE, "--out", str(folder)]
    process = subprocess.Popen(
        coplay_process("train", "ppo", *arguments),
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ENVS), str(ENVS.parents[1])])},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.time() + 400  # on a busy machine, starting and compiling take minutes
    while RunFolder(folder).checkpoints().last_step() < 96:
        if process.poll() is not None or time.time() > deadline:
            process.kill()
            pytest.fail(f"the run did not get to step 96: {process.communicate()[1]}")
        time.sleep(0.02)
    workers = workers_of(process.pid)
    assert len(workers) == 2
    os.kill(process.pid, how)
    said = process.communicate(timeout=600)[1]
    if how != signal.SIGKILL:
        assert process.returncode == 130 and "--resume" in said
    deadline = time.time() + 60
    while any(Path(f"/proc/{number}/environ").exists() for number in workers):
        assert time.time() < deadline, "workers outlive their run"
        time.sleep(0.05)
    at = RunFolder(folder).checkpoints().last_step()
    more = str(at + 24)
    load = ["--load", "host_envs"]  # the module is no library that a run may name
    assert cli(["train", "ppo", "--resume", str(folder), "--steps", more, "--json", *load]) == 0


@pytest.mark.slow
def test_films(whole: Path, tmp_path: Path, capsys: Any) -> None:
    assert cli(["watch", str(whole), "--out", str(tmp_path / "e.gif")]) == 2
    assert "render mode 'rgb_array'" in capsys.readouterr().err
    assert cli(["watch", str(whole)]) == 2
    assert "--out film.gif" in capsys.readouterr().err
    settings = SMALL | {"steps": 24}
    coplay.train(
        "ppo", "pettingzoo:host_envs:Painted", tmp_path / "run", **settings, pictures=False
    )
    assert cli(["watch", str(tmp_path / "run"), "--out", str(tmp_path / "e.gif")]) == 0
    with Image.open(tmp_path / "e.gif") as film:
        assert getattr(film, "n_frames", 1) == 6
        film.seek(5)
        last = np.asarray(film.convert("RGB"))
    assert (last[4, :5] < 60).all() and (last[4, 5:10] == 255).all()


def test_a_truncated_seat_is_bootstrapped_from_its_last_view() -> None:
    """`final` holds the view after the cut, not the one after the reset."""
    game = little(options=("horizon=2",), workers=1)
    with game.pool(1) as pool:
        pool.reset(0)
        pool.step(np.zeros((1, 3), int))
        stepped = pool.step(np.ones((1, 3), int))
    assert stepped.over[0] and stepped.truncated[0].all() and not stepped.terminated[0].any()
    after, fresh = (Views(*(np.array(x) for x in views)) for views in stepped[:2])
    assert after.features[0, :, 1].tolist() == [2, 2, 2]
    assert fresh.features[0, :, 1].tolist() == [0, 0, 0]
