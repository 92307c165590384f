"""coplay reproduce: what it says before anything runs."""

from pathlib import Path

import pytest

from coplay.cli.main import run
from coplay.reproduce.registry import EXPERIMENTS


def test_without_a_name_all_experiments_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce"]) == 0
    said = capsys.readouterr().out
    for experiment in EXPERIMENTS.values():
        assert f"{experiment.name} " in said and experiment.question in said


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "scriptd"]) == 2
    assert "unknown experiment 'scriptd': did you mean 'scripted'?" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--out", "--work"])
def test_a_file_in_place_of_a_folder_is_refused_before_anything_runs(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("")
    assert run(["reproduce", "scripted", option, str(tmp_path / "taken" / "below")]) == 2
    assert f"{option} " in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
