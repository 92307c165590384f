"""Command lines and configurations that nobody would write: no traceback, no hang, nothing left
behind by a refusal, and no advice that does not hold.

`COPLAY_FUZZ=SEED,COUNT` tries other lines and configurations.
"""

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from coplay.algorithms.ppo.config import PPOConfig
from coplay.cli import main
from coplay.evaluation.adaptation import best_response, meetings
from coplay.evaluation.audits import seats, wiring
from coplay.evaluation.partners import make
from coplay.games.stag_hunt import StagHuntConfig
from coplay.matches import match
from coplay.reproduce import runner
from coplay.serve import server, start
from coplay.sweeps import parts, sweep
from coplay.training import collect, processes, trainer
from coplay.training.config import RunConfig, TrainConfig
from coplay.training.phases import plan_phases
from tests.cli import fuzz

SEED, QUICK, MANY, PROCESSES = 22, 30, 2000, 100
CONFIG = TrainConfig("ppo", "stag-hunt", PPOConfig(), StagHuntConfig(), RunConfig()).as_json()


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: Any) -> Path:
    """A folder with what lines name, and commands whose work ends where it would begin."""
    fuzz.make_sandbox(tmp_path, CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")

    def reached(*_: Any, **__: Any) -> Any:
        raise fuzz.Reached

    def planned(config: Any, game: Any, *_: Any) -> Any:
        plan_phases(config, game)
        raise fuzz.Reached

    for place, name in (
        (trainer.Trainer, "_start"),
        (match, "_play_episodes"),
        (match, "play_worker_episodes"),
        (meetings, "play_units"),
        (best_response, "_stage"),
        (collect, "play_whole"),
        (runner, "reproduce"),
        (sweep.Sweep, "run"),
        (parts, "workers_for"),
        (processes, "join"),
        (start, "GuestTable"),
        (server, "serve"),
    ):
        monkeypatch.setattr(place, name, reached)
    monkeypatch.setattr(make, "MAKERS", dict.fromkeys(make.MAKERS, reached))
    monkeypatch.setattr(seats, "_chain", planned)
    monkeypatch.setattr(wiring, "wiring_checks", planned)
    for name in ("hop_plus.parts", "search.searching", "throughput.stepping", "peers.pairs"):
        monkeypatch.setattr(f"coplay.bench.{name}", reached)
    for name in ("start_up", "worker_rows", "jaxmarl_stepping", "team_training"):
        monkeypatch.setattr(f"coplay.bench.throughput.{name}", reached)
    return tmp_path


def complaint(
    sandbox: Path, line: list[str], before: frozenset[str], codes: Counter[Any] | None = None
) -> str:
    """What is wrong with what became of a line; empty: nothing. codes: counts the exit codes."""
    outcome = fuzz.attempt(line)
    if codes is not None:
        codes["begins" if outcome.code is None else outcome.code] += 1
    if outcome.trace or "Traceback" in outcome.said:
        return outcome.trace or outcome.said
    if outcome.code not in (None, 0, 1, 2):
        return f"exit code {outcome.code}: {outcome.said}"
    if outcome.code == 2 and (new := fuzz.tree(sandbox) - before):
        return f"left behind: {sorted(new)}"
    if outcome.code == 2 and not outcome.said.strip():
        return "refused without a word"
    return wrong_advice(line, outcome.said) if outcome.code == 2 else ""


def wrong_advice(line: list[str], said: str) -> str:
    """An option in the program's own sentence that no command has."""
    if not said.startswith("coplay: "):
        return ""  # the parser's, which lists the options it has
    given = [part for text in line for part in text.split("=") if part.startswith("--")]
    told = [name for name in fuzz.advised(said) if not any(map(name.startswith, given))]
    if not told:
        return ""
    known = {"--help", "--load"}.union(*(fuzz.options(tuple(command)) for command in fuzz.COMMANDS))
    wrong = [name for name in told if name not in known]
    return f"{wrong} in: {said}" if wrong else ""


def try_lines(sandbox: Path, lines: list[list[str]]) -> None:
    before, failures = fuzz.tree(sandbox), []
    codes: Counter[Any] = Counter()
    for line in lines:
        if found := complaint(sandbox, line, before, codes):
            failures.append(f"{line}\n{found}")
        before = fuzz.tree(sandbox)
    print(f"exit codes: {dict(codes)}")
    assert not failures, f"{len(failures)} of {len(lines)} lines:\n" + "\n\n".join(failures)


def draws(count: int) -> tuple[random.Random, int]:
    """What a test draws from, and how many it tries unless the environment says otherwise."""
    seed, count = map(int, os.environ.get("COPLAY_FUZZ", f"{SEED},{count}").split(","))
    print(f"seed {seed}, {count} to try")
    return random.Random(seed), count


def lines(count: int) -> list[list[str]]:
    chance, count = draws(count)
    return [fuzz.line(chance) for _ in range(count)]


def try_configurations(sandbox: Path, count: int) -> None:
    chance, count = draws(count)
    before, failures = fuzz.tree(sandbox), []
    for _ in range(count):
        text = fuzz.mutated(chance, CONFIG)
        raw = text if isinstance(text, bytes) else text.encode(errors="surrogatepass")
        (sandbox / "run" / "config.json").write_bytes(raw)
        line = chance.choice(
            [
                ["train", "ppo", "--config", "run/config.json", "--out", "new"],
                ["train", "ppo", "--resume", "run"],
                ["watch", "run"],
                ["play", "--seating", "run,ns,ns,ns"],
                ["list", "."],
            ]
        )
        if found := complaint(sandbox, line, before):
            failures.append(f"{line} with {raw!r}\n{found}")
    assert not failures, f"{len(failures)} configurations:\n" + "\n\n".join(failures)


def test_every_command_is_tried() -> None:
    assert {words[0] for words in fuzz.COMMANDS} == set(main.COMMANDS)


def test_some_lines(sandbox: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(fuzz, "COMMANDS", fuzz.COMMON)
    monkeypatch.setattr(fuzz, "GAMES", fuzz.GAMES[:6])  # no library to import
    try_lines(sandbox, lines(QUICK))


def test_some_configurations(sandbox: Path) -> None:
    try_configurations(sandbox, 25)


@pytest.mark.faults
def test_many_lines(sandbox: Path) -> None:
    try_lines(sandbox, lines(MANY))


@pytest.mark.faults
def test_many_configurations(sandbox: Path) -> None:
    try_configurations(sandbox, 1000)


@pytest.mark.faults
def test_lines_as_processes(tmp_path: Path) -> None:
    """Refused lines as users give them; those that would begin to work are left out."""
    fuzz.make_sandbox(tmp_path, CONFIG)
    chance, count = draws(PROCESSES)
    failures, tried = [], 0
    while tried < count:
        line = fuzz.line(chance)
        if any("\udc80" in text for text in line):
            continue
        line += ["--nothing-of-this-name", "1"]
        tried += 1
        before = fuzz.tree(tmp_path)
        done = subprocess.run(
            [sys.executable, "-m", "coplay", *line],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            timeout=300,
        )
        if "Traceback" in done.stderr or done.returncode not in (0, 2):
            failures.append(f"{line}: {done.returncode}\n{done.stderr}")
        if done.returncode == 2 and fuzz.tree(tmp_path) != before:
            failures.append(f"{line}: left {fuzz.tree(tmp_path) - before}")
    assert not failures, "\n\n".join(failures)


FOUND: list[list[str]] = [
    ["list", "--load", ""],
    ["list", "--load", "bad.py"],
    ["train", "ppo", "--config", "deep.json"],
    ["train", "ppo", "--config", "bytes.json"],
    ["play", "--game", "pettingzoo:os:getcwd", "--seating", "ns"],
    ["play", "--seating", "ns,ns,ns,ns", "--game.walls", "2147483647"],
    ["play", "--seating", "ns,ns,ns,ns", "--game.height", "2147483647"],
    ["train", "ppo", "--out", "a,b"],
    ["train", "ppo", "--seeds", "2147483647"],
    ["train", "ppo", "--seed", "2147483647", "--seeds", "2"],
]
"""Lines that once failed."""


@pytest.mark.parametrize("line", FOUND, ids=" ".join)
def test_lines_that_once_failed(sandbox: Path, line: list[str]) -> None:
    assert not complaint(sandbox, line, fuzz.tree(sandbox))
