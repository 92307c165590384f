"""A pack of partners as a table."""

from typing import Any

from rich.markup import escape
from rich.table import Table

from coplay.core.reading import shown_in_line
from coplay.reports.results import console_for_tables


def print_partners(found: dict[str, Any]) -> None:
    """A row for each partner; everything that a file said is escaped."""
    table = Table(
        title=f"{_plain(found['pack'])}: {len(found['partners'])} partners for "
        f"{_plain(found['game_name'])}; {found['episodes']} episodes each among their own kind"
    )
    for title in ("number", "name", "reward", "steps in the game", "how it was made"):
        text = title in ("name", "how it was made")
        table.add_column(title, justify="left" if text else "right", overflow="fold")
    for partner in found["partners"]:
        table.add_row(
            str(partner["number"]),
            _plain(partner["name"]),
            f"{partner['reward']:.3f}",
            f"{partner['steps']:.1f}",
            _plain(_words(partner["how"])),
        )
    console_for_tables().print(table)
    print(f"play with one: coplay play --seating {found['pack']}@partner=0,… (one entry per seat)")


def _words(how: dict[str, Any]) -> str:
    """How a partner was made, what is 0 left out."""
    parts = []
    for name, value in how.items():
        if isinstance(value, dict):
            shares = {key: share for key, share in value.items() if share >= 0.05}
            parts.append(", ".join(f"{key} {share:.2f}" for key, share in shares.items()))
        elif value:
            number = isinstance(value, float)
            parts.append(f"{name} {value:.2f}" if number else f"{name} {value}")
    return "; ".join(parts)


def _plain(text: Any) -> str:
    return escape(shown_in_line(str(text)))
