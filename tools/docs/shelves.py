"""The shelves of the site: which pages there are, in which order, under which titles."""

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

from tools.docs.source import DOCS, text_of, title_of

ORDER = DOCS / "shelves.toml"


class Shelf(NamedTuple):
    """A folder below docs/. words: what one finds there. first: pages in their order, without the
    ending; other pages follow by their names."""

    folder: str
    title: str
    words: str
    first: tuple[str, ...]


def shelves() -> list[Shelf]:
    """All shelves in their order."""
    rows = tomllib.loads(ORDER.read_text())
    return [
        Shelf(folder, row["title"], row["words"], tuple(row.get("first", ())))
        for folder, row in rows.items()
    ]


def pages_on(shelf: Shelf, docs: Path) -> list[Path]:
    """The pages of a shelf in their order, without its index."""
    found = {path.stem: path for path in sorted((docs / shelf.folder).glob("*.md"))}
    found.pop("index", None)
    names = [*(name for name in shelf.first if name in found), *found]
    return [found[name] for name in dict.fromkeys(names)]


def write_index(shelf: Shelf, docs: Path) -> None:
    """The first page of a shelf, with a line for each page; one that was written by hand stays."""
    index = docs / shelf.folder / "index.md"
    pages = pages_on(shelf, docs)
    if index.exists() or not pages:
        return
    rows = [f"- [{title_of(page)}]({page.name}): {first_sentence(page)}" for page in pages]
    index.write_text(f"# {shelf.title}\n\n{shelf.words}\n\n" + "\n".join(rows) + "\n")


def first_sentence(page: Path) -> str:
    """The first sentence of a page's prose, without links."""
    paragraphs = re.sub(r"^```.*?^```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n", paragraphs):
        text = " ".join(paragraph.split())
        if text and text[0] not in "#!|<-*>:[{$":
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
            return re.split(r"(?<=[.?!])\s|(?<=。)|:$", plain)[0]
    return ""


def navigation(docs: Path) -> list[dict[str, str | list]]:
    """The navigation as Zensical's setting `nav` wants it."""
    found: list[dict[str, str | list]] = [{"Home": "index.md"}]
    for shelf in shelves():
        pages = pages_on(shelf, docs)
        if pages:
            entries: list = [f"{shelf.folder}/index.md"]
            entries += [{title_of(page): f"{shelf.folder}/{page.name}"} for page in pages]
            found.append({shelf.title: entries})
    return found
