"""Reading the written pages: their text, code, headings and links."""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

HOME = Path(__file__).parents[2]
DOCS = HOME / "docs"

GENERATED = (
    "reference/command-line.md",
    "reference/configuration.md",
    "reference/metrics.md",
    "reference/python-api.md",
)
"""Pages below docs/ that nobody writes by hand. The index of a shelf is another."""

_BLOCK = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>[\w-]*)[^\n]*\n(?P<code>.*?)"
    r"^(?P=indent)(?P=fence)[ ]*$",
    flags=re.DOTALL | re.MULTILINE,
)
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")


class Code(NamedTuple):
    """A piece of a page that is set as code. line: the number of its first line in the page.

    language: of a block, such as `python`; "" for a block without one; "inline" for a span.
    """

    page: Path
    line: int
    language: str
    text: str

    @property
    def where(self) -> str:
        """ "file:line"."""
        return f"{shown(self.page)}:{self.line}"


class Link(NamedTuple):
    """A link of a page. target: as written, the anchor included."""

    page: Path
    line: int
    target: str

    @property
    def where(self) -> str:
        """ "file:line"."""
        return f"{shown(self.page)}:{self.line}"


def shown(page: Path) -> str:
    """A page's path as a reader knows it."""
    return str(page.relative_to(HOME)) if page.is_relative_to(HOME) else str(page)


def docs_pages() -> list[Path]:
    """All pages and notebooks below docs/."""
    found = (*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb"))
    return sorted(path for path in found if ".ipynb_checkpoints" not in path.parts)


def all_pages() -> list[Path]:
    """All written pages: those of the site, and those that stand beside the code."""
    beside = (
        *("README.md", "README.zh.md", "CONTRIBUTING.md"),
        *("benchmarks/README.md", "examples/README.md"),
    )
    return [*(HOME / name for name in beside if (HOME / name).exists()), *docs_pages()]


@cache
def text_of(page: Path) -> str:
    """A page as Markdown. A notebook's cells follow each other, its code as blocks."""
    if page.suffix != ".ipynb":
        return page.read_text()
    return "\n\n".join(map(_cell_text, json.loads(page.read_text())["cells"])) + "\n"


def _cell_text(cell: dict) -> str:
    text = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return text
    if text.startswith(("%%bash", "%%sh", "!")):
        shell = re.sub(r"^(%%\w+.*\n|!)", "", text, flags=re.MULTILINE)
        return f"```sh\n{shell}\n```"
    return f"```python\n{re.sub(r'^[%!].*$', 'pass', text, flags=re.MULTILINE)}\n```"


def blocks_of(page: Path) -> Iterator[Code]:
    """The code blocks of a page, without the indentation of the block itself."""
    text = text_of(page)
    for block in _BLOCK.finditer(text):
        lines = block["code"].splitlines()
        plain = "\n".join(line.removeprefix(block["indent"]) for line in lines)
        yield Code(page, text.count("\n", 0, block.start("code")) + 1, block["language"], plain)


def _prose(text: str) -> str:
    """Markdown with its code blocks emptied; line numbers stay."""
    return _BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)


def spans_of(page: Path) -> Iterator[Code]:
    """Inline code of a page, line breaks as spaces."""
    prose = _prose(text_of(page))
    for span in _SPAN.finditer(prose):
        line = prose.count("\n", 0, span.start()) + 1
        yield Code(page, line, "inline", " ".join(span[1].split()))


def lines_of_code(page: Path) -> Iterator[Code]:
    """Lines of all blocks that are not Python, continued ones joined and without comments; and all
    inline code."""
    for block in blocks_of(page):
        if block.language in ("python", "pycon", "json", "toml"):
            continue
        first, lines = block.line, block.text.splitlines()
        while lines:
            line, number = lines.pop(0), first
            first += 1
            while line.endswith("\\") and lines:
                line, first = line[:-1] + lines.pop(0), first + 1
            text = re.sub(r"(^|\s)#\s.*", "", line).strip().removeprefix("$ ")
            yield block._replace(line=number, text=text)
    yield from spans_of(page)


def links_of(page: Path) -> Iterator[Link]:
    """Links and pictures of a page."""
    prose = _SPAN.sub(lambda span: " " * len(span[0]), _prose(text_of(page)))
    for found in _LINK.finditer(prose):
        yield Link(page, prose.count("\n", 0, found.start()) + 1, found[1])


def slug(heading: str) -> str:
    """The anchor that the site gives a heading."""
    plain = re.sub(r"[`*]|\[|\]\([^)]*\)", "", heading)
    ascii_ = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_).strip().lower())


def headings_of(text: str) -> Iterator[tuple[int, str]]:
    """(level, words) of every heading of a page's text."""
    for marks, words in re.findall(r"^(#{1,6})\s+(.+?)\s*#*$", _prose(text), flags=re.MULTILINE):
        yield len(marks), words


def anchors_of(text: str) -> set[str]:
    """What links may name behind the sign # of the address of a page with this text."""
    found: set[str] = set()
    for _, words in headings_of(text):
        own = re.search(r"\{\s*#([\w.-]+)[^}]*\}$", words)
        name = own[1] if own else slug(words)
        number, first = 1, name
        while name in found:
            name, number = f"{first}_{number}", number + 1
        found.add(name)
    return found | set(re.findall(r"<a (?:id|name)=\"([\w-]+)\"", text))


def title_of(page: Path) -> str:
    """The first heading of a page."""
    for level, words in headings_of(text_of(page)):
        if level == 1:
            return re.sub(r"\s*\{[^}]*\}$|`", "", words)
    raise ValueError(f"{shown(page)} has no heading '# …'")


def with_links(text: str, change: Callable[[str], str]) -> str:
    """Markdown with every link's target changed; code stays as it is."""
    code = re.compile(f"{_BLOCK.pattern}|{_SPAN.pattern}", flags=_BLOCK.flags)
    pieces, place = [], 0
    for found in code.finditer(text):
        pieces += [_changed(text[place : found.start()], change), found[0]]
        place = found.end()
    return "".join([*pieces, _changed(text[place:], change)])


def _changed(prose: str, change: Callable[[str], str]) -> str:
    return _LINK.sub(lambda link: link[0].replace(link[1], change(link[1]), 1), prose)
