"""Pages hold together: code that parses, links that lead somewhere, shelves, lines, spelling."""

import ast
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tools.docs.shelves import shelves
from tools.docs.source import (
    DOCS,
    GENERATED,
    HOME,
    all_pages,
    anchors_of,
    blocks_of,
    docs_pages,
    links_of,
    shown,
    text_of,
    title_of,
)

LONGEST_LINE = 120
SHELVES = {shelf.folder for shelf in shelves()}


@cache
def shelved() -> list[Path]:
    """Pages on a shelf, and the landing page."""
    return [
        page for page in docs_pages() if page.parent.name in SHELVES or page == DOCS / "index.md"
    ]


def parses(code: str) -> bool:
    try:
        ast.parse(textwrap.dedent(code).replace("…", "..."))
    except SyntaxError:
        return False
    return True


def test_python_of_pages_parses() -> None:
    faults = [
        code.where
        for page in all_pages()
        for code in blocks_of(page)
        if code.language == "python" and not parses(code.text)
    ]
    assert not faults, f"not Python: {faults}"


def docstrings() -> Iterator[tuple[str, str, int]]:
    """(file:line, docstring, its indentation) of the package and its examples."""
    for path in sorted([*(HOME / "coplay").rglob("*.py"), *(HOME / "examples").glob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node, clean=False)
                if text:
                    yield f"{shown(path)}:{node.body[0].lineno}", text, node.body[0].col_offset


def test_examples_of_docstrings_parse() -> None:
    """Indented paragraphs of docstrings are Python; formulas are not looked at."""
    found, faults = 0, []
    for where, text, margin in docstrings():
        for paragraph in re.split(r"\n\s*\n", text)[1:]:
            lines = [line for line in paragraph.splitlines() if line.strip()]
            deep = all(line.startswith(" " * (margin + 4)) for line in lines)
            if lines and deep and re.search(r"\bcoplay\.|\bimport |\bdef |\bclass ", paragraph):
                found += 1
                if not parses(paragraph):
                    faults.append(where)
    assert found > 20 and not faults, f"not Python: {faults}"


# --- links --------------------------------------------------------------------------------------


@cache
def generated_anchors(name: str) -> set[str]:
    """The anchors of a generated page; of the index of a shelf, none."""
    if name not in GENERATED:
        return set()
    from tools.docs.build import MAKERS

    return anchors_of(MAKERS[name]())


def wrong_link(page: Path, target: str) -> str:
    """What is wrong with a link; empty if nothing is."""
    path, _, anchor = target.partition("#")
    if "://" in path or path.startswith("mailto:"):
        return ""
    meant = (page.parent / path).resolve() if path else page
    name = str(meant.relative_to(DOCS)) if meant.is_relative_to(DOCS) else ""
    index = name.endswith("/index.md") and name.split("/")[0] in SHELVES
    if not meant.exists() and (name in GENERATED or index):
        return "" if not anchor or anchor in generated_anchors(name) else f"no anchor {anchor}"
    if not meant.exists():
        return f"there is no {path}"
    if anchor and meant.suffix in (".md", ".ipynb") and anchor not in anchors_of(text_of(meant)):
        return f"{path or shown(page)} has no anchor {anchor}"
    return ""


def test_links_lead_somewhere() -> None:
    faults = [
        f"{link.where}: {fault}"
        for page in all_pages()
        for link in links_of(page)
        if (fault := wrong_link(page, link.target))
    ]
    assert not faults, "\n" + "\n".join(faults)


def test_wrong_links_are_seen() -> None:
    pytest.importorskip("nbformat")  # pages that are generated need the extra docs
    page = HOME / "README.md"
    assert "no nowhere.md" in wrong_link(page, "nowhere.md")
    assert "no anchor nothing" in wrong_link(page, "CONTRIBUTING.md#nothing")
    assert not wrong_link(page, "CONTRIBUTING.md#add-a-game")
    assert not wrong_link(page, "docs/reference/command-line.md#coplay-play")
    assert wrong_link(page, "docs/reference/command-line.md#coplay-dance")


# --- shelves, lines, words ----------------------------------------------------------------------


def test_every_page_is_on_a_shelf() -> None:
    lost = {shown(page) for page in set(docs_pages()) - set(shelved())}
    assert not lost, f"move them into one of {sorted(SHELVES)} below docs/: {sorted(lost)}"


def test_shelves_name_pages_that_are_there() -> None:
    there = {str(page.relative_to(DOCS).with_suffix("")) for page in docs_pages()}
    there |= {name.removesuffix(".md") for name in GENERATED}
    named = {f"{shelf.folder}/{name}" for shelf in shelves() for name in shelf.first}
    assert not named - there, "docs/shelves.toml names them"


@pytest.mark.parametrize("page", shelved(), ids=shown)
def test_pages_begin_with_their_title(page: Path) -> None:
    assert text_of(page).startswith(f"# {title_of(page)}"[:4])


def test_lines_are_short() -> None:
    """Tables and lines with an address are as long as they must be."""
    faults = [
        f"{shown(page)}:{number} has {len(line)} characters"
        for page in [*shelved(), HOME / "README.md", HOME / "CONTRIBUTING.md"]
        if page.suffix == ".md"
        for number, line in enumerate(page.read_text().splitlines(), 1)
        if len(line) > LONGEST_LINE and not line.startswith("|") and "://" not in line
    ]
    assert not faults, "\n" + "\n".join(faults)


def test_words_are_spelled_right(tmp_path: Path) -> None:
    """Pages, the package with its docstrings, examples and tools."""
    pytest.importorskip("codespell_lib")
    for page in docs_pages():
        if page.suffix == ".ipynb":  # outputs are no words
            (tmp_path / f"{page.stem}.md").write_text(text_of(page))
    beside = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "coplay", "examples", "benchmarks")
    places = [*beside, "tools", *(shown(p) for p in docs_pages() if p.suffix == ".md")]
    command = [sys.executable, "-m", "codespell_lib", *places, str(tmp_path)]
    ended = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=False)
    assert not ended.returncode and not ended.stderr, ended.stdout + ended.stderr


def test_what_the_site_ships_of_others_is_unchanged() -> None:
    from hashlib import sha256

    folder = DOCS / "vendor"
    rows = tomllib.loads((folder / "versions.toml").read_text())
    listed = {
        folder / name / file: digest
        for name, row in rows.items()
        for file, digest in row["files"].items()
    }
    there = {path for path in folder.rglob("*") if path.is_file()} - {folder / "versions.toml"}
    assert there == set(listed)
    assert all(sha256(path.read_bytes()).hexdigest() == digest for path, digest in listed.items())
