"""Loggers by name, and what keeps their failures away from a run.

`metrics.jsonl` and TensorBoard are written always (`coplay/training/logs.py`). A logger of
`--log wandb,mlflow,csv` gets the same rows. Its package is imported when a run begins, and never
if it was not asked for.
"""

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from coplay.core.errors import UserError, how_to_install, see, unknown
from coplay.core.files import write_json
from coplay.core.reading import read_json
from coplay.training.loggers.csv_file import CsvLog
from coplay.training.loggers.logged import LoggedRun, Logger, Row
from coplay.training.loggers.mlflow_run import MlflowLog
from coplay.training.loggers.wandb_run import WandbLog

IDENTITIES = "loggers.json"
"""The file of a run that holds the names under which its loggers know it."""


class LoggerKind(NamedTuple):
    """A logger to choose. begin: starts it or goes on. package: that must be installed and sends
    rows elsewhere, where they stay; empty: none."""

    begin: Callable[[LoggedRun], Logger]
    package: str


LOGGERS = {
    "csv": LoggerKind(CsvLog, ""),
    "mlflow": LoggerKind(MlflowLog, "mlflow"),
    "wandb": LoggerKind(WandbLog, "wandb"),
}


def chosen_loggers(text: str) -> list[str]:
    """The loggers in a text such as wandb,csv; an error if one is unknown."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in LOGGERS:
            raise unknown("logger", name, LOGGERS)
    return list(dict.fromkeys(names))


def check_installed(text: str) -> None:
    """An error if the package of a logger is missing; nothing is imported."""
    for name in chosen_loggers(text):
        package = LOGGERS[name].package
        if package and find_spec(package) is None:
            raise UserError(
                f"--log {name} needs the package {package}: {how_to_install(name)}, or pip install "
                f"{package}; or leave {name} out{see('how-to/other-loggers')}"
            )


class OtherLogs:
    """The chosen loggers of a run. One that fails is left out from then on, with a note.

    sent: the step up to which rows were written before the run was taken up. What is kept
        elsewhere does not get them a second time.
    """

    def __init__(
        self,
        text: str,
        folder: Path,
        config: dict[str, Any],
        seeds: Sequence[int],
        say: Callable[[str], None],
    ):
        self.waiting = chosen_loggers(text)
        self.folder, self.config, self.seeds, self.say = folder, config, list(seeds), say
        self.sent = 0
        self.open: dict[str, Logger] = {}

    def begin(self) -> None:
        """Open all loggers that are not open yet."""
        while self.waiting:
            self._begin(self.waiting.pop(0))

    def write(self, rows: list[Row]) -> None:
        """Give rows to all loggers."""
        self.begin()
        new = [row for row in rows if row["step"] > self.sent]
        for name, logger in list(self.open.items()):
            given = new if LOGGERS[name].package else rows
            self._try(name, partial(logger.write, given))

    def close(self, summary: dict[str, Any] | None) -> None:
        """Tell all loggers that the run stops here; see `Logger.close`."""
        for name, logger in list(self.open.items()):
            self._try(name, partial(logger.close, summary))
        self.open = {}

    def _begin(self, name: str) -> None:
        path = self.folder / IDENTITIES

        def begin() -> None:
            stated = read_json(path) if path.exists() else {}
            run = LoggedRun(self.folder, self.config, self.seeds, stated.get(name, {}))
            logger = LOGGERS[name].begin(run)
            self.open[name] = logger
            if logger.known and logger.known != stated.get(name):
                write_json(path, stated | {name: logger.known})

        self._try(name, begin)

    def _try(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self.open.pop(name, None)
            why = " ".join(str(error).split()) or type(error).__name__
            self.say(
                f"note: {name} gets nothing more of this run ({why}); the run goes on, and all "
                "rows are in metrics.jsonl"
            )
