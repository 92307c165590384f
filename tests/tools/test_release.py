"""What a release holds: all of the package, its licence, and nothing else."""

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from coplay.core.version import VERSION
from tools.release import HOME, SOURCES, archive_faults, package_files, wheel_faults

PYPROJECT = tomllib.loads((HOME / "pyproject.toml").read_text())
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
TESTED_OLDEST = ("test", "hub", "mctx", "pettingzoo", "web")
"""Extras of `make test-oldest`; others need a newer JAX than the package itself."""


def test_every_file_beside_python_is_declared() -> None:
    declared = PYPROJECT["tool"]["setuptools"]["package-data"]["coplay"]
    other = [name.removeprefix("coplay/") for name in package_files() if not name.endswith(".py")]
    assert other
    assert not [name for name in other if not any(fnmatch(name, one) for one in declared)]
    assert not [one for one in declared if not any(fnmatch(name, one) for name in other)]


def test_faults_are_found() -> None:
    about = f"coplay-{VERSION}.dist-info"
    files = {"coplay/a.py", "coplay/web/b.js"}
    good = [*files, f"{about}/licenses/LICENSE", f"{about}/RECORD"]
    assert wheel_faults(good, files) == []
    assert wheel_faults([*good, "tests/data/x"], files) == ["left over: tests/data/x"]
    assert wheel_faults(good[:1] + good[2:], files) == [f"missing: {good[1]}"]
    assert "missing: LICENSE" in wheel_faults(list(files), files)
    top = f"coplay-{VERSION}/"
    archive = [top + name for name in (*files, *SOURCES, "PKG-INFO", "coplay.egg-info/SOURCES.txt")]
    assert archive_faults(archive, files) == []
    assert archive_faults([*archive, f"{top}tests/x.py"], files) == ["left over: tests/x.py"]


def test_the_version_is_the_same_everywhere() -> None:
    assert f"\nversion: {VERSION}\n" in (HOME / "CITATION.cff").read_text()
    first = re.search(r"^## (\S+)", (HOME / "CHANGELOG.md").read_text(), re.M)
    assert first is not None and first[1] == VERSION


# --- versions ----------------------------------------------------------------------------------


def lower_bounds(requirements: list[str]) -> dict[str, str]:
    """Package -> the lowest version that is allowed."""
    found = {}
    for text in requirements:
        name, bound = re.match(r"([\w-]+)(?:\[\w+\])?(?:>=([\w.]+))?", text).groups()  # type: ignore[union-attr]
        if name != "coplay":
            assert bound is not None, f"{text} has no lower bound"
            found[name.lower().replace("_", "-")] = bound
    return found


def padded(version: str) -> str:
    """1.26 is 1.26.0."""
    return re.sub(r"(\.0)*$", "", version)


def test_the_oldest_versions_are_those_that_are_allowed() -> None:
    lines = (HOME / "constraints-oldest.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    wanted = lower_bounds(PYPROJECT["project"]["dependencies"])
    for extra in TESTED_OLDEST:
        wanted |= lower_bounds(EXTRAS[extra])
    different = {
        name: (pinned.get(name), bound)
        for name, bound in wanted.items()
        if not padded(pinned.get(name, "")).startswith(padded(bound))
    }
    assert not different, "make anew by the command at the top of constraints-oldest.txt"


def test_python_versions_that_are_declared() -> None:
    """A version is declared once the tests have run with it."""
    lowest = PYPROJECT["project"]["requires-python"].removeprefix(">=")
    names = PYPROJECT["project"]["classifiers"]
    declared = [one.rpartition(" ")[2] for one in names if re.search(r":: 3\.\d+$", one)]
    assert declared[0] == lowest
    assert f"FROM python:{lowest}-" in (HOME / "Dockerfile").read_text()


@pytest.mark.parametrize("cuda", ("cuda12", "cuda13"))
def test_gpu_extras_are_those_of_jax(cuda: str) -> None:
    (text,) = EXTRAS[cuda]
    assert text.startswith(f"jax[{cuda}]>=")


def test_the_dockerfile_copies_what_is_there() -> None:
    let_in = {
        line[1:]
        for line in (HOME / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    text = (HOME / "Dockerfile").read_text()
    copied = [
        word
        for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.M)
        for word in line.split()
    ]
    assert copied and set(copied) <= let_in
    assert all((HOME / name).exists() for name in copied)
    assert Path("coplay").name in copied
