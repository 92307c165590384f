"""What `coplay check` looks at in runs, players, datasets, pretrained models and packs."""

from pathlib import Path
from typing import Any

from coplay.core.check import FolderReport, check_manifest
from coplay.core.errors import UserError
from coplay.core.manifest import checksum
from coplay.core.reading import read_json
from coplay.matches.dataset import ABOUT, load_dataset
from coplay.training import checkpoints
from coplay.training.config import TrainConfig
from coplay.training.continuity import differences, stated_files
from coplay.training.partner_packs import ABOUT as PACK
from coplay.training.partner_packs import FAMILIES, is_pack, read_pack
from coplay.training.partner_responses import ARRAYS, FIGURES, read_responses
from coplay.training.pretrained import MODELS
from coplay.training.records import HISTORY, is_row
from coplay.training.run import RunFolder, load_run
from coplay.training.shared_players import read_imported

OF_A_RUN = (
    *("config.json", "summary.json", "index.html", "replay.html"),
    *("learning_curve.png", "episode.gif"),
)


def _about(folder: Path, name: str) -> dict[str, Any]:
    """A file of fields; nothing if it cannot be read."""
    try:
        return read_json(folder / name)
    except UserError:
        return {}


# --- runs --------------------------------------------------------------------------------------


def holds_run(folder: Path) -> bool:
    if "part" in _about(folder, "config.json"):
        return False
    return (folder / "config.json").exists() or (folder / "checkpoints").is_dir()


def check_run(path: Path) -> FolderReport:
    """A run: its files against the manifest, its logs against the newest checkpoint, its
    configuration against what that states."""
    folder, report = RunFolder(path), FolderReport(path, "run")
    check_manifest(
        report, lambda name: name in OF_A_RUN or name.startswith(("checkpoints/", "began_with/"))
    )
    config = _check_config(report, folder)
    saved, good = folder.checkpoints(), []
    for file in [*_existing(saved.best), *saved.all()]:
        name = file.relative_to(path).as_posix()
        try:
            note = checkpoints.load(file, (), part="nothing")[1]
        except (checkpoints.DamagedCheckpoint, UserError) as error:
            report.add(name, "damaged", str(error))
            continue
        if report.state(name) in ("whole", "unlisted") and file != saved.best:
            good.append((file, note))
    if good:
        _check_records(report, good[-1][1])
        for text in differences(good[-1][1], config) if config is not None else []:
            report.add("config.json", "damaged", text)
    if folder.summary_file.exists() and not _about(path, "summary.json"):
        report.add("summary.json", "damaged", "it is no JSON object")
    report.usable = _usable_run(report, folder, [file for file, _ in good])
    return report


def _check_config(report: FolderReport, folder: RunFolder) -> TrainConfig | None:
    """The configuration, if it can be read."""
    try:
        return folder.read_config()
    except UserError as error:
        if _about(folder.path, "config.json").get("loads"):
            report.notes.append(str(error))  # own games and players need not be known here
        else:
            report.add("config.json", "damaged" if folder.exists() else "missing", str(error))
    return None


def _existing(path: Path) -> list[Path]:
    return [path] if path.exists() else []


def _check_records(report: FolderReport, note: dict[str, Any]) -> None:
    """The files that grow, against what a checkpoint states about them."""
    for name, stated in stated_files(note).items():
        path = report.folder / name
        if not path.exists():
            if stated["bytes"]:
                report.add(name, "missing")
            continue
        size = path.stat().st_size
        if size < stated["bytes"]:
            words = f"it has {size} bytes, the newest checkpoint says {stated['bytes']}"
            report.add(name, "damaged", words)
        elif stated.get("sha256") not in (None, checksum(path, stated["bytes"])["sha256"]):
            report.add(name, "damaged", "it does not match the checksum in the newest checkpoint")
        else:
            report.add(name, "whole")
    history = report.folder / HISTORY
    if history.exists():
        lines = history.read_bytes().splitlines(keepends=True)
        bad = sum(not is_row(line) for line in lines if line.endswith(b"\n"))
        words = f"{bad} lines cannot be read"
        report.add(HISTORY, "damaged" if bad else "whole", words if bad else "")


def _usable_run(report: FolderReport, folder: RunFolder, good: list[Path]) -> str:
    if not good:
        return "nothing: no checkpoint can be read"
    step = int(good[-1].stem.removeprefix("step-"))
    words = [f"players of step {step}"]
    if report.state("checkpoints/best.npz") in ("whole", "unlisted"):
        words.append("players of @best")
    if report.state("config.json") in ("damaged", "missing"):
        return f"the arrays of step {step}, once config.json is as it was"
    if folder.summary_file.exists() and report.state("summary.json") != "damaged":
        words.append("the summary")
    return f"{', '.join(words)}; --resume goes on from step {step}"


# --- players that were imported ----------------------------------------------------------------


def holds_player(folder: Path) -> bool:
    return RunFolder(folder).card_file.exists()


def check_player(path: Path) -> FolderReport:
    """A player that was imported: its files, and whether it can be loaded."""
    report = FolderReport(path, "player")
    names = ("config.json", "summary.json", "card.json")
    check_manifest(
        report, lambda name: name in names or name.startswith(("checkpoints/", "began_with/"))
    )
    return _loaded(report, "checkpoints", lambda: (read_imported(path), load_run(path).states))


# --- datasets, pretrained models and packs -----------------------------------------------------


def holds_dataset(folder: Path) -> bool:
    return (folder / ABOUT).exists() or (folder / "episodes.npz").exists()


def check_dataset(folder: Path) -> FolderReport:
    """A dataset: its files, and whether it can be loaded."""
    report = FolderReport(folder, "dataset")
    check_manifest(report, lambda name: name in (ABOUT, "episodes.npz"))
    return _loaded(report, "episodes.npz", lambda: load_dataset(folder))


def holds_pretrained(folder: Path) -> bool:
    return (folder / "model.npz").exists() or "part" in _about(folder, "config.json")


def check_pretrained(folder: Path) -> FolderReport:
    """A pretrained model: its files, and whether it can be loaded."""
    report = FolderReport(folder, "pretrained model")
    names = ("config.json", "metrics.jsonl", "model.npz", "summary.json")
    check_manifest(report, lambda name: name in names)
    part = _about(folder, "config.json").get("part")
    field = "world_model.from" if part == "world-model" else "goals.from"
    return _loaded(report, "model.npz", lambda: MODELS[field](folder))


PACK_PARTS = ("train", "held-out", "kept")
"""Packs that `coplay partners select` makes below a pack."""


def holds_pack(folder: Path) -> bool:
    return is_pack(str(folder))


def check_pack(folder: Path) -> FolderReport:
    """A pack of partners: its files, and whether it can be loaded, with its best responses."""
    report = FolderReport(folder, "pack of partners")
    names = (PACK, ARRAYS, FIGURES, *(f"{family}.npz" for family in FAMILIES))
    check_manifest(report, lambda name: name in names)
    report = _loaded(report, PACK, lambda: read_pack(folder).digests())
    if report.usable.startswith("nothing"):
        return report
    try:
        read_responses(read_pack(folder))
    except UserError as error:
        report.add(FIGURES, "damaged", str(error))
        report.usable = "its partners, without best responses"
    return report


def _loaded(report: FolderReport, name: str, load: Any) -> FolderReport:
    """Load what a folder holds; the file `name` holds its arrays."""
    try:
        load()
        report.usable = "all of it" if report.whole else "it can be loaded, but was changed"
    except UserError as error:
        report.add(name, "damaged", str(error))
        report.usable = "nothing: make it anew"
    return report
