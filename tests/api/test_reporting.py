"""The page of a run from Python."""

from pathlib import Path

import pytest

import coplay
from coplay.training.opened import OpenedRun
from tests.reports.test_run_page import make_run


def test_a_page_in_the_folder_is_in_the_manifest(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", updates=2)
    assert coplay.report(run.path) == run.page_file
    states = {one.name: one.state for one in coplay.check(run.path)[0].findings}
    assert states["index.html"] == "whole"


def test_a_page_elsewhere_changes_nothing_in_the_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", updates=2)
    before = sorted(run.path.iterdir())
    opened = OpenedRun(tmp_path / "run")  # as a run that trains
    with pytest.raises(coplay.UserError, match="is being written by process"):
        coplay.report(run.path)
    assert coplay.report(run.path, tmp_path / "page.html").exists()
    opened.close()
    assert sorted({*run.path.iterdir()} - {run.path / ".lock"}) == before


def test_what_is_no_page_is_refused(tmp_path: Path) -> None:
    with pytest.raises(coplay.UserError, match="holds no run"):
        coplay.report(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    run = make_run(tmp_path / "run", updates=2)
    with pytest.raises(coplay.UserError, match=r"a file that ends in \.html"):
        coplay.report(run.path, tmp_path / "page.png")
