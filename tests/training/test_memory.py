"""A run that needs more memory than there is names the copies that fit."""

import pytest

from coplay.core.errors import RunStopped
from coplay.training import memory
from coplay.training.config import RunConfig
from coplay.training.memory import refuse_too_much


def need(run: RunConfig) -> int:
    return 1000 + 10 * run.copies


@pytest.mark.parametrize("there, copies", [(2500, 144), (1700, 64), (1100, 10)])
def test_the_largest_that_fits_is_named(
    there: int, copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "memory", lambda: there)
    run = RunConfig(copies=256)
    with pytest.raises(RunStopped, match=f"--copies {copies}$"):
        refuse_too_much(need(run), run, need)
    refuse_too_much(need(RunConfig(copies=copies)), run, need)


def test_where_nothing_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "memory", lambda: 500)
    with pytest.raises(RunStopped, match="shorter --rollout"):
        refuse_too_much(need(RunConfig()), RunConfig(), need)
