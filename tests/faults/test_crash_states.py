"""A crash after any operation on files: nothing that was saved is lost, and the run ends as one
that was never interrupted."""

import random
from pathlib import Path

import pytest

from coplay.api.checking import check
from coplay.core import files
from coplay.training.run import RunFolder
from tests.faults.disks import RecordingDisk, Snapshot, put_back
from tests.faults.tiny import outcome, quick_folder, tiny, train_tiny

__all__ = ["tiny"]
MANY = pytest.mark.faults


def crash_states(folder: Path, iterations: int) -> list[Snapshot]:
    """The folder after every operation of a run, and of one that was resumed in the middle."""
    disk = RecordingDisk(folder / "run")
    with files.using(disk):
        train_tiny(folder / "run", iterations // 2)
        train_tiny(folder / "run", iterations, resume=True)
    return disk.states


def newest(state: Snapshot) -> int:
    """The step of the newest checkpoint that has its name."""
    names = [Path(name).stem for name in state if name.startswith("checkpoints/step-")]
    return max((int(name.removeprefix("step-")) for name in names), default=-1)


@pytest.mark.parametrize("count", [6, pytest.param(1000, marks=MANY)])
def test_every_crash_can_be_resumed(tiny: None, count: int) -> None:
    iterations = 16 if count < 100 else 120  # half of it ends at a checkpoint
    with quick_folder() as folder:
        states = crash_states(folder, iterations)
        wanted = outcome(folder / "run")
        picked = random.Random(count).sample(range(len(states)), min(count, len(states)))
        assert len(picked) == count
        for number in picked:
            place = folder / f"crash-{number}"
            put_back(states[number], place)
            begun = RunFolder(place).exists()
            step = newest(states[number])
            if step >= 0:
                (report,) = check(place)
                assert report.whole, (number, report.bad)
            said = train_tiny(place, iterations, resume=begun)
            if step >= 0:
                assert f"going on at step {step}" in said, (number, said)
            assert outcome(place) == wanted, number
            assert not list(place.rglob(".*.tmp")), number
            (report,) = check(place)
            assert report.whole, (number, report.bad)
