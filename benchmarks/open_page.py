"""How soon the page of a long run is there: 10 seeds, 5000 rows, all metrics of HOP+.

The page is written as after a run and opened in headless Chromium, a fresh window each time. Told
is the time from the call of the address until the page can be read: its first curves are
drawn, and two frames have been painted.

    python benchmarks/open_page.py --seeds 10 --rows 5000 --repeats 7
"""

import argparse
import json
import math
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from coplay.api.training import make_config
from coplay.reports.run_page import write_run_page
from coplay.training.metrics import GROUPS
from coplay.training.run import RunFolder

SEATS, ACTIONS = 4, ("stay", "up", "down", "left", "right")
PAINTED = """() => new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
})"""


def names() -> list[str]:
    """Metrics of HOP+ as its rows name them."""
    found = []
    for learners, table in GROUPS.values():
        if learners and "hop-plus" not in learners:
            continue
        for name in table:
            kinds = [name.replace("<name>", one) for one in ACTIONS] if "<name>" in name else [name]
            for kind in kinds:
                stem, slash, _ = kind.partition("/")
                found += [f"{stem}/seat_{seat}" for seat in range(SEATS)] if slash else [kind]
    return found


def make_run(folder: Path, seeds: int, rows: int) -> Path:
    """A folder as a run leaves it, with so many rows in all."""
    updates = rows // seeds
    run = RunFolder(folder)
    run.path.mkdir(parents=True)
    run.write_config(
        make_config("hop-plus", "stag-hunt", {}, {"steps": 100 * updates, "seeds": seeds})
    )
    measured = names()
    with open(run.metrics_file, "w") as file:
        for row in range(1, updates + 1):
            for seed in range(seeds):
                values: dict[str, Any] = {"step": 100 * row, "seed": seed, "seconds": float(row)}
                values |= {
                    name: math.sin(row / 300 + seed + place) for place, name in enumerate(measured)
                }
                file.write(json.dumps(values) + "\n")
    return run.path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=7)
    given = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        run = make_run(Path(folder) / "run", given.seeds, given.rows)
        begun = time.monotonic()
        page = write_run_page(run)
        print(
            f"{given.seeds} seeds, {given.rows} rows of {len(names())} metrics, "
            f"{run.joinpath('metrics.jsonl').stat().st_size / 1e6:.0f} MB: the page has "
            f"{page.stat().st_size / 1e6:.2f} MB, written in {time.monotonic() - begun:.1f} s"
        )
        spent = []
        for _ in range(given.repeats):
            tab = browser.new_context(viewport={"width": 1600, "height": 1000}).new_page()
            tab.goto(page.as_uri())
            spent.append(tab.evaluate(PAINTED) / 1000)
            tab.context.close()
        median = statistics.median(spent)
        print(f"opened: {min(spent):.2f} to {max(spent):.2f} s, median {median:.2f} s")


if __name__ == "__main__":
    main()
