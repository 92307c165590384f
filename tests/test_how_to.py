"""The Python of how-to pages runs as it stands there. `make test-docs` has it."""

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tools.docs.source import DOCS, HOME, Code, blocks_of, shown, text_of

PAGES = sorted((DOCS / "how-to").glob("*.md"))
RUNS = re.compile(r"\bruns/([\w-]+)")
OF_READERS = """
from mpe2 import simple_spread_v3


def MyEnv(size):
    return simple_spread_v3.parallel_env(N=2)
"""
"""What pages take from a reader: an environment with two agents."""


def scripts(page: Path) -> list[list[Code]]:
    """The Python of a page as programs; each begins with imports."""
    found: list[list[Code]] = []
    for block in blocks_of(page):
        if block.language == "python":
            if re.match(r"import |from ", block.text):
                found.append([])
            if found:
                found[-1].append(block)
    return found


@cache
def lines_of_examples() -> set[str]:
    return {
        line.strip()
        for path in (HOME / "examples").glob("*.py")
        for line in path.read_text().splitlines()
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_does_not_run_by_itself_is_of_an_example(page: Path) -> None:
    """Blocks before the first import show parts of a file in examples/, which runs."""
    whole = [block for script in scripts(page) for block in script]
    parts = [block for block in blocks_of(page) if block.language == "python"]
    faults = [
        f"{block.where}: {line}"
        for block in parts
        if block not in whole
        for line in block.text.splitlines()
        if line.strip() not in lines_of_examples()
    ]
    assert not faults, "in no file of examples/, and without imports:\n" + "\n".join(faults)


SHORT = ["--steps", "1024", "--copies", "32", "--rollout", "8", "--episodes", "32"]
SHORT_OF = {"hop": ["--search.simulations", "4", "--search.draws", "1"]}
"""Options of runs that pages only look at; of a learner, more. A HOP that has hardly learned plays
long episodes, and would think a long time in each step."""


def train_runs(page: Path, folder: Path, environment: dict[str, str]) -> None:
    """Short runs for those that a page's Python names and does not train itself."""
    text = "\n".join(block.text for script in scripts(page) for block in script)
    trained = set(re.findall(r"coplay\.train\([^)]*\"runs/([\w-]+)\"", text))
    for name in sorted(set(RUNS.findall(text)) - trained):
        asked = re.search(rf"coplay train ([\w-]+) [^\n]*--out runs/{name}\b", text_of(page))
        player = asked[1] if asked else name
        command = [sys.executable, "-m", "coplay", "train", player, "--out", f"runs/{name}"]
        command += [*SHORT, *SHORT_OF.get(player, [])]
        subprocess.run(command, cwd=folder, env=environment, check=True)


@pytest.mark.docs
@pytest.mark.parametrize("page", [page for page in PAGES if scripts(page)], ids=shown)
def test_python_of_how_to_pages_runs(page: Path, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(HOME), "MPLBACKEND": "agg"}
    train_runs(page, tmp_path, environment)
    for number, script in enumerate(scripts(page)):
        file = tmp_path / f"script_{number}.py"
        file.write_text(OF_READERS + "\n" + "\n\n".join(block.text for block in script) + "\n")
        ended = subprocess.run(
            [sys.executable, file.name],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not ended.returncode, f"{script[0].where}:\n{ended.stderr[-2000:]}"
