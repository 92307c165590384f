"""The page of a run: one HTML file that needs nothing else, beside the run's other files.

    run_data(folder)   what it shows, ready for JSON
    run_page(folder)   the page as text

`draw(data)` of `web/run.js` shows the data in `<main id="run">`. Called again with newer data, it
changes what is different.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path

from coplay.core.files import replacing
from coplay.core.reading import shown_in_line
from coplay.reports.page import page_alone, web_text
from coplay.reports.run_data import Data, run_data
from coplay.training.run import RunFolder

STYLES = ("vendor/uPlot.min.css", "frame.css", "run.css")
SCRIPTS = ("vendor/uPlot.iife.min.js", "dom.js", "plots.js", "run.js")
"""In this order; `run.js` declares `draw(data)`."""
DRAW = 'draw(JSON.parse(document.getElementById("data").textContent));'
SHARE = 50
"""While a run trains, its page takes less than a fiftieth of the time."""


def run_page(folder: str | Path) -> str:
    """The page of the run in a folder."""
    return page_of(run_data(folder))


def page_of(data: Data) -> str:
    """The page of a run from its data."""
    # In JSON, "<" only stands inside of texts; nothing in them ends the block.
    packed = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    shown = ("application/json", packed.replace("<", "\\u003c"))
    scripts = [*map(web_text, SCRIPTS), DRAW]
    return page_alone(shown_in_line(data["name"]), "run", shown, map(web_text, STYLES), scripts)


def write_run_page(folder: str | Path, out: Path | None = None) -> Path:
    """Write the page, whole or not at all, and return its path: `index.html` in the run's folder
    unless another is named."""
    path = RunFolder(Path(folder)).page_file if out is None else out
    text = run_page(folder)
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return path


class KeptPage:
    """Writes the page of a run that trains, whenever it is called, but seldom enough to take less
    than a fiftieth of the time.

    say: is told if it cannot be written. The training goes on then.
    """

    def __init__(self, folder: RunFolder, say: Callable[[str], None]):
        self.folder, self.say = folder, say
        self.next = 0.0

    def __call__(self) -> None:
        begun = time.monotonic()
        if begun < self.next:
            return
        try:
            write_run_page(self.folder.path)
        # A page is worth no training: whatever is wrong with it is said, and that is all.
        except Exception as error:
            self.say(f"note: no page of the run: {error}")
            self.next = float("inf")
            return
        now = time.monotonic()
        self.next = now + SHARE * (now - begun)
