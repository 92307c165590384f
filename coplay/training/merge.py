"""Runs of single seeds put together: the folder that one run of all the seeds would have left.

A seed gives the same bits alone or beside others. So arrays [seed, ...] of checkpoints are joined,
rows of logs are put in the order of one run, and the final evaluation is left to a resume.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coplay.core.errors import UserError
from coplay.core.machine import machine
from coplay.training import checkpoints
from coplay.training.checkpoints import NOTE
from coplay.training.config import TrainConfig
from coplay.training.continuity import statement
from coplay.training.evaluations import Evaluations
from coplay.training.logs import Logs
from coplay.training.opened import OpenedRun
from coplay.training.records import note_in_history, read_rows
from coplay.training.run import RunFolder


def merge_runs(parts: Sequence[Path], config: TrainConfig, out: Path) -> None:
    """Put finished runs together in the folder `out`, which can then be resumed.

    parts: runs of consecutive seeds, in order. config: that of the whole.
    """
    folder = RunFolder(out)
    folder.refuse_if_taken()
    opened = OpenedRun(out)
    try:
        saved = [RunFolder(part).checkpoints().all()[-1] for part in parts]
        if len({path.name for path in saved}) > 1:
            raise UserError(f"the runs in {parts[0].parent} did not end at the same step")
        seeds = [config.run.seed + index for index in range(config.run.seeds)]
        logs = Logs(out, seeds)
        logs.write(_rows([part / "metrics.jsonl" for part in parts]))
        evaluations = Evaluations(folder.evaluations_file, config.run.evaluate_every)
        evaluations.begin()
        evaluations.record.append(_rows([part / "evaluations.jsonl" for part in parts]))
        notes = [checkpoints.load_note(path) for path in saved]
        best = [RunFolder(part).checkpoints().best for part in parts]
        scores = [score for note in notes for score in note["best_score"]]
        if all(path.exists() for path in best):
            kept = [checkpoints.load_note(path) for path in best]
            note = {"step": max(one["step"] for one in kept), "score": scores}
            _join(best, folder.checkpoints().best, note)
        else:
            scores = [None] * len(scores)
        folder.write_config(config)
        records = [logs.record, evaluations.record]
        note = notes[0] | {
            "seconds": sum(one["seconds"] for one in notes),
            "compile_seconds": sum(one["compile_seconds"] for one in notes),
            "metrics_bytes": logs.record.bytes,
            "best_score": scores,
        }
        note |= statement(config, {record.path.name: record.state() for record in records})
        made_by = {"versions": checkpoints.versions(), "machine": machine()}
        note_in_history(out, "begun", 0, parts=len(parts), **made_by)
        _join(saved, folder.checkpoints().folder / saved[0].name, note)
        opened.settle()
    finally:
        opened.close(discard=True)


def _rows(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """The rows of several records as one run of all seeds writes them."""
    rows = [row for path in paths for row in read_rows(path)]
    return sorted(rows, key=lambda row: (row["step"], row["seed"]))


def _join(paths: Sequence[Path], target: Path, note: dict[str, Any]) -> None:
    """Archives of arrays [seed, ...] as one, with another note."""
    parts = [_arrays(path) for path in paths]
    if any(one.keys() != parts[0].keys() for one in parts):
        raise UserError(f"{paths[0]} and others beside it are not of the same program")
    whole = {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}
    checkpoints.save_named(target, whole, note)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files if name != NOTE}
