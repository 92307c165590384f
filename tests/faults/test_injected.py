"""Errors of the system at every operation on files: one sentence, and what was saved stays."""

import errno
import random

import pytest

from coplay.api.checking import check
from coplay.core import files
from coplay.core.errors import RunStopped, UserError, system_error
from coplay.training.run import RunFolder
from tests.faults.disks import FailingDisk
from tests.faults.tiny import outcome, quick_folder, tiny, train_tiny

__all__ = ["tiny"]


@pytest.mark.parametrize("count", [5, pytest.param(0, marks=pytest.mark.faults)])
def test_every_operation_may_fail(tiny: None, count: int) -> None:
    iterations = 8
    with quick_folder() as folder:
        train_tiny(folder / "whole", iterations)
        wanted = outcome(folder / "whole")
        disk = FailingDisk()
        with files.using(disk):
            train_tiny(folder / "counted", iterations)
        cases = [
            (number, code)
            for number, kind in enumerate(disk.kinds)
            for code in ((errno.EIO,) if kind == "sync" else (errno.ENOSPC, errno.EIO))
        ]
        for number, code in random.Random(0).sample(cases, count) if count else cases:
            place = folder / f"{number}-{code}"
            failing = files.using(FailingDisk(number, code))
            with pytest.raises((RunStopped, UserError, OSError)) as caught, failing:
                train_tiny(place, iterations)
            words = str(caught.value) if not isinstance(caught.value, OSError) else ""
            assert (words or system_error(caught.value) or "").strip(), (number, code)
            begun = RunFolder(place).exists()
            if RunFolder(place).checkpoints().all():
                (report,) = check(place)
                assert report.whole, (number, code, report.bad)
            train_tiny(place, iterations, resume=begun)
            assert outcome(place) == wanted, (number, code, disk.kinds[number])
