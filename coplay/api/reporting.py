"""The page of a run from Python."""

from pathlib import Path

from coplay.core.errors import UserError
from coplay.reports.run_page import run_page, write_run_page
from coplay.training.opened import OpenedRun


def report(run: str | Path, out: str | Path | None = None) -> Path:
    """Write the page of a run and return its path: what was run, learning curves, evaluations,
    metrics, and how to go on. Every run of this version has one already.

    run: the folder. out: the file; default: `index.html` in the folder, for which nobody else may
        be writing there.

        print(coplay.report("runs/ppo", "page.html"))
    """
    folder, path = Path(run), None if out is None else Path(out)
    if path is not None and (path.suffix.lower() != ".html" or path.is_dir()):
        raise UserError(f"--out {path}: the page of a run is a file that ends in .html")
    run_page(folder)  # whatever is wrong with the run is said before anything is written
    if path is not None:
        return write_run_page(folder, path)
    opened = OpenedRun(folder)
    try:
        written = write_run_page(folder)
        opened.settle()
    finally:
        opened.close()
    return written
