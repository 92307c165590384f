"""A sweep from beginning to end, with runs that compute nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coplay.api.checking import check
from coplay.api.sweeping import new_sweep, resumed_sweep, run_sweep
from coplay.api.training import make_config
from coplay.core import files
from coplay.core.errors import Interrupted, RunStopped, UserError
from coplay.core.lock import Lock
from coplay.reports.listing import overviews
from coplay.sweeps import sweep as loop
from coplay.sweeps.config import SweepConfig
from coplay.sweeps.folder import SweepFolder, SweepState
from tests.faults.disks import FailingDisk
from tests.sweeps.fakes import FakeWorkers, Listener, write_run
from tests.trust.pages import read_page

Outcome = Callable[[dict[str, Any], int], float | int]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("sweep", "workers"):
        monkeypatch.setattr(f"coplay.sweeps.{module}.BREAK", 0.0)


def good(config: dict[str, Any], times: int) -> float:
    """Best at a discount of 0.95, better with more epochs; fresh seeds have less luck."""
    learner = config["learner"]
    luck = 0.5 if config["run"]["seed"] == 0 else 0.0
    return 2.0 - abs(learner["discount"] - 0.95) + 0.01 * learner["epochs"] + luck


def make(fields: dict[str, Any] | None = None, **sweep: Any) -> SweepState:
    run = {"seeds": 3, "steps": 4096, "copies": 16, "rollout": 16} | (fields or {})
    config = make_config("ppo", "stag-hunt", {}, run)
    vary = {"discount": "0.9,0.95,0.99", "epochs": "1,2"}
    return new_sweep(config, SweepConfig(**{"audit": False, "measure": False} | sweep), vary)


def go(
    monkeypatch: pytest.MonkeyPatch,
    state: SweepState,
    out: Path,
    outcome: Outcome = good,
    resume: bool = False,
    page: bool = False,
) -> tuple[SweepState, FakeWorkers, Listener]:
    workers, listener = FakeWorkers(outcome), Listener()
    monkeypatch.setattr(loop, "workers_for", lambda *given: workers)
    if page:
        return run_sweep(state, SweepFolder(out), resume, listener), workers, listener
    return loop.Sweep(state, SweepFolder(out), listener, resume).run(), workers, listener


def test_a_grid_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "sweep"
    done, workers, _ = go(monkeypatch, make(), out, page=True)
    assert [one.state for one in done.trials] == ["finished"] * 6 and workers.closed
    best = done.best()
    assert best is not None and best.setting == {"discount": 0.95, "epochs": 2}
    assert best.interval is not None and len(best.values) == 3
    # The best once more, with seeds that no trial had; its luck is gone.
    assert done.confirmed is not None and done.confirmed.value == pytest.approx(2.03)
    assert best.value == pytest.approx(2.53)
    again = json.loads((out / "settings" / "best.json").read_text())["run"]
    assert (again["seed"], again["seeds"]) == (3, 3)
    texts = " ".join(read_page(out / "index.html"))
    assert texts.index("2.030") < texts.index("2.530")
    for words in ("discount and epochs", "Importance", "coplay train ppo --config"):
        assert words in texts
    rows = (out / "sweep.csv").read_text().splitlines()
    assert len(rows) == 7 and rows[0].startswith("trial,discount,epochs,state,objective")
    assert SweepFolder(out).read().as_json() == done.as_json()


def test_it_is_listed_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go(monkeypatch, make(), tmp_path / "sweep")
    found = next(one for one in overviews(tmp_path) if one["kind"] == "sweep")
    assert found["words"] == "6 trials finished, over discount, epochs"
    assert check(tmp_path)[0].whole and check(tmp_path)[0].kind == "sweep"
    file = tmp_path / "sweep" / "sweep.json"
    file.write_text(file.read_text().replace('"finished"', '"finishes"', 1))
    assert not check(tmp_path)[0].whole


def test_a_trial_that_fails_is_tried_three_times_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outcome(config: dict[str, Any], times: int) -> float | int:
        if config["learner"]["discount"] == 0.95:
            return 1
        if config["learner"]["epochs"] == 2 and times < 3:
            return -9
        return good(config, times)

    done, workers, listener = go(monkeypatch, make(), tmp_path / "sweep", outcome)
    states = {tuple(one.setting.values()): one.state for one in done.trials}
    assert states[0.95, 1] == states[0.95, 2] == "failed" and states[0.9, 2] == "finished"
    assert workers.begun["002"] == 3 and workers.begun["001"] == 3 and workers.begun["000"] == 1
    assert any("failed 3 times" in text for text in listener.said)
    # Failed trials are tried again when the sweep is taken up.
    state = resumed_sweep(SweepFolder(tmp_path / "sweep"), {})
    again, workers, _ = go(monkeypatch, state, tmp_path / "sweep", good, resume=True)
    assert {one.state for one in again.trials} == {"finished"}
    assert set(workers.begun) == {"002", "003", "best"}


def test_wrong_input_and_lost_machines_count_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outcome(config: dict[str, Any], times: int) -> float | int:
        if config["learner"]["discount"] == 0.9:
            return 2
        return -99 if times < 6 else good(config, times)

    done, workers, _ = go(monkeypatch, make(confirm=0), tmp_path / "sweep", outcome)
    assert [one.state for one in done.trials] == ["failed"] * 2 + ["finished"] * 4
    assert workers.begun["000"] == 1 and workers.begun["002"] == 6


@pytest.mark.slow
def test_ctrl_c_and_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome(config: dict[str, Any], times: int) -> float:
        if config["learner"]["discount"] == 0.95:
            raise KeyboardInterrupt
        return good(config, times)

    out = tmp_path / "sweep"
    with pytest.raises(Interrupted, match=f"coplay sweep --resume {out}"):
        go(monkeypatch, make(), out, outcome)
    state = resumed_sweep(SweepFolder(out), {})
    done, workers, _ = go(monkeypatch, state, out, good, resume=True)
    assert [one.state for one in done.trials] == ["finished"] * 6
    assert not {"000", "001"} & set(workers.begun)
    whole, _, _ = go(monkeypatch, make(), tmp_path / "whole")
    assert whole.trials == done.trials


def test_a_refusal_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "sweep"
    for state in (
        lambda: make(objective="team"),
        lambda: make(objective="seat_9"),
        lambda: make(objective="seat_0", prune=True),
        lambda: make({"copies": 17}),
        lambda: make(on="remote"),
    ):
        with pytest.raises(UserError):
            go(monkeypatch, state(), out)
    assert not out.exists()
    held = Lock(out)
    with pytest.raises(UserError, match="is being written"):
        go(monkeypatch, make(), out)
    held.release(discard=True)
    go(monkeypatch, make(confirm=0), out)
    with pytest.raises(UserError, match="already holds a sweep"):
        go(monkeypatch, make(), out)


def test_a_sweep_that_no_trial_survives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done, _, _ = go(monkeypatch, make(), tmp_path / "sweep", lambda *given: 2, page=True)
    assert done.best() is None and done.confirmed is None
    assert "No trial has finished" in " ".join(read_page(tmp_path / "sweep" / "index.html"))


@pytest.mark.slow
def test_a_full_disk_and_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the sweep writes when the disk is full, it says how to go on, and loses nothing."""
    whole, _, _ = go(monkeypatch, make(), tmp_path / "whole")
    disk = FailingDisk()
    with files.using(disk):
        go(monkeypatch, make(), tmp_path / "counted")
    assert disk.count > 20
    for number in range(0, disk.count, max(1, disk.count // 12)):
        out = tmp_path / f"at-{number}"
        with files.using(FailingDisk(number)), pytest.raises((RunStopped, UserError)) as stopped:
            go(monkeypatch, make(), out)
        if (out / "sweep.json").exists():
            assert f"coplay sweep --resume {out}" in str(stopped.value), number
            state = resumed_sweep(SweepFolder(out), {})
            done, _, _ = go(monkeypatch, state, out, resume=True)
        else:
            done, _, _ = go(monkeypatch, make(), out)
        assert done.trials == whole.trials, number


def test_the_score_of_an_adaptation(tmp_path: Path) -> None:
    (tmp_path / "adapted.json").write_text('{"against": "nh,nh,nh", "scores": [0.5, 0.75]}')
    assert loop.objective_values(tmp_path, "adapted") == [0.5, 0.75]
    for wrong in ({"objective": "adapted"}, {"against": "nh,nh,nh"}):
        with pytest.raises(UserError, match="belong together"):
            SweepConfig(**wrong)


def test_objectives(tmp_path: Path) -> None:
    write_run(tmp_path, 1.5, seeds=2)
    assert loop.objective_values(tmp_path, "team_mean") == [1.5, 1.51]
    assert loop.objective_values(tmp_path, "seat_3") == [1.5, 1.5]
    with pytest.raises(UserError, match="unknown score"):
        loop.objective_values(tmp_path, "won")
