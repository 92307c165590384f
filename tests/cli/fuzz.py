"""Command lines made of the commands' own declarations, to be tried in one process.

Options and the kinds of their values are read from each command's `--help`. Values are valid, at
the border of what is valid, or junk. The work behind a command is replaced at the last moment, so
that parsing, checking and refusing is all that happens.
"""

import contextlib
import io
import json
import os
import random
import re
import signal
import traceback
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from coplay.cli.main import run
from coplay.core.lock import LOCK

LONGEST = 300  # seconds that one line may take

WHOLE = ["1", "2", "3", "8", "0", "-1", "2147483647", "2147483648", "9" * 30, "1.5", "1e3", "nan"]
REAL = ["0.5", "1", "0", "-1", "1e-3", "1e300", "1e400", "nan", "inf", "-inf", "1,5", "-0.0"]
JUNK = [
    *("", " ", "-", "--", "=", "é", "💥", "\uff11", "½", "a,b", "a:b", "a@b", ",", "@", ":"),
    *("[bold]", "[/]", "%s", "{}", "{0}", "\\", "\n", "\x1b[31m", "None", "none", "True", "~"),
    *("*", "$HOME", "../..", "$(id)", "; id", "null", "[]", '{"a": 1}', "--help", "-h", "\udc80"),
    "x" * 3000,
]
PLAYERS = [
    "ns",
    "nh",
    "random",
    "ppo",
    "hop",
    "switcher:ns:nh:step=2",
    "switcher:ns",
    "mix:ns:nh",
    "mix",
    "run",
    "run@seat=1",
    "run@best",
    "run@seed=9",
    "run@planner=none",
    "empty",
    "missing/run",
    "learning:run",
    "ppo:epochs=2",
    "ppo:nothing=2",
    "switcher:ns:nh:step=0",
    "run@",
    "@",
    "file",
]
PATHS = ["file", "empty", "missing", "missing/deep", "run", "/dev/null", "/proc/nothing", "file/x"]
FILES = ["run/config.json", "text.json", "list.json", "bytes.json", "deep.json", "empty.json"]
GAMES = [
    "stag-hunt",
    "snowdrift",
    "identity",
    "hidden-target",
    "hidden-kind",
    "stag-hnt",
    "pettingzoo:host_envs:little",
    "pettingzoo:",
    "pettingzoo:nothing",
    "pettingzoo:host_envs:litle",
    "jaxmarl:nothing",
    "smax:",
    "smax:3m",
    "smac:3m",
    "jaxmarl:",
    ":",
    "pettingzoo:os:getcwd",
    "pettingzoo:...",
    "smaclite:x",
    *("matrix:stag-hunt", "matrix:", "coin", "foraging", "predator-prey", "harvest", "cleanup"),
]
COMMANDS: list[list[str]] = [
    *([*("train", name)] for name in ("ppo", "ppo-gru", "hop", "hop-plus", "mappo", "hyper-mappo")),
    *(["play"], ["adapt", "ns"], ["adapt", "run"], ["collect"], ["watch", "run"], ["list"]),
    *(["pretrain", "goals"], ["pretrain", "world-model"], ["inspect", "goals", "run"]),
    *(["inspect", "world-model", "empty"], ["inspect", "opponent-model", "missing"]),
    *(["audit", "seats"], ["audit", "wiring"], ["compare", "run", "run"], ["bench"]),
    *(["bench", "search"], ["bench", "hop-plus"], ["bench", "peers"], ["reproduce"]),
    ["schelling"],
    *(["partners", "make"], ["partners", "select", "run"], ["partners", "show", "empty"]),
    *(["check", "run"], ["export", "run"], ["import", "file"]),
    ["doctor"],
    *(["config", "ppo"], ["presets"], ["completion", "bash"]),
    *(["report", "run"], ["serve", "run"], ["serve", "empty"]),
    *(["sweep", "ppo"], ["sweep", "--resume", "run"], ["sweep", "--resume", "missing"]),
]
COMMON = [["train", "ppo"], ["play"], ["adapt", "ns"], ["collect"], ["list"], ["watch", "run"]]
"""Commands that take no time to import."""
USUAL = {
    "sweep": ["--vary", "discount=0.9,0.99"],
    "play": ["--seating", "ns,ns,ns,ns"],
    "adapt": ["--against", "ns,nh,ns"],
}
"""Command -> what makes it a right one, so that other options are looked at as well."""

OPTION = re.compile(r"(--[a-z][\w.-]*)((?: \[?(?:[A-Z][A-Z]+|\{[^}]*\})[^\s│]*)?)")


class Reached(Exception):
    """The line was accepted, and the work would begin."""


class Outcome(NamedTuple):
    """What became of a line. code: exit code, None where the work would begin. said: all output.
    trace: of an exception that a user would see; empty: there was none."""

    code: int | None
    said: str
    trace: str


# --- lines -------------------------------------------------------------------------------------


@cache
def options(command: tuple[str, ...]) -> dict[str, str]:
    """Option -> the kind of its value as the help shows it, empty for a switch."""
    said = attempt([*command, "--help-all"]).said
    return {name: kind.strip() for name, kind in OPTION.findall(said) if name != "--help"}


def value(chance: random.Random, name: str, kind: str) -> str:
    """A value for an option."""
    last = name.rpartition(".")[2]
    known = {
        "--game": GAMES,
        "--config": [*FILES, *PATHS],
        "--resume": PATHS,
        "--references": PATHS,
        "--player": ["ppo", "hop", "ns", "nothing"],
        "--cross": PLAYERS,
    }.get(name)
    if chance.random() < 0.2:
        return chance.choice([*JUNK, *WHOLE, *REAL])
    if known:
        return chance.choice(known)
    if last in ("--seating", "--against", "--mix", "--learners", "seating"):
        return ",".join(chance.choices(PLAYERS, k=chance.choice([1, 3, 4, 4, 4, 5])))
    if last == "--vary":
        field = chance.choice(["discount", "epochs", "game.height", "seed", "nothing", "copies"])
        values = chance.choice(
            ["0.9,0.99", "1,2", "log:1e-3..0.5", "0..1:3", "int:1..3", "..", "5"]
        )
        return f"{field}={values}"
    if last == "--on":
        return chance.choice(["local", "local:2", "local:0", "local:x", "ray:nowhere:1", "far"])
    if last == "--switch":
        return f"{chance.choice(WHOLE)}:{chance.choice(WHOLE)}={chance.choice(PLAYERS)}"
    if "PATH" in kind:
        return chance.choice([*PATHS, f"new-{chance.random()}", "picture.png", "film.gif"])
    if "{" in kind and "None" not in kind:
        return chance.choice(re.split(r"[{},|]+", kind)) or "x"
    if "INT" in kind:
        return chance.choice(WHOLE)
    if "FLOAT" in kind:
        return chance.choice(REAL)
    return chance.choice(["run", "ns", "0", *JUNK])


def line(chance: random.Random) -> list[str]:
    """One command line."""
    command = list(chance.choice(COMMANDS))
    declared = options(tuple(command))
    if chance.random() < 0.05:
        command[-1] = chance.choice([*JUNK, "nothing"])
    if chance.random() < 0.03:
        command = command[:1]
    given = list(USUAL.get(command[0], [])) if chance.random() < 0.7 else []
    names = chance.choices(list(declared), k=chance.choice([0, 1, 1, 2, 3, 6])) if declared else []
    for name in names:
        if chance.random() < 0.03:
            name = name[:-1]
        kind = declared.get(name, "INT")
        text = value(chance, name, kind)
        if not kind and chance.random() < 0.9:
            given.append(name)
        elif chance.random() < 0.3:
            given.append(f"{name}={text}")
        elif chance.random() < 0.05:
            given.append(name)
        else:
            given += [name, text]
            if kind.startswith("[") and chance.random() < 0.4:
                given.append(value(chance, name, kind))
    if chance.random() < 0.03:
        given.insert(chance.randrange(len(given) + 1), chance.choice(JUNK))
    if chance.random() < 0.03:
        given += ["--load", chance.choice(["file", "missing.py", "bad.py", "", "nothing", "é"])]
    return command + given


# --- configurations in files -------------------------------------------------------------------

WRONG: list[Any] = [
    *(None, True, -1, 0, 1.5, 10**30, float("nan"), float("inf"), "", "é", "x" * 1000, [], {}, [1]),
    *(
        {"a": 1},
        [[]],
        "none",
        -0.0,
        "stag-hunt",
        "ns,ns,ns,ns",
        ["ns"],
        [None],
        1e400,
        "../..",
        "\x00",
    ),
]


def mutated(chance: random.Random, data: dict[str, Any]) -> str | bytes:
    """A configuration as text, with one thing changed."""
    data = json.loads(json.dumps(data))
    part = data
    while inner := [key for key, one in part.items() if isinstance(one, dict) and one]:
        if chance.random() < 0.3:
            break
        part = part[chance.choice(inner)]
    key = chance.choice(list(part))
    how = chance.random()
    if how < 0.6:
        part[key] = chance.choice(WRONG)
    elif how < 0.7:
        del part[key]
    elif how < 0.8:
        part[chance.choice(["unknown", "", "é", key.upper(), f"{key}_"])] = chance.choice(WRONG)
    text = json.dumps(data)
    if how < 0.9:
        return text
    place = chance.randrange(len(text))
    if how < 0.95:
        return text[:place]
    raw = bytearray(text.encode())
    raw[place] ^= 1 << chance.randrange(8)
    return bytes(raw)


# --- trying them -------------------------------------------------------------------------------


def attempt(arguments: list[str]) -> Outcome:
    """Run a line in this process."""
    out, trace, code = io.StringIO(), "", None

    def late(number: int, frame: Any) -> None:
        raise TimeoutError(f"no answer for {LONGEST} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LONGEST)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = run(list(arguments))
    except SystemExit as stop:  # the parser's own way out
        code = stop.code if isinstance(stop.code, int) else 1
    except Reached:
        code = None
    except BaseException:
        trace = traceback.format_exc()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return Outcome(code, out.getvalue(), trace)


def make_sandbox(folder: Path, config: dict[str, Any]) -> None:
    """What the paths of the lines name, in a folder that becomes the current one."""
    for name in ("empty", "run"):
        (folder / name).mkdir()
    (folder / "file").write_text("text")
    (folder / "bad.py").write_text("raise RuntimeError('of the file itself')")
    (folder / "run" / "config.json").write_text(json.dumps(config))
    (folder / "text.json").write_text("{")
    (folder / "list.json").write_text("[1]")
    (folder / "bytes.json").write_bytes(b"\xff\xfe{}")
    (folder / "deep.json").write_text("[" * 100_000)
    (folder / "empty.json").write_text("")


def tree(folder: Path) -> frozenset[str]:
    """All files and folders below a folder, but for locks: whoever opened a run may leave one."""
    return frozenset(
        os.path.join(where, name)
        for where, folders, files in os.walk(folder)
        for name in (*folders, *files)
        if name != LOCK
    )


def advised(text: str) -> Iterator[str]:
    """Options that a message tells the user to give to our commands, not to pip."""
    ours = re.sub(r"pip install[^;,]*", "", text)
    for found in re.finditer(r"(?<![\w-])--[a-z][a-z.-]*[a-z]", ours):
        yield found[0]
