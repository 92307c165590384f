"""The shelves of the site: which pages there are, in which order, under which titles."""

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

from tools.docs.source import DOCS, text_of, title_of

ORDER = DOCS / "shelves.toml"


class Shelf(NamedTuple):
    """A folder below docs/. words: what one finds there. groups: heading -> pages in their order,
    without the ending; other pages follow by their names. A shelf without headings is one group."""

    folder: str
    title: str
    words: str
    groups: dict[str, tuple[str, ...]]

    @property
    def first(self) -> tuple[str, ...]:
        """All pages that are named, in their order."""
        return tuple(name for names in self.groups.values() for name in names)


def shelves() -> list[Shelf]:
    """All shelves in their order."""
    rows = tomllib.loads(ORDER.read_text())
    found = []
    for folder, row in rows.items():
        groups = row.get("groups", {"": row.get("first", [])})
        named = {title: tuple(names) for title, names in groups.items()}
        found.append(Shelf(folder, row["title"], row["words"], named))
    return found


def pages_on(shelf: Shelf, docs: Path) -> list[Path]:
    """The pages of a shelf in their order, without its index."""
    found = {path.stem: path for path in sorted((docs / shelf.folder).glob("*.md"))}
    found.pop("index", None)
    names = [*(name for name in shelf.first if name in found), *found]
    return [found[name] for name in dict.fromkeys(names)]


def groups_on(shelf: Shelf, docs: Path) -> dict[str, list[Path]]:
    """The pages of a shelf under its headings; those that are not named come last, without one or
    under "More"."""
    pages = {page.stem: page for page in pages_on(shelf, docs)}
    found = {
        title: [pages.pop(name) for name in names if name in pages]
        for title, names in shelf.groups.items()
    }
    found.setdefault("" if "" in found else "More", []).extend(pages.values())
    return {title: those for title, those in found.items() if those}


def write_index(shelf: Shelf, docs: Path) -> None:
    """The first page of a shelf, with a line for each page; one that was written by hand stays."""
    index = docs / shelf.folder / "index.md"
    groups = groups_on(shelf, docs)
    if index.exists() or not groups:
        return
    parts = [f"# {shelf.title}\n\n{shelf.words}"]
    for title, pages in groups.items():
        rows = [f"- [{title_of(page)}]({page.name}): {first_sentence(page)}" for page in pages]
        parts.append((f"## {title}\n" if title else "") + "\n".join(rows))
    index.write_text("\n\n".join(parts) + "\n")


def first_sentence(page: Path) -> str:
    """The first sentence of a page's prose, without links."""
    paragraphs = re.sub(r"^```.*?^```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n", paragraphs):
        text = " ".join(paragraph.split())
        if text and text[0] not in "#!|<-*>:[{$":
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
            return re.sub(r":$", ".", re.split(r"(?<=[.?!])\s|(?<=。)", plain)[0])
    return ""


def navigation(docs: Path) -> list[dict[str, str | list]]:
    """The navigation as Zensical's setting `nav` wants it."""
    found: list[dict[str, str | list]] = [{"Home": "index.md"}]
    for shelf in shelves():
        entries: list = []
        for title, pages in groups_on(shelf, docs).items():
            links = [{title_of(page): f"{shelf.folder}/{page.name}"} for page in pages]
            entries += [{title: links}] if title else links
        if entries:
            found.append({shelf.title: [f"{shelf.folder}/index.md", *entries]})
    return found
