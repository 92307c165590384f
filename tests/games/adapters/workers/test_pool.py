"""Workers in trouble: restarts, cut episodes, children."""

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from host_envs import Unruly

from coplay.core.errors import WorkerFailed
from coplay.games.adapters.workers.pool import Pool, Stepped
from coplay.games.adapters.workers.seats import read_seats
from coplay.games.adapters.workers.source import Source

SEATS = read_seats(Unruly(), "unruly")
ACTION = np.zeros((2, 3), int)


def pool(*options: str, said: list[str] | None = None, **settings: Any) -> Pool:
    source = Source("host_envs", "unruly", options)
    say = (said if said is not None else []).append
    return Pool(source, SEATS, copies=2, workers=1, say=say, **settings)


def kept(stepped: Stepped) -> Stepped:
    """A step that stays as it is when the next one is played."""
    arrays = (type(x)(*map(np.copy, x)) if isinstance(x, tuple) else x.copy() for x in stepped)
    return Stepped(*arrays)


@pytest.mark.parametrize("wrong", ["raise", "exit", "nan"])
def test_an_environment_that_fails_is_restarted_and_its_episode_cut(wrong: str) -> None:
    said: list[str] = []
    with pool(f"wrong={wrong}", "after=2", said=said, sets=2, restart=True) as workers:
        workers.reset(5, number=1)
        workers.reset(5)
        steps = [kept(workers.step(ACTION)) for _ in range(7)]
        other = kept(workers.step(ACTION, number=1))
        last = kept(workers.step(ACTION))
    # The first episode has its 5 steps; the second fails in its second one.
    assert [bool(step.over.all()) for step in steps] == [False] * 4 + [True, False, True]
    before, failed = steps[5], steps[6]
    assert failed.truncated.all() and not failed.terminated.any() and not failed.reward.any()
    np.testing.assert_array_equal(failed.after.features, before.after.features)
    assert (failed.fresh.features[..., 1] == 0).all() and failed.fresh.alive.all()
    # A process takes all its sets with it; one that only raises, none.
    assert other.over.all() == (wrong == "exit")
    assert not last.over.any() and (last.after.features[..., 1] == 1).all()
    assert workers.restarts == (1 if wrong == "exit" else 2)
    reason = {"raise": "dice", "exit": "exit code 3", "nan": "agent 'b' is nan"}[wrong]
    assert reason in said[0] and "episode 1, step 2" in said[0]
    assert f"restarted {workers.restarts} times" in said[1] and len(said) == 2


@pytest.mark.parametrize("wrong", ["raise", pytest.param("exit", marks=pytest.mark.slow)])
def test_what_fails_again_and_again_is_given_up(wrong: str) -> None:
    with (
        pool(f"wrong={wrong}", "at=1", restart=True) as workers,
        pytest.raises(WorkerFailed, match="4 times in a row"),
    ):
        workers.reset(5)
        for _ in range(10):
            workers.step(ACTION)
    assert not workers.handles


def test_breaches_are_said_once_for_all_workers_or_refused() -> None:
    said: list[str] = []
    with pool("wrong='no reward'", said=said) as workers:
        workers.reset(5)
        for _ in range(8):
            workers.step(ACTION)
    assert len(said) == 1 and "'b' got no reward" in said[0] and "step 2" in said[0]
    with (
        pool("wrong='no reward'", strict=True) as workers,
        pytest.raises(WorkerFailed, match="step 2:\nagent 'b' got no reward"),
    ):
        workers.reset(5)
        for _ in range(8):
            workers.step(ACTION)


def test_children_of_an_environment_end_with_the_pool(tmp_path: Path) -> None:
    note = tmp_path / "child"
    with pool("wrong=child", f"note={str(note)!r}") as workers:
        workers.reset(5)
        for _ in range(2):
            workers.step(ACTION)
        child = int(note.read_text())
        os.kill(child, 0)
    for _ in range(100):
        if not alive(child):
            break
        time.sleep(0.05)
    assert not alive(child)


def alive(process: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"
