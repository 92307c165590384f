"""Pages as a browser reads them."""

from html.parser import HTMLParser
from pathlib import Path

EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;</title></style>"

PLAIN = ("head", "title", "style", "body", "h1", "h2", "table", "tr", "code")
ALLOWED: dict[str, set[str]] = {
    **{tag: set() for tag in PLAIN},
    "html": {"lang"},
    "meta": {"charset", "name", "content", "http-equiv"},
    "main": {"class"},
    "div": {"class"},
    "p": {"class"},
    "th": {"class"},
    "td": {"class"},
    "img": {"src", "alt"},
    "a": {"href"},
}
"""Element -> its attributes."""
INSIDE = {"src": "data:image/png;base64,", "href": "./"}
"""Attribute -> how its value begins."""


class Reader(HTMLParser):
    """Collects what is no part of our pages, and all texts."""

    def __init__(self) -> None:
        super().__init__()
        self.strange: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            inside = name not in INSIDE or (value or "").startswith(INSIDE[name])
            if name not in ALLOWED.get(tag, set()) or not inside:
                self.strange.append(f"{tag} {name}={value}")
            self.texts.append(value or "")
        if tag not in ALLOWED:
            self.strange.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read_page(path: Path) -> list[str]:
    """The texts of a page, which has no element and no attribute but those of ours."""
    reader = Reader()
    reader.feed(path.read_text())
    reader.close()
    assert not reader.strange, reader.strange
    return reader.texts
