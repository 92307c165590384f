"""What a sweep keeps: `sweep.json` with its plan and its trials, and a run for each trial.

sweep.json   sweep.csv   index.html   settings/NNN.json   trials/NNN/   logs/NNN.txt   best/
"""

import dataclasses
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coplay.core.check import FolderReport, check_manifest
from coplay.core.config import from_json, to_json
from coplay.core.errors import UserError
from coplay.core.files import TEMPORARY, remove_leftovers, write_json
from coplay.core.loading import refuse_elsewhere
from coplay.core.lock import Lock
from coplay.core.manifest import Manifest
from coplay.core.reading import check_folder, read_field, read_json
from coplay.core.version import VERSION
from coplay.sweeps.config import SweepConfig
from coplay.sweeps.space import Dimension, Setting, configured
from coplay.training.config import TrainConfig
from coplay.training.run import named_paths

SWEEP = "sweep.json"
PARTS = ("trials", "best")
"""Folders of a sweep that hold runs."""
STATES = ("waiting", "running", "finished", "pruned", "failed")
OVER = ("finished", "pruned", "failed")


@dataclass
class Trial:
    """A setting and how its run went. tries: how often it was begun and failed by itself. values:
    [seed] the objective. value: its interquartile mean; of a pruned trial the last evaluation.
    interval: 95 %, None of a single seed. steps, seconds: of the run. words: why it failed."""

    number: int
    setting: Setting
    state: str = "waiting"
    tries: int = 0
    values: list[float] = field(default_factory=list)
    value: float | None = None
    interval: list[float] | None = None
    steps: int = 0
    seconds: float = 0.0
    words: str = ""

    @property
    def over(self) -> bool:
        return self.state in OVER

    @property
    def name(self) -> str:
        return f"{self.number:03d}"


@dataclass
class SweepState:
    """A sweep. config: of the runs, before a setting is put in. command: that began it. measured:
    what the short run took. confirmed: the best setting with fresh seeds. loads: own files."""

    config: TrainConfig
    sweep: SweepConfig
    space: list[Dimension]
    command: str | None = None
    loads: list[str] = field(default_factory=list)
    measured: dict[str, float] | None = None
    trials: list[Trial] = field(default_factory=list)
    confirmed: Trial | None = None

    def best(self) -> Trial | None:
        """The finished trial with the best objective."""
        done = [one for one in self.trials if one.state == "finished" and one.value is not None]
        sign = 1 if self.sweep.minimise else -1
        return min(done, key=lambda one: sign * (one.value or 0.0)) if done else None

    def as_json(self) -> dict[str, Any]:
        best = self.best()
        return {
            "coplay": VERSION,
            "command": self.command,
            "loads": self.loads,
            "config": self.config.as_json(),
            "sweep": to_json(self.sweep),
            "space": [one.as_json() for one in self.space],
            "measured": self.measured,
            "best": None if best is None else best.number,
            "confirmed": None if self.confirmed is None else dataclasses.asdict(self.confirmed),
            "trials": [dataclasses.asdict(one) for one in self.trials],
        }


@dataclass(frozen=True)
class SweepFolder:
    """Where the parts of a sweep lie."""

    path: Path

    @property
    def file(self) -> Path:
        return self.path / SWEEP

    def run(self, trial: Trial) -> Path:
        return self.path / "trials" / trial.name

    @property
    def best(self) -> Path:
        return self.path / "best"

    def setting(self, name: str) -> Path:
        return self.path / "settings" / f"{name}.json"

    def log(self, name: str) -> Path:
        return self.path / "logs" / f"{name}.txt"

    def refuse_if_taken(self) -> None:
        """A folder that holds something already is an error."""
        if self.file.exists():
            raise UserError(
                f"{self.path} already holds a sweep; go on with it by coplay sweep --resume "
                f"{self.path}, or choose another --out"
            )
        if self.path.exists() and not self.path.is_dir():
            raise UserError(f"{self.path} is a file; choose another --out")
        if self.path.exists() and any(one.name != ".lock" for one in self.path.iterdir()):
            raise UserError(f"{self.path} is not empty; choose another --out")

    def read(self) -> SweepState:
        """The sweep as its file says it; an error says which field is wrong."""
        if not self.file.exists():
            raise UserError(f"{self.path} holds no sweep: there is no {self.file}")
        check_folder(self.path)
        state = read_state(self.file)
        for named in named_paths(state.config):
            refuse_elsewhere(named, self.path, str(self.file))
        return state


def read_state(path: Path) -> SweepState:
    """A sweep from its file."""
    data, where = read_json(path), str(path)
    config = TrainConfig.from_json(read_field(data, "config", dict, where), f"{where}: config")
    sweep = from_json(SweepConfig, data.get("sweep"), f"{where}: sweep")
    space = [_read_dimension(one, where) for one in read_field(data, "space", list, where)]
    trials = [
        _read_trial(one, number, space, where)
        for number, one in enumerate(read_field(data, "trials", list, where))
    ]
    for one in trials:
        configured(config, one.setting)  # an error if a value is out of its range
    confirmed, measured = data.get("confirmed"), data.get("measured")
    loads = read_field({"loads": []} | data, "loads", list, where)
    if measured is not None:
        for name in ("seconds_per_step", "overhead"):
            read_field(read_field(data, "measured", dict, where), name, float, where)
    return SweepState(
        config,
        sweep,
        space,
        None if data.get("command") is None else str(data["command"]),
        [str(name) for name in loads],
        measured,
        trials,
        None if confirmed is None else _read_trial(confirmed, None, space, where),
    )


def _read_dimension(data: Any, where: str) -> Dimension:
    if not isinstance(data, dict):
        raise UserError(f"{where}: 'space' must be a list of objects")
    scale = read_field(data, "scale", str, where)
    if scale not in ("linear", "log", "int"):
        raise UserError(f"{where}: unknown scale '{scale}'")
    return Dimension(
        read_field(data, "path", str, where),
        tuple(read_field(data, "values", list, where)),
        float(read_field(data, "low", float, where)),
        float(read_field(data, "high", float, where)),
        scale,
    )


def _read_trial(data: Any, number: int | None, space: Sequence[Dimension], where: str) -> Trial:
    if not isinstance(data, dict):
        raise UserError(f"{where}: 'trials' must be a list of objects")
    kinds = {"number": int, "setting": dict, "state": str, "tries": int, "values": list}
    found = {name: read_field(data, name, kind, where) for name, kind in kinds.items()}
    more = {"steps": int, "seconds": float, "words": str}
    found |= {name: read_field(data, name, kind, where) for name, kind in more.items()}
    if found["state"] not in STATES or number not in (None, found["number"]):
        raise UserError(f"{where}: a trial is numbered or named wrongly")
    if list(found["setting"]) != [one.path for one in space]:
        raise UserError(f"{where}: a trial's setting has other fields than the sweep")
    values = dict(enumerate(found["values"]))
    for index in values:
        read_field(values, index, float, f"{where}: values")
    if data.get("value") is not None:
        found["value"] = read_field(data, "value", float, where)
    if data.get("interval") is not None:
        ends = dict(enumerate(read_field(data, "interval", list, where)))
        found["interval"] = [read_field(ends, end, float, f"{where}: interval") for end in (0, 1)]
    return Trial(**found)


class OpenedSweep:
    """A sweep's folder, open for writing: one process at a time, until `close`."""

    def __init__(self, folder: SweepFolder):
        self.folder = folder
        self.lock = Lock(folder.path)
        self._open = ExitStack()
        try:
            remove_leftovers(folder.path / "settings")
            for one in folder.path.iterdir():  # not below: runs are written by their own processes
                if TEMPORARY.fullmatch(one.name) and one.is_file():
                    one.unlink()
            self.manifest = Manifest(folder.path, lambda name: name.startswith("logs/"))
            self._open.enter_context(self.manifest.keeping())
        except BaseException:
            self.lock.release()
            raise

    def write(self, state: SweepState) -> None:
        write_json(self.folder.file, state.as_json())

    def close(self, discard: bool = False) -> None:
        self._open.close()
        self.lock.release(discard)


# --- coplay check ------------------------------------------------------------------------------


def holds_sweep(folder: Path) -> bool:
    return (folder / SWEEP).exists()


def check_sweep(path: Path) -> FolderReport:
    """A sweep: its own files against the manifest; its runs are looked at by themselves."""
    report = FolderReport(path, "sweep")
    names = (SWEEP, "sweep.csv", "index.html")
    check_manifest(report, lambda name: name in names or name.startswith("settings/"))
    try:
        state = SweepFolder(path).read()
    except UserError as error:
        report.add(SWEEP, "damaged", str(error))
        report.usable = "its runs in trials/, each by itself"
        return report
    done = sum(one.over for one in state.trials)
    report.usable = f"{done} trials; coplay sweep --resume goes on"
    return report
