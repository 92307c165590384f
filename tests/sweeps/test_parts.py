"""Adaptations and packs that are made in parts are those that one process makes."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from coplay.api.evaluating import adapt
from coplay.api.partners import make_partners
from coplay.cli.main import run
from coplay.core.errors import RunStopped, UserError
from coplay.sweeps import parts
from coplay.sweeps.adapt_parts import read_order
from tests.training.test_merge import InProcess

TINY_BEST = {"stage": 64, "most": 64, "seeds": 1, "copies": 8, "episodes": 4}


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Jobs are done one by one in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(parts, "workers_for", lambda *given: InProcess(set()))
    monkeypatch.setattr("coplay.sweeps.workers.BREAK", 0.0)


@pytest.mark.slow
def test_an_adaptation_in_parts_is_the_same(here: None, tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "suite": "stag-hunt",
        "learners": "ns",
        "quiet": True,
        "normalise": False,
    }
    given |= {"steps": 64, "last": 64, "seeds": 1}
    adapt("ns", out="whole", **given)
    adapt("ns", out="split", on="local:2", **given)
    whole, split = (sorted((tmp_path / name / "sets").iterdir()) for name in ("whole", "split"))
    assert [one.name for one in whole] == [one.name for one in split] and len(whole) > 8
    for mine, theirs in zip(whole, split, strict=True):
        assert mine.suffix == ".png" or mine.read_bytes() == theirs.read_bytes(), mine
    assert not (tmp_path / "split.parts").exists()
    adapt("ns", out="split", on="local:2", **given)  # all of it is kept


def test_an_order_says_all(here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def stopped(workers: Any, jobs: list[Any], say: Any) -> None:
        seen.extend(jobs)
        raise RunStopped("enough")

    monkeypatch.setattr(parts, "run_jobs", stopped)
    given: dict[str, Any] = {"references": "best", "seeds": 2, "quiet": True, "best": TINY_BEST}
    with pytest.raises(RunStopped):
        adapt("ns", "nh,nh,ns", out="a", on="local:1", game_fields={"height": 5}, **given)
    (job,) = seen
    request, references = read_order(job.order)
    assert request.sets == ("nh,nh,ns",) and request.game.height == 5 and references == Path("best")
    assert request.adapt.seeds == 2 and request.best.stage == 64
    with pytest.raises(UserError, match="parts of another adaptation"):
        adapt("ns", "nh,nh,ns", out="a", on="local:1", **given)
    with pytest.raises(UserError, match="names 1 co-players"):
        adapt("ns", "nh", out="b", on="local:1", **given)
    assert not (tmp_path / "b").exists() and not (tmp_path / "b.parts").exists()


def test_workers_that_are_not_there_leave_nothing(
    here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"references": "best", "quiet": True, "best": TINY_BEST}

    def refused(*given: Any) -> None:
        raise UserError("no cluster answers")

    with monkeypatch.context() as patched:
        patched.setattr(parts, "workers_for", refused)
        with pytest.raises(UserError, match="no cluster answers"):
            adapt("ns", "nh,nh,ns", out="a", on="ray:there:1", **given)
        assert not list(tmp_path.iterdir())
    monkeypatch.setattr(parts, "run_jobs", lambda *given: stop("the cluster is lost"))
    with pytest.raises(RunStopped, match="is lost\nThe same command goes on where it was"):
        adapt("ns", "nh,nh,ns", out="a", on="local:1", **given)
    assert [path.name for path in tmp_path.iterdir()] == ["a.parts"]


def stop(words: str) -> None:
    raise RunStopped(words)


@pytest.mark.slow
def test_a_pack_in_parts_is_the_same(here: None, tmp_path: Path) -> None:
    given: dict[str, Any] = {"rules": 2, "selfplay_seeds": 1, "selfplay_steps": (256, 512)}
    given |= {"rewards": 2, "rewards_steps": 256, "copies": 8, "quiet": True}
    families = ["rules", "selfplay", "rewards"]
    make_partners("whole", "stag-hunt", families, **given)
    make_partners("split", "stag-hunt", families, on="local:2", **given)
    # The manifest has a checksum of the times, too.
    timed = {"times.json", "manifest.json"}
    names = {path.name for path in Path("whole").iterdir() if path.is_file()} - timed
    assert "asked.json" in names
    for name in names:
        assert Path("whole", name).read_bytes() == Path("split", name).read_bytes(), name
    runs = [sorted(one.name for one in Path(name, "runs").iterdir()) for name in ("whole", "split")]
    assert runs[0] == runs[1] and len(runs[0]) == 4
    assert not (tmp_path / "split.parts").exists()


@pytest.mark.slow
def test_players_adapt_at_the_end_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from coplay.api import evaluating

    monkeypatch.chdir(tmp_path)
    kept = {"reward": 1.0, "stderr": 0.0}
    monkeypatch.setattr("coplay.evaluation.adaptation.meetings.best_response", lambda *given: kept)
    monkeypatch.setattr(evaluating, "AdaptConfig", lambda: evaluating_small())
    small = ["train", "ppo", "--copies", "8", "--rollout", "8", "--steps", "64", "--episodes", "2"]
    small += ["--seeds", "2", "--minibatches", "1", "--no-pictures", "--out", "run"]
    assert run([*small, "--adapts", "nh"]) == 2 and not Path("run").exists()
    assert run([*small, "--adapts", "nh,nh,nh"]) == 0
    found = json.loads(Path("run/adapted.json").read_text())
    assert found["against"] == "nh,nh,nh" and len(found["scores"]) == 2
    assert run(["check", "run"]) == 0
    shutil.rmtree("run")


def evaluating_small() -> Any:
    from coplay.evaluation.adaptation.protocol import AdaptConfig

    return AdaptConfig(steps=64, last=64, seeds=1)
