"""Players to give away: from a run to a file or the hub, and from there to a folder."""

import tempfile
from pathlib import Path
from typing import Any

from coplay.api.hub import download, is_on_hub, parse_place, upload
from coplay.core.errors import UserError
from coplay.core.reading import shown_in_line
from coplay.evaluation.adaptation.companies import known_to
from coplay.reports.player_card import hub_page
from coplay.training.run import RunFolder
from coplay.training.shared_players import ENDING, read_card, read_player, write_player


def export_player(
    run: str | Path, out: str | Path | None = None, to: str = "", private: bool = False
) -> dict[str, Any]:
    """Write the player of a run into one small file, and perhaps to the Hugging Face hub.

    run: a folder, perhaps with `@seed=N` and `@best`. out: the new file; default: `NAME.player.npz`
        in the current folder, none if it goes to the hub. to: `hf:OWNER/NAME`. private: a
        repository that is made for it is seen by its owner alone.

    Returns the card: what the player is, what it plays, how well, and in `file` and `address` where
    it is.

        card = coplay.export_player("runs/ppo", "hunter.player.npz")
        print(card["seated"], card["summary"]["team_mean"])
    """
    entry = str(run)
    if to:
        parse_place(to)  # a wrong name is said before anything is written
    folder = RunFolder(Path(entry.split("@")[0]))
    if not folder.exists():
        raise UserError(f"{folder.path} holds no run to export: there is no {folder.config_file}")
    if out is not None or not to:
        default = f"{folder.path.resolve().name}{ENDING}"
        return _exported(entry, Path(default if out is None else out), to, private, keep=True)
    with tempfile.TemporaryDirectory() as temporary:
        return _exported(entry, Path(temporary) / f"player{ENDING}", to, private, keep=False)


def _exported(entry: str, file: Path, to: str, private: bool, keep: bool) -> dict[str, Any]:
    if file.suffix != ".npz" or file.is_dir():
        raise UserError(f"--out {file}: an exported player is a file that ends in .npz")
    met = None
    if RunFolder(Path(entry.split("@")[0])).partners() is not None:
        known = known_to(entry)
        met = {"families": sorted(known.families), "partners": sorted(known.partners)}
    card = write_player(entry, file, met)
    size = file.stat().st_size
    address = upload(file, hub_page(card, to), parse_place(to), private) if to else None
    return card | {"file": str(file) if keep else None, "bytes": size, "address": address}


def import_player(source: str | Path, out: str | Path | None = None) -> dict[str, Any]:
    """Make a folder of an exported player, which can be named wherever a run can.

    source: a file, or `hf:OWNER/NAME`, perhaps with `@REVISION`. out: the new folder; default: in
        `runs`, by the name of the source.

    Nothing in the file is executed, and a file that is damaged or bent is refused. Returns the
    card, with the path of the folder in `folder`.

        card = coplay.import_player("hunter.player.npz", "runs/hunter")
        coplay.play("stag-hunt", [card["folder"], "ns", "ns", "nh"])
    """
    text = str(source)
    if not is_on_hub(text):
        return _imported(Path(text), text, out)
    place = parse_place(text)
    with tempfile.TemporaryDirectory() as temporary:
        return _imported(download(place, Path(temporary)), place.repository, out)


def _imported(file: Path, name: str, out: str | Path | None) -> dict[str, Any]:
    own = Path(name).name.removesuffix(".npz").removesuffix(".player")
    folder = Path("runs") / own if out is None else Path(out)
    return read_player(file, folder) | {"folder": str(folder)}


def look_at_player(source: str | Path) -> dict[str, Any]:
    """The card of an exported player; nothing is written."""
    if not is_on_hub(str(source)):
        return read_card(Path(source))
    with tempfile.TemporaryDirectory() as temporary:
        return read_card(download(parse_place(str(source)), Path(temporary)))


def print_text(text: str) -> None:
    """Words from a file of somebody."""
    for line in text.splitlines():
        print(shown_in_line(line))
