"""A flipped bit in any file of a run, player, dataset, model or pack: reported, or harmless."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from coplay.api.checking import CHECKS, check
from coplay.api.models import collect, pretrain
from coplay.api.sharing import export_player, import_player
from coplay.api.sweeping import new_sweep
from coplay.api.training import make_config, train
from coplay.cli.main import run
from coplay.core.lock import LOCK
from coplay.core.manifest import MANIFEST, read_manifest
from coplay.reports.sweep_page import write_sweep
from coplay.sweeps.config import SweepConfig
from coplay.sweeps.folder import OpenedSweep, SweepFolder, Trial
from tests.faults.tiny import quick_folder, tiny, train_tiny

__all__ = ["tiny"]


def flip_and_check(folder: Path, flips: int, seed: int) -> int:
    """Flip bits, one at a time, in files that take turns; how many were harmless."""
    chance = random.Random(seed)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != LOCK]
    listed = read_manifest(folder)
    assert check(folder)[0].whole
    harmless = 0
    for number in range(flips):
        path = files[number % len(files)]
        before = path.read_bytes()
        place, bit = chance.randrange(len(before)), chance.randrange(8)
        after = bytearray(before)
        after[place] ^= 1 << bit
        path.write_bytes(after)
        (report,) = check(folder)
        if report.whole:
            # White space of the manifest: what it says is the same.
            assert path.name == MANIFEST and read_manifest(folder) == listed, (path, place, bit)
            harmless += 1
        else:
            name = path.relative_to(folder).as_posix()
            found = {one.name for one in report.bad}
            assert name in found or name == MANIFEST, (path, place, bit, found)
        path.write_bytes(before)
    assert check(folder)[0].whole
    return harmless


def test_a_few_flips_in_a_run(tiny: None) -> None:
    with quick_folder() as folder:
        train_tiny(folder / "run", 8)
        flip_and_check(folder / "run", 30, seed=0)


def write_own_files(folder: Path) -> None:
    """A sweep without its runs, which are checked by themselves."""
    config = make_config("ppo", "stag-hunt", {}, {})
    state = new_sweep(config, SweepConfig(), {"discount": [0.9, 0.99]})
    state.trials = [Trial(index, {"discount": x}) for index, x in enumerate((0.9, 0.99))]
    opened = OpenedSweep(SweepFolder(folder))
    opened.write(state)
    write_sweep(state, SweepFolder(folder))
    opened.manifest.settle()
    opened.close()


@pytest.fixture(scope="module")
def folders() -> Iterator[dict[str, Path]]:
    """A folder of every kind that can be checked, made as a user makes it."""
    small = {"copies": 8, "rollout": 8, "network.hidden": (8,), "minibatches": 2, "steps": 512}
    with quick_folder() as folder:
        train("ppo", out=folder / "run", quiet=True, checkpoint_every=128, episodes=50, **small)
        collect(folder / "data", samples=2000)
        pretrain("goals", folder / "data", folder / "model", quiet=True, epochs=1)
        order = ["--families", "rules", "--rules", "3", "--out", str(folder / "pack")]
        assert run(["partners", "make", *order]) == 0
        export_player(folder / "run", folder / "run.player.npz")
        import_player(folder / "run.player.npz", folder / "player")
        write_own_files(folder / "sweep")
        found = {
            "sweep": "sweep",
            "player": "player",
            "run": "run",
            "dataset": "data",
            "pretrained model": "model",
            "pack of partners": "pack",
        }
        yield {kind: folder / name for kind, name in found.items()}


@pytest.mark.faults
def test_every_kind_of_folder_is_flipped(folders: dict[str, Path]) -> None:
    assert folders.keys() == CHECKS.keys(), "a new kind of folder needs an example here"


@pytest.mark.faults
@pytest.mark.parametrize(
    "kind, flips",
    [
        *(("run", 1400), ("dataset", 300), ("pretrained model", 300), ("pack of partners", 100)),
        ("player", 200),
        ("sweep", 100),
    ],
)
def test_no_flip_is_silent(folders: dict[str, Path], kind: str, flips: int) -> None:
    harmless = flip_and_check(folders[kind], flips, seed=1)
    print(f"{kind}: {flips} flips, {harmless} harmless")
