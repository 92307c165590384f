"""coplay export: the player of a run as one small file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from coplay.cli.arguments import parse
from coplay.core.errors import UserError


@dataclass(frozen=True)
class ExportArguments:
    """Write the player of a run into one small file to give away: what it needs to play, its
    configuration, and a card with figures. coplay import makes a folder of it again."""

    run: Annotated[str, tyro.conf.Positional]
    """Folder of the run; @seed=N behind it chooses one of several seeds (default: the first), @best
    the best checkpoint (default: the last)."""
    out: Path | None = None
    """The file to write, which ends in .npz; default: NAME.player.npz in the current folder."""
    to: str = ""
    """Put it on the Hugging Face hub: hf:OWNER/NAME (extra hub; log in with hf auth login)."""
    private: bool = False
    """With --to: a repository that is made for it can be seen by its owner alone."""
    json: bool = False
    """Print the card as one JSON object on standard output."""


def run(arguments: list[str]) -> int:
    """coplay export RUN …"""
    given = parse(ExportArguments, arguments, "export")
    if given.private and not given.to:
        raise UserError("--private goes with --to")
    from coplay.api.sharing import export_player, print_text
    from coplay.reports.player_card import card_text
    from coplay.reports.results import print_json
    from coplay.training.shared_players import not_in_file

    card = export_player(given.run, given.out, given.to, given.private)
    if given.json:
        print_json(card)
        return 0
    print_text(card_text(card))
    for entry in not_in_file(given.run):
        print_text(f"note: {entry} sat beside it and is not in the file; export it by itself")
    if card["file"] is not None:
        print_text(f"wrote {card['file']} ({card['bytes']:,} bytes)")
        print_text(f"who gets it types: coplay import {card['file']} --out runs/NAME")
    if card["address"] is not None:
        print_text(f"on the hub: {card['address']}")
        print_text(f"anybody who may see it types: coplay import {given.to} --out runs/NAME")
    return 0
