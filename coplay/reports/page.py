"""Pages to look at: one self-contained HTML file, pictures inside it."""

import base64
import html
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from coplay.core.files import replacing

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.6rem;
         border-bottom: 1px solid #ddd; }
img { max-width: 100%; }
.verdict { padding: 0.8rem 1rem; border-radius: 0.4rem; }
.pass { background: #e3f2e6; } .fail { background: #fbe3e1; }
.mark-pass { color: #1d7a34; font-weight: 600; } .mark-fail { color: #b3261e; font-weight: 600; }
"""


def web_text(name: str) -> str:
    """A file of `coplay/reports/web`: a style, a script, a template."""
    return (files("coplay.reports") / "web" / name).read_text(encoding="utf-8")


def filled(template: str, parts: Mapping[str, str]) -> str:
    """A template with each `{name}` replaced once, in the order of the parts. A part may hold
    braces itself."""
    done, rest = "", template
    for name, part in parts.items():
        before, rest = rest.split(f"{{{name}}}", 1)
        done += before + part
    return done + rest


def write_page(path: Path, title: str, parts: Iterable[str]) -> None:
    """One HTML file of the parts, which are HTML already; it appears whole or not at all."""
    body = "\n".join(parts)
    text = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body><h1>{html.escape(title)}</h1>\n{body}\n</body></html>\n"
    )
    with replacing(path) as partial:
        Path(partial).write_text(text)


def heading(text: str) -> str:
    return f"<h2>{html.escape(text)}</h2>"


def paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{html.escape(text)}</p>'


def picture(path: Path, words: str) -> str:
    """A PNG file, inside the page; words: what it shows, for those who cannot see it."""
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img src="data:image/png;base64,{data}" alt="{html.escape(words)}">'


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are plain text; a cell "passed" or "FAILED" is coloured."""
    classes = {"passed": "mark-pass", "FAILED": "mark-fail"}

    def cell(text: str) -> str:
        return f'<td class="{classes.get(text, "")}">{html.escape(text)}</td>'

    head = "".join(f"<th>{html.escape(title)}</th>" for title in titles)
    lines = "".join(f"<tr>{''.join(map(cell, row))}</tr>\n" for row in rows)
    return f"<table><tr>{head}</tr>\n{lines}</table>"
