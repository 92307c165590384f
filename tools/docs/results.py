"""Results on pages: tables and sentences between markers, and pictures, from results/*.json.

    <!-- results: NAME -->            the main table
    <!-- results: NAME TABLE -->      another table
    <!-- results: NAME answer -->     the answer in a sentence
    <!-- results: NAME made -->       which program, seeds, machine and time made it
    <!-- results: NAME commands -->   the commands that ran
    <!-- results: all -->             the main figures of all results, with links to their pages
    <!-- results: readme -->          the same for README, with names in place of links

Each ends with `<!-- end -->`. `python -m tools.docs.results` lists the results, fills all pages and
draws the pictures.
"""

import json
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coplay.reproduce.experiment import MAIN
from coplay.reproduce.tables import duration, made_by, markdown, was_shared

HOME = Path(__file__).parents[2]
MARKED = re.compile(r"(<!-- results: ([^>]*?) -->\n)(.*?)(<!-- end -->)", flags=re.DOTALL)
WIDTH = 100  # of a line of prose


def read_results(folder: Path) -> dict[str, dict[str, Any]]:
    """Name -> result, in the order of the names."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def pages() -> list[Path]:
    """The pages that may show results."""
    return [HOME / "README.md", HOME / "README.zh.md", *sorted((HOME / "docs").rglob("*.md"))]


def filled(text: str, results: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of a page with what stands between its markers made anew."""
    return MARKED.sub(lambda found: f"{found[1]}{piece(found[2], results)}\n{found[4]}", text)


def piece(marker: str, results: Mapping[str, Mapping[str, Any]]) -> str:
    """What stands below a marker."""
    name, _, part = marker.partition(" ")
    if name in ("all", "readme"):
        return main_figures(results, links=name == "all")
    if name not in results:
        raise SystemExit(f"<!-- results: {marker} -->: there is no results/{name}.json")
    result = results[name]
    if part == "answer":
        return textwrap.fill(result["answer"], WIDTH, break_long_words=False)
    if part == "made":
        return textwrap.fill(f"Made by {made_by(result)}.", WIDTH, break_long_words=False)
    if part == "commands":
        return f"```\n{commands(result)}\n```"
    table = result["tables"].get(part or MAIN)
    if table is None:
        raise SystemExit(f"<!-- results: {marker} -->: results/{name}.json has no table '{part}'")
    return markdown(table["columns"], table["rows"])


def commands(result: Mapping[str, Any]) -> str:
    """The commands of a result, long ones continued on the next line."""
    lines = []
    for command in result["commands"]:
        first, *options = command["command"].split(" --")
        shown = [first]
        for option in options:
            if len(shown[-1]) + len(option) > 92:
                shown.append(f"--{option}")  # an option and its value stay together
            else:
                shown[-1] += f" --{option}"
        lines.append(" \\\n    ".join(shown))
    return "\n".join(lines)


def main_figures(results: Mapping[str, Mapping[str, Any]], links: bool) -> str:
    """A table of the main figures of all results. links: to the pages; else how to run them."""
    rows = [
        [what, cell, f"[page]({name}.md)" if links else f"`{name}`"]
        for name, result in results.items()
        for what, cell in result["headlines"]
    ]
    return markdown(["what", "figure", "" if links else "`coplay reproduce …`"], rows)


def listing(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Which commands, commit, seeds, machine and time gave each result."""
    lines = []
    for name, result in results.items():
        lines += [name, f"  {made_by(result)}"]
        for command in result["commands"]:
            lines.append(f"  {duration(command['seconds']):>11}  {command['command']}")
    shared = [name for name, result in results.items() if was_shared(result)]
    if shared:
        lines.append(f"other work ran on the machine meanwhile: {', '.join(shared)}")
    return "\n".join(lines)


def main() -> None:
    """List the results, fill the pages, draw the pictures."""
    from coplay.reproduce.pictures import draw

    results = read_results(HOME / "results")
    print(listing(results))
    for page in pages():
        text = page.read_text()
        if (anew := filled(text, results)) != text:
            page.write_text(anew)
            print(f"filled {page.relative_to(HOME)}")
    for name, result in results.items():
        if result["chart"] is not None:
            draw(HOME / "docs" / "images" / f"results-{name}.png", result)


if __name__ == "__main__":
    main()
