"""Pages to look at: one self-contained HTML file, pictures inside it."""

import base64
import html
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from coplay.core.files import replacing
from coplay.core.invocation import invocation
from coplay.core.reading import shown_in_line
from coplay.core.version import VERSION

NUMBER = re.compile(r"[-+±]?[\d,]*\.?\d+(e[-+]?\d+)?( ?%)?( ± [\d,]*\.?\d+)?")
ONE_LINE = 40
"""Letters of a cell of a table that stand on one line."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What a browser may fetch and execute for a page: nothing."""


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


def page_alone(
    title: str, main: str, data: tuple[str, str], styles: Iterable[str], scripts: Iterable[str]
) -> str:
    """One HTML file that shows data by scripts and needs nothing else. title: plain text. main:
    name of the element that the scripts fill. data: its type, and itself as text that ends no
    block of HTML. styles, scripts: texts, in this order."""
    parts = {
        "title": html.escape(title),
        "style": "\n".join(styles),
        "main": main,
        "type": data[0],
        "data": data[1],
        "script": "\n".join(scripts),
    }
    return filled(web_text("alone.html"), parts)


def write_page(path: Path, title: str, parts: Iterable[str]) -> None:
    """One HTML file of the parts, which are HTML already; it appears whole or not at all. It ends
    with the command that made it."""
    body = "\n".join(parts)
    text = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{html.escape(title)}</title><style>{web_text('frame.css')}</style></head>\n"
        f'<body><main class="text"><h1>{html.escape(title)}</h1>\n{body}\n'
        f"{_made_by()}\n</main></body></html>\n"
    )
    with replacing(path) as partial:
        Path(partial).write_text(text, encoding="utf-8")


def _made_by() -> str:
    words = f"coplay {VERSION}"
    if (command := invocation()) is None:
        return heading("How it was made") + paragraph(f"From Python, with {words}.")
    return heading("How it was made") + command_line(command) + paragraph(f"With {words}.", "faint")


def command_line(command: str) -> str:
    """A command as it is typed."""
    return f"<p><code>{html.escape(shown_in_line(command))}</code></p>"


def heading(text: str) -> str:
    return f"<h2>{html.escape(text)}</h2>"


def paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{html.escape(text)}</p>'


def link_to_run(out: Path, run: str) -> str:
    """A link from a page in the folder `out` to the page of a run, such as an entry of a seating
    names; nothing if there is none."""
    target = Path(run.split("@")[0]) / "index.html"
    if not target.is_file():
        return ""
    # With a dot in front, no name of a folder is read as a scheme such as "javascript:".
    place = "./" + quote(Path(os.path.relpath(target.resolve(), out.resolve())).as_posix())
    words = html.escape(f"the page of {shown_in_line(run)}")
    return f'<p><a href="{html.escape(place)}">{words}</a></p>'


def picture(path: Path, words: str) -> str:
    """A PNG file, inside the page; words: what it shows, for those who cannot see it."""
    data = base64.b64encode(path.read_bytes()).decode()
    source, alt = f"data:image/png;base64,{data}", html.escape(words)
    return f'<p class="picture"><img src="{source}" alt="{alt}"></p>'


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are plain text; a cell "passed" or "FAILED" is coloured. A column of numbers is set to
    the right. Only sentences are broken into lines, none of them short: a table that is wider than
    the window moves sideways."""
    classes = {"passed": "mark-pass", "FAILED": "mark-fail"}
    rows = [list(row) for row in rows]
    numbers = [_are_numbers(column) for column in zip(*rows, strict=True)] if rows else []

    def line(kind: str, cells: Sequence[str]) -> str:
        found = ""
        for index, text in enumerate(cells):
            is_number = index < len(numbers) and numbers[index]
            look = "number" if is_number else classes.get(text, "") if kind == "td" else ""
            look = look or ("sentence" if kind == "td" and len(text) > ONE_LINE else "")
            tag = f'{kind} class="{look}"' if look else kind
            found += f"<{tag}>{html.escape(text)}</{kind}>"
        return f"<tr>{found}</tr>\n"

    head = line("th", titles)
    lines = "".join(line("td", row) for row in rows)
    return f'<div class="scroll"><table>{head}{lines}</table></div>'


def _are_numbers(texts: Iterable[str]) -> bool:
    """Whether a column holds nothing but numbers and places without one."""
    known = [text for text in texts if text not in ("", "-")]
    return bool(known) and all(NUMBER.fullmatch(text) for text in known)
