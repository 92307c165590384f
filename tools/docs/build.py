"""From docs/ to a site: pages are copied, generated and linked in build/docs, and set by Zensical
in build/site. Nothing is fetched from outside."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tools.docs import command_line, configuration, metrics, python_api
from tools.docs.notebooks import write_page
from tools.docs.shelves import navigation, shelves, write_index
from tools.docs.source import DOCS, GENERATED, HOME, text_of, with_links

BUILD = HOME / "build"
SETTINGS = HOME / "zensical.toml"

MAKERS: dict[str, Callable[[], str]] = dict(
    zip(
        GENERATED,
        (command_line.page, configuration.page, metrics.page, python_api.page),
        strict=True,
    )
)
"""Generated page -> what makes it."""

SHIM = "https://unpkg.com/iframe-worker/shim"
"""What Zensical links to in every page of an offline site."""


def build(out: Path = BUILD, docs: Path = DOCS) -> Path:
    """Build the site into the folder `out`; gives the folder of the site."""
    pages = out / "docs"
    prepare(pages, docs)
    (out / "zensical.toml").write_text(settings(pages))
    run_zensical(out)
    link_shim(out / "site")
    return out / "site"


def prepare(pages: Path, docs: Path = DOCS) -> None:
    """Write all pages as Markdown below `pages`, with links that hold on the site."""
    shutil.rmtree(pages, ignore_errors=True)
    left_out = shutil.ignore_patterns(".ipynb_checkpoints", "shelves.toml")
    shutil.copytree(docs, pages, ignore=left_out)
    text_of.cache_clear()
    for notebook in sorted(pages.rglob("*.ipynb")):
        write_page(notebook, notebook.with_suffix(".md"))
    for page in sorted(pages.rglob("*.md")):
        link(page, docs / page.relative_to(pages), pages, docs)
    for name, make in MAKERS.items():
        (pages / name).parent.mkdir(exist_ok=True)
        (pages / name).write_text(make())
    for shelf in shelves():
        write_index(shelf, pages)


def link(page: Path, source: Path, pages: Path, docs: Path) -> None:
    """Change the links of a page so that they hold on the site.

    page: to be changed. source: what it was copied from. Files beside docs/ that a page names are
    copied into the folder `files`; a notebook's page is named as Markdown.
    """

    def change(target: str) -> str:
        path, sign, anchor = target.partition("#")
        if not path or "://" in path or path.startswith("mailto:"):
            return target
        meant = (source.parent / path).resolve()
        if meant.is_relative_to(docs):
            there = pages / meant.relative_to(docs)
            # A page's own notebook is a download.
            if there.suffix == ".ipynb" and there.with_suffix(".md") != page:
                there = there.with_suffix(".md")
        elif meant.is_file():
            there = pages / "files" / meant.relative_to(HOME)
            if not there.exists():
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(meant, there)
                if there.suffix == ".md":
                    link(there, meant, pages, docs)
        else:
            return target
        return f"{Path(os.path.relpath(there, page.parent)).as_posix()}{sign}{anchor}"

    page.write_text(with_links(page.read_text(), change))


def settings(pages: Path) -> str:
    """The settings of Zensical, with folders and navigation."""
    added = f'docs_dir = "docs"\nsite_dir = "site"\nnav = {_toml(navigation(pages))}\n'
    return SETTINGS.read_text().replace("[project]\n", f"[project]\n{added}", 1)


def _toml(value: object) -> str:
    """Lists, dictionaries and texts as TOML in a line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml(k)} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def run_zensical(out: Path) -> None:
    """Set the pages in HTML; warnings, such as of a link that leads nowhere, are errors."""
    shutil.rmtree(out / "site", ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    ended = subprocess.run(command, cwd=out, capture_output=True, text=True, check=False)
    if ended.returncode or not (out / "site" / "index.html").exists():
        said = re.sub(r"\x1b\[[\d;]*m", "", ended.stdout + ended.stderr).partition("Traceback")[0]
        raise SystemExit(f"Zensical could not build the site:\n{said}")


def link_shim(site: Path) -> None:
    """Replace the address of a script of the offline search by the file that the site ships."""
    for page in site.rglob("*.html"):
        text = page.read_text()
        ours = os.path.relpath(site / "vendor" / "iframe-worker" / "shim.js", page.parent)
        page.write_text(text.replace(SHIM, Path(ours).as_posix()))
