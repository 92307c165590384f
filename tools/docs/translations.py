"""Pages in Chinese beside those in English: the same code, commands, figures and pictures.

python -m tools.docs.translations    copies code and outputs of tutorials into the Chinese ones
"""

import json
import re
from collections import Counter
from pathlib import Path

from tools.docs.source import DOCS, HOME, blocks_of, links_of, shown, spans_of, text_of

CHINESE = DOCS / "zh"


def pairs() -> list[tuple[Path, Path]]:
    """(English, Chinese) of all pages that are there in both."""
    notebooks = sorted(CHINESE.glob("*.ipynb"))
    return [
        (HOME / "README.md", HOME / "README.zh.md"),
        *((DOCS / "tutorials" / path.name, path) for path in notebooks),
    ]


def with_code(english: str, chinese: str) -> str:
    """A Chinese notebook with the code and the outputs of the English one."""
    ours, theirs = json.loads(chinese), json.loads(english)
    kinds = [[cell["cell_type"] for cell in one["cells"]] for one in (ours, theirs)]
    if kinds[0] != kinds[1]:
        raise ValueError("the cells of the two notebooks are not of the same kinds")
    cells = [
        theirs_cell if theirs_cell["cell_type"] == "code" else own
        for own, theirs_cell in zip(ours["cells"], theirs["cells"], strict=True)
    ]
    return json.dumps(ours | {"cells": cells}, indent=1, ensure_ascii=False) + "\n"


def differences(english: Path, chinese: Path) -> list[str]:
    """What is not the same in two pages, each in words."""
    found = []
    for words, what in {
        "code": _code,
        "commands and names": lambda page: Counter(span.text for span in spans_of(page)),
        "figures": lambda page: Counter(re.findall(r"\d[\d.,]*\d|\d", _prose(page))),
        "links and pictures": _targets,
    }.items():
        first, second = what(english), what(chinese)
        if first != second:
            found.append(f"{shown(chinese)}: {words} differ: {_first(first, second)}")
    return found


def _code(page: Path) -> list[str]:
    """The blocks of a page, without comments: those are translated."""
    return [re.sub(r"[ ]*# .*", "", block.text) for block in blocks_of(page)]


def _prose(page: Path) -> str:
    """The words of a page alone."""
    text = re.sub(r"^```.*?^```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`]*`|\]\([^)]*\)|<!--.*?-->", "", text)


def _targets(page: Path) -> set[str]:
    """Where links lead, by the English pages; those between the languages are left out."""
    found = set()
    for link in links_of(page):
        if "://" in link.target:
            found.add(link.target)
            continue
        meant = (page.parent / link.target).resolve()
        if meant.parent == CHINESE:
            meant = DOCS / "tutorials" / meant.name
        if "README" not in meant.name and meant.name not in (page.name, "index.md"):
            found.add(shown(meant))
    return found


def _first(first: object, second: object) -> str:
    """The first difference of two collections."""
    if isinstance(first, list) and isinstance(second, list):
        pairs = [pair for pair in zip(first, second, strict=False) if pair[0] != pair[1]]
        return f"{pairs[0][0]!r} and {pairs[0][1]!r}" if pairs else "there are more blocks in one"
    if isinstance(first, Counter) and isinstance(second, Counter):
        return f"{dict(first - second)} only in English, {dict(second - first)} only in Chinese"
    assert isinstance(first, set) and isinstance(second, set)
    return f"{first - second} only in English, {second - first} only in Chinese"


def main() -> None:
    for english, chinese in pairs():
        if chinese.suffix == ".ipynb":
            chinese.write_text(with_code(english.read_text(), chinese.read_text()))


if __name__ == "__main__":
    main()
