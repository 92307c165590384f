"""coplay reproduce: what it says before anything runs."""

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
