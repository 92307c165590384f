"""Commands run once, results say what made them. No command is really run here."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from coplay.core.errors import Interrupted, RunStopped, UserError
from coplay.reproduce import runner
from coplay.reproduce.experiment import MAIN, Experiment, Findings, Measurement, over_runs


def read(outputs: Mapping[str, Any], rows: Any) -> Findings:
    table = {"columns": ["what", "figure"], "rows": [["a", over_runs([outputs["a"]["x"], 2.0])]]}
    return Findings("It is so.", [["x", 1]], {MAIN: table})


A, B = Measurement("a", "train ppo --out runs/a"), Measurement("b", "collect --out d", False)
EXPERIMENT = Experiment("so", "So", "Is it so?", "0 and 1", 1, (A, B), read)


class Programs:
    """Stands for the programs that are called. ends: command -> exit code and what it prints."""

    def __init__(self, ends: dict[str, tuple[int, str]]):
        self.ends = ends
        self.called: list[list[str]] = []

    def __call__(self, command: list[str], folder: Path, path: str) -> tuple[int, str]:
        self.called.append(command[3:])
        return self.ends.get(command[3], (0, '{"x": 1.0}'))


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Programs:
    made = Programs({})
    monkeypatch.setattr(runner, "call", made)
    return made


def test_a_result_says_what_made_it(programs: Programs, tmp_path: Path) -> None:
    said: list[str] = []
    result = runner.reproduce(EXPERIMENT, tmp_path / "work", tmp_path / "out", said.append)
    assert json.loads((tmp_path / "out" / "so.json").read_text()) == result
    assert [command["command"] for command in result["commands"]] == [A.shown, B.shown]
    assert result["tables"][MAIN]["rows"][0][1]["runs"] == [1.0, 2.0]
    assert result["question"] == "Is it so?" and result["seeds"] == "0 and 1"
    assert set(result["machine"]) == {"cores", "cpu", "system", "python", "jax"}
    assert programs.called == [A.arguments, B.arguments]
    assert said == [f"[1 of 2] {A.shown}", f"[2 of 2] {B.shown}"]


def test_finished_commands_are_not_run_twice_by_the_same_program(
    programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs.ends["collect"] = (1, "")
    with pytest.raises(RunStopped, match="coplay collect --out d failed with exit code 1"):
        runner.reproduce(EXPERIMENT, tmp_path, tmp_path, print)
    del programs.ends["collect"]
    runner.reproduce(EXPERIMENT, tmp_path, tmp_path, print)
    assert [words[0] for words in programs.called] == ["train", "collect", "collect"]
    monkeypatch.setattr(runner, "sources", lambda: "another program")
    runner.reproduce(EXPERIMENT, tmp_path, tmp_path, print)
    assert [words[0] for words in programs.called[3:]] == ["train", "collect"]


def test_a_run_of_another_program_does_not_go_on_as_this_ones(
    programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is finished already would count as made by this program."""

    def trains(command: list[str], folder: Path, path: str) -> tuple[int, str]:
        (folder / "runs" / "a").mkdir(parents=True, exist_ok=True)
        (folder / "runs" / "a" / "config.json").write_text("{}")
        return programs(command, folder, path)

    monkeypatch.setattr(runner, "call", trains)
    for program in ("before", "after"):
        monkeypatch.setattr(runner, "sources", lambda program=program: program)
        runner.reproduce(EXPERIMENT, tmp_path, tmp_path, print)
        assert programs.called[-2] == A.arguments


@pytest.mark.parametrize("text", ["{", "[1]", '{"output": 1}', '{"seconds": 1}', "\xff"])
def test_a_damaged_record_is_named(programs: Programs, tmp_path: Path, text: str) -> None:
    runner.reproduce(EXPERIMENT, tmp_path, tmp_path, print)
    kept = runner.kept_file(A, tmp_path / runner.sources()[:8])
    kept.write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match=rf"{kept.name}.*remove the file, and coplay train ppo"):
        runner.reproduce(EXPERIMENT, tmp_path, tmp_path, print)


def test_an_interrupted_run_goes_on(programs: Programs, tmp_path: Path) -> None:
    (tmp_path / "runs" / "a").mkdir(parents=True)
    (tmp_path / "runs" / "a" / "config.json").write_text("{}")
    runner.run_step(A, tmp_path)
    assert programs.called == [["train", "ppo", "--resume", "runs/a", "--json"]]


def test_a_failed_audit_is_a_result(programs: Programs, tmp_path: Path) -> None:
    programs.ends["audit"] = (1, '{"verdict": "fail"}')
    assert (
        runner.run_step(Measurement("c", "audit wiring"), tmp_path)["output"]["verdict"] == "fail"
    )


def test_a_stopped_command_stops_the_experiment(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        runner.call(["sh", "-c", "exit 130"], tmp_path, "")
    assert runner.call(["sh", "-c", "echo $PYTHONPATH; exit 3"], tmp_path, "x") == (3, "x\n")


def test_work_of_others_is_what_is_not_ours(
    programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, values in {"busy_seconds": [100.0, 110.0], "own_seconds": [3.0, 7.0]}.items():
        monkeypatch.setattr(runner, name, iter(values).__next__)
    monkeypatch.setattr(runner.time, "perf_counter", iter([50.0, 53.0]).__next__)
    record = runner.run_step(A, tmp_path)
    assert record["seconds"] == 3.0 and record["other_cores"] == 2.0
