"""A run that needs more memory than there is names the copies that fit."""

from pathlib import Path

import pytest

from coplay.cli.main import run as command
from coplay.core.errors import UserError
from coplay.games.registry import make_game
from coplay.training import memory
from coplay.training.config import RunConfig
from coplay.training.memory import refuse_too_large, refuse_too_much


def need(run: RunConfig) -> int:
    return 1000 + 10 * run.copies


@pytest.mark.parametrize("there, copies", [(2500, 144), (1700, 64), (1100, 10)])
def test_the_largest_that_fits_is_named(
    there: int, copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "ROOM", 1.0)
    monkeypatch.setattr(memory, "free_memory", lambda: there)
    run = RunConfig(copies=256)
    with pytest.raises(UserError, match=f"--copies {copies}$"):
        refuse_too_much(need(run), run, need)
    refuse_too_much(need(RunConfig(copies=copies)), run, need)


def test_where_nothing_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_memory", lambda: 500)
    with pytest.raises(UserError, match="shorter --rollout"):
        refuse_too_much(need(RunConfig()), RunConfig(), need)


def test_views_that_cannot_fit_are_refused_uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    game = make_game("matrix:stag-hunt")
    monkeypatch.setattr(memory, "ROOM", 1.0)
    monkeypatch.setattr(memory, "free_memory", lambda: 10**7)
    compiled = []

    def need(run: RunConfig) -> int:
        compiled.append(run.copies)
        return 1000 * run.copies

    refuse_too_large(RunConfig(), game, need)
    assert not compiled
    with pytest.raises(UserError, match=r"at least .* GB of memory, .* give --copies 9[5-9]\d\d$"):
        refuse_too_large(RunConfig(copies=2**20), game, need)
    assert max(compiled) < 10_000


def test_copies_that_are_tried_divide_as_the_learner_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "ROOM", 1.0)
    monkeypatch.setattr(memory, "free_memory", lambda: 10**8)
    game, tried = make_game("stag-hunt"), []

    def need(run: RunConfig) -> int:
        tried.append(run.copies)
        return 1000 + 10_000 * run.copies

    for copies in (24 * 4001, 24 * 50_001):
        with pytest.raises(UserError) as found:
            refuse_too_large(RunConfig(copies=copies), game, need, unit=24)
        tried.append(int(str(found.value).rpartition("--copies ")[2]))
    with pytest.raises(UserError, match=r"--copies 9\d\d\d$"):
        refuse_too_much(need(RunConfig(copies=24 * 9000)), RunConfig(copies=24 * 9000), need, 24)
    assert len(tried) > 6 and not any(copies % 24 for copies in tried)


@pytest.mark.slow
def test_copies_that_do_not_fit_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(memory, "ROOM", 1.0)
    monkeypatch.setattr(memory, "free_memory", lambda: 4 * 2**20)
    small = ["train", "ppo", "--game", "matrix:stag-hunt", "--network.hidden", "4", "--no-pictures"]
    small += ["--rollout", "8", "--minibatches", "1", "--steps", "64", "--episodes", "2"]
    out = ["--out", str(tmp_path / "run")]
    assert command([*small, *out, "--copies", "8192"]) == 2
    said = capsys.readouterr().err
    assert "this run needs 0.0 GB of memory" in said and not list(tmp_path.iterdir())
    fits = said.rpartition("--copies ")[2].strip()
    assert command([*small, *out, "--copies", fits]) == 0
