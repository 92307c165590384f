"""Runs the commands of an experiment, keeps their outputs, and writes the result."""

import hashlib
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import coplay.core
from coplay.core.errors import Interrupted, RunStopped
from coplay.core.files import write_json
from coplay.core.machine import machine
from coplay.core.reading import Unreadable, read_field, read_json
from coplay.core.version import VERSION
from coplay.reproduce.experiment import Experiment, Measurement
from coplay.reproduce.pictures import draw
from coplay.training.records import read_rows
from coplay.training.run import RunFolder

HOME = Path(coplay.core.__file__).parents[2]
"""The folder that holds the package: a checkout of the repository, or where it is installed."""


def reproduce(
    experiment: Experiment, work: Path, out: Path, say: Callable[[str], None]
) -> dict[str, Any]:
    """Run the commands that were not run yet by this very program, and write out/NAME.json with its
    picture.

    work: in a folder of its own below it, the commands of this program run and their outputs are
    kept. Runs of another program must not go on as this one's.
    """
    work = work / sources()[:8]
    outputs, done = {}, []
    for number, step in enumerate(experiment.steps, 1):
        place = f"[{number} of {len(experiment.steps)}]"
        kept = kept_file(step, work)
        if kept.exists():
            record = read_record(kept, step)
            say(f"{place} {step.shown}: done, {record['seconds']:.0f} s")
        else:
            say(f"{place} {step.shown}")
            record = {"commit": commit()} | run_step(step, work)
            write_json(kept, record)
        outputs[step.name] = record.pop("output")
        done.append({"name": step.name, "command": step.shown} | record)
    findings = experiment.read(outputs, lambda run: read_rows(RunFolder(work / run).metrics_file))
    result = {
        "name": experiment.name,
        "title": experiment.title,
        "question": experiment.question,
        "answer": findings.answer,
        "headlines": findings.headlines,
        "seeds": experiment.seeds,
        "version": VERSION,
        "machine": machine() | {"python": platform.python_version(), "jax": version("jax")},
        "seconds": round(sum(step["seconds"] for step in done), 1),
        "commands": done,
        "tables": findings.tables,
        "chart": findings.chart,
    }
    write_json(out / f"{experiment.name}.json", result)
    if result["chart"] is not None:
        draw(out / f"{experiment.name}.png", result)
    return result


def run_step(step: Measurement, work: Path) -> dict[str, Any]:
    """Run a command in the working folder: its output, the seconds it took, and how many cores
    other programs used meanwhile.

    A training run or a sweep that was interrupted goes on; its numbers are those of a run without a
    break.
    """
    work.mkdir(parents=True, exist_ok=True)
    arguments = step.arguments
    folder = arguments[arguments.index("--out") + 1] if "--out" in arguments else ""
    if arguments[0] == "train" and RunFolder(work / folder).exists():
        arguments = ["train", arguments[1], "--resume", folder, "--json"]
    if arguments[0] == "sweep" and (work / folder / "sweep.json").exists():
        arguments = ["sweep", "--resume", folder, "--json"]
    path = os.pathsep.join(filter(None, [str(HOME), os.environ.get("PYTHONPATH", "")]))
    start, busy, own = time.perf_counter(), busy_seconds(), own_seconds()
    code, printed = call([sys.executable, "-m", "coplay", *arguments], work, path)
    # An audit that fails ends with 1, and its output says so: that is a result, too.
    if code and not (step.needs_json and code == 1 and printed.strip()):
        raise RunStopped(f"{step.shown} failed with exit code {code}, in {work}")
    seconds, busy_after, own_after = time.perf_counter() - start, busy_seconds(), own_seconds()
    others = None
    if busy is not None and busy_after is not None:
        others = max(0.0, busy_after - busy - (own_after - own)) / seconds
    return {
        "seconds": round(seconds, 1),
        "other_cores": None if others is None else round(others, 2),
        "output": json.loads(printed) if step.needs_json else None,
    }


def read_record(kept: Path, step: Measurement) -> dict[str, Any]:
    """What an earlier call kept of a command; an error that says which file to remove if it is
    damaged."""
    try:
        record = read_json(kept)
        read_field(record, "seconds", float, str(kept))
        if "output" not in record:
            raise Unreadable(f"{kept}: 'output' is missing")
    except Unreadable as error:
        raise Unreadable(f"{error}; remove the file, and {step.shown} runs again") from error
    return record


def call(command: list[str], folder: Path, path: str) -> tuple[int, str]:
    """Run a program: its exit code, and what it printed. path: where Python looks for modules."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            printed, _ = process.communicate()
        except KeyboardInterrupt:
            process.wait()  # it was interrupted, too, and saves what it has
            raise
    if process.returncode == 130:
        raise Interrupted("stopped; the same command goes on where it was")
    return process.returncode, printed


def kept_file(step: Measurement, work: Path) -> Path:
    """Where the output of a command is kept."""
    text = "\0".join(step.arguments)
    return work / "outputs" / f"{step.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"


def sources() -> str:
    """A digest of the package, without what only asks the questions: two programs that differ in
    anything else have different digests."""
    digest = hashlib.sha256()
    for path in sorted((HOME / "coplay").rglob("*.py")):
        if path.parent.name != "reproduce" and path.parts[-2:] != ("cli", "reproduce.py"):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def commit() -> str | None:
    """The commit of the checkout that runs, with "+" if files of the package were changed; None if
    it is not run from a checkout."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(HOME), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != HOME.resolve():
            return None
        changed = git("status", "--porcelain", "--", "coplay")
        return git("rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def busy_seconds() -> float | None:
    """Seconds that the cores have spent on work of all programs, where the system says it."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return None
    user, nice, system, _, _, irq, softirq = map(int, stat.read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Seconds that the cores have spent on the commands."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
