"""coplay import: a folder of an exported player."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from coplay.cli.arguments import parse
from coplay.core.errors import UserError


@dataclass(frozen=True)
class ImportArguments:
    """Make a folder of a player that somebody exported. The folder can be named wherever a run can:
    in seatings, coplay play, watch, adapt, serve. Nothing in the file is executed."""

    source: Annotated[str, tyro.conf.Positional]
    """The file, or hf:OWNER/NAME on the Hugging Face hub, perhaps with @REVISION (extra hub)."""
    out: Path | None = None
    """The new folder; default: in runs, by the name of the source."""
    show: bool = False
    """Only show what it is, and write nothing."""
    json: bool = False
    """Print the card as one JSON object on standard output."""


def run(arguments: list[str]) -> int:
    """coplay import FILE …"""
    given = parse(ImportArguments, arguments, "import")
    if given.show and given.out is not None:
        raise UserError("give --show, which writes nothing, or --out FOLDER, not both")
    from coplay.api.sharing import import_player, look_at_player, print_text
    from coplay.reports.player_card import card_text
    from coplay.reports.results import print_json

    card = look_at_player(given.source) if given.show else import_player(given.source, given.out)
    if given.json:
        print_json(card)
        return 0
    print_text(card_text(card))
    if not given.show:
        folder = card["folder"]
        print_text(f"made {folder}; what to try next:")
        print_text(f"  coplay watch {folder}")
        others = ",".join([folder] * card["seated"].get("seats", 1))
        print_text(f"  coplay play --seating {others} --episodes 2000")
    return 0
