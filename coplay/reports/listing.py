"""What a folder holds, by kind: runs, and what other commands leave beside them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

from coplay.core.errors import UserError
from coplay.core.reading import read_field, read_json, shown_in_line
from coplay.reports.results import (
    TEXTS,
    console_for_tables,
    print_json,
    run_cells,
    run_overview,
)
from coplay.training.run import RunFolder
from coplay.training.shared_players import card_line, read_imported

Overview = dict[str, Any]


class FolderKind(NamedTuple):
    """A kind of folder. file: what tells it. describe: (game, in a few words)."""

    file: str
    describe: Callable[[Path], tuple[str, str]]


def _dataset(folder: Path) -> tuple[str, str]:
    where, about = str(folder / "about.json"), read_json(folder / "about.json")
    samples = read_field(about, "samples", int, where)
    mix = read_field(about, "mix", list, where)
    return _game(about, where), f"{samples:,} samples of {', '.join(map(str, mix))}"


def _model(folder: Path) -> tuple[str, str]:
    where, about = str(folder / "config.json"), read_json(folder / "config.json")
    part = read_field(about, "part", str, where)
    data = read_field(about, "data", str, where)
    return _game(about, where), f"{part}, learned from {data}"


def _pack(folder: Path) -> tuple[str, str]:
    where, about = str(folder / "pack.json"), read_json(folder / "pack.json")
    partners = read_field(about, "partners", list, where)
    families = dict.fromkeys(str(one.get("family")) for one in partners if isinstance(one, dict))
    return _game(about, where), f"{len(partners)} partners: {', '.join(families)}"


def _player(folder: Path) -> tuple[str, str]:
    card = read_imported(folder)
    return str(card["seated"].get("game")), card_line(card)


def _audit(folder: Path) -> tuple[str, str]:
    where, about = str(folder / "audit.json"), read_json(folder / "audit.json")
    verdict = read_field(about, "verdict", str, where)
    words = read_field(about, "words", str, where)
    return "", f"{verdict}: {words}"


def _adaptation(folder: Path) -> tuple[str, str]:
    where, about = str(folder / "settings.json"), read_json(folder / "settings.json")
    focal = read_field(about, "focal", str, where)
    sets = read_field(about, "sets", list, where)
    among = str(sets[0]) if len(sets) == 1 else f"{len(sets)} sets of co-players"
    state = "" if (folder / "adapt.json").exists() else ", not finished"
    return _game(about, where), f"{focal} among {among}{state}"


def _comparison(folder: Path) -> tuple[str, str]:
    where, about = str(folder / "comparison.json"), read_json(folder / "comparison.json")
    games = read_field(about, "games", dict, where)
    return ", ".join(games), f"{len(games)} games" if len(games) > 1 else ""


def _sweep(folder: Path) -> tuple[str, str]:
    where, about = str(folder / "sweep.json"), read_json(folder / "sweep.json")
    config = read_field(about, "config", dict, where)
    trials = read_field(about, "trials", list, where)
    space = read_field(about, "space", list, where)
    paths = [str(one.get("path")) for one in space if isinstance(one, dict)]
    done = sum(isinstance(one, dict) and one.get("state") == "finished" for one in trials)
    return _game(config, where), f"{done} trials finished, over {', '.join(paths)}"


def _game(about: dict[str, Any], where: str) -> str:
    return str(read_field(about, "game_name", str, where))


KINDS = {
    "player": FolderKind("card.json", _player),
    "sweep": FolderKind("sweep.json", _sweep),
    "dataset": FolderKind("about.json", _dataset),
    "model": FolderKind("config.json", _model),
    "pack of partners": FolderKind("pack.json", _pack),
    "audit": FolderKind("audit.json", _audit),
    "adaptation": FolderKind("settings.json", _adaptation),
    "comparison": FolderKind("comparison.json", _comparison),
}
"""Words -> how it is known. Runs are told apart from models by what `config.json` says."""
WHOLE = ("run", "dataset", "model", "player")
"""Kinds that hold nothing that is listed by itself."""


def overviews(folder: Path) -> list[Overview]:
    """Everything below a folder, runs first, each as {"kind", …}; damaged: what is wrong with it,
    else None. A run has the fields of `run_overview`, others "folder", "game" and "words"."""
    runs, others = [], []
    for place, below, names in os.walk(folder):
        below.sort()
        kind = kind_of(Path(place), names)
        if kind == "run":
            runs.append({"kind": kind} | run_overview(RunFolder(Path(place))))
        elif kind is not None:
            others.append(_described(kind, Path(place)))
        if kind in WHOLE:
            below.clear()
    return [*runs, *others]


def kind_of(folder: Path, names: list[str]) -> str | None:
    """What a folder with these files holds; None: nothing that is known."""
    if "config.json" in names and KINDS["player"].file not in names:
        return "model" if _says_part(folder) else "run"
    return next((name for name, kind in KINDS.items() if kind.file in names), None)


def _says_part(folder: Path) -> bool:
    try:
        return "part" in read_json(folder / "config.json")
    except UserError:
        return False


def _described(kind: str, folder: Path) -> Overview:
    made: Overview = {"kind": kind, "folder": str(folder)}
    try:
        game, words = KINDS[kind].describe(folder)
    except UserError as error:
        return made | {"game": None, "words": "", "damaged": str(error)}
    return made | {"game": game, "words": words, "damaged": None}


def print_overviews(folder: Path, as_json: bool) -> None:
    """Everything below a folder: a table of runs, and one of all else."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    found = overviews(folder)
    if as_json:
        print_json(found)
        return
    console = console_for_tables()
    runs = [row for row in found if row["kind"] == "run"]
    others = [row for row in found if row["kind"] != "run"]
    if runs or not others:
        many = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
        table = Table(title=shown_in_line(f"{many} in {folder}"))
        for name in ("run", "player", "game", "seating", "seeds", "steps", "state", "team mean"):
            table.add_column(name, overflow="fold", justify="left" if name in TEXTS else "right")
        for row in runs:
            table.add_row(*map(shown_in_line, run_cells(row)))
        console.print(table)
    if others:
        table = Table(title=shown_in_line(f"also in {folder}"))
        for name in ("kind", "folder", "game", "what"):
            table.add_column(name, overflow="fold")
        for row in others:
            words = "damaged" if row["damaged"] else row["words"]
            cells = (row["kind"], row["folder"], row["game"] or "", words)
            table.add_row(*map(shown_in_line, cells))
        console.print(table)
    for row in found:
        if row["damaged"]:
            console.print(f"damaged: {shown_in_line(row['damaged'])}", style="red", soft_wrap=True)
