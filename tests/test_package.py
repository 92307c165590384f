"""What an installation holds: the extras may be missing, and the wheel plays games without them."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from coplay.algorithms.hop.config import HOPConfig
from coplay.core.config import leaves, with_fields
from coplay.core.errors import UserError
from coplay.core.version import VERSION
from tools.release import copy_sources, package_files, wheel_faults

HOME = Path(__file__).parents[1]
PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]
EXTRAS = ("mctx", "pettingzoo", "jaxmarl", "web", "hub")
UNREACHABLE = (
    "No matching distribution",
    "Could not find a version",
    "ConnectionError",
    "Retrying",
)

BACKEND = next(
    leaf.path for leaf in leaves(HOPConfig()) if leaf.path.rpartition(".")[2] == "backend"
)
"""The field of HOP that chooses the trees."""


def test_extras_are_no_dependencies() -> None:
    needed = " ".join(PROJECT["dependencies"])
    for name in EXTRAS:
        assert f"{name}>" not in needed
        assert name in PROJECT["optional-dependencies"]
    everything = PROJECT["optional-dependencies"]["dev"][-1]
    assert all(name in everything for name in EXTRAS)


def test_mctx_backend_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert with_fields(HOPConfig(), {BACKEND: "mctx"}) != HOPConfig()
    monkeypatch.setitem(sys.modules, "mctx", None)
    with pytest.raises(UserError, match=r"pip install -e '\.\[mctx\]'"):
        with_fields(HOPConfig(), {BACKEND: "mctx"})


@pytest.mark.slow
def test_everything_but_the_mctx_backend_works_without_mctx(tmp_path: Path) -> None:
    """In a fresh process, since this one may have imported mctx already."""
    code = f"""
import pkgutil, sys
sys.modules["mctx"] = None
import coplay, coplay.algorithms.hop.learner, coplay.algorithms.hop_plus.learner, coplay.search
for module in pkgutil.iter_modules(coplay.search.__path__, "coplay.search."):
    __import__(module.name)
from coplay.cli.main import run
sys.exit(run(["train", "hop", "--{BACKEND.replace("_", "-")}", "mctx", "--out", "run"]))
"""
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(HOME)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 2, result.stderr
    assert ".[mctx]" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "run").exists()


def run_pip(python: Path, *arguments: str) -> None:
    """Run pip; skip the test if pip cannot reach what it needs, fail if it fails otherwise."""
    result = subprocess.run(
        [python, "-m", "pip", *arguments, "--constraint", HOME / "constraints.txt"],
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    words = result.stdout + result.stderr
    if result.returncode and any(word in words for word in UNREACHABLE):
        pytest.skip(f"pip cannot get what it needs here: {words[-500:]}")
    assert result.returncode == 0, words


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the sources, since a build leaves files beside them."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    copy_sources(source)
    run_pip(Path(sys.executable), "wheel", "--no-deps", "--wheel-dir", str(folder), str(source))
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        assert wheel_faults(opened.namelist(), package_files()) == []


@pytest.mark.slow
def test_the_wheel_plays_a_game_without_extras(wheel: Path, tmp_path: Path) -> None:
    assert wheel.name.startswith(f"coplay-{VERSION}-")
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    run_pip(python, "install", str(wheel))
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def output(*command: str | Path) -> str:
        return subprocess.run(
            command, cwd=tmp_path, env=clean, capture_output=True, text=True, check=True
        ).stdout

    installed = {
        package["name"].lower()
        for package in json.loads(output(python, "-m", "pip", "list", "--format", "json"))
    }
    assert "coplay" in installed
    assert not installed & {*EXTRAS, "huggingface_hub"}
    coplay = home / "bin" / "coplay"
    seating = ("--seating", "ns,ns,nh,random")
    words = output(coplay, "play", *seating, "--episodes", "4", "--game", "stag-hunt", "--json")
    assert len(json.loads(words)["seats"]) == 4
    assert output(coplay, "--version").strip() == VERSION
    where = output(python, "-c", "import coplay; print(coplay.__file__)")
    assert Path(where.strip()).is_relative_to(home)
    assert (Path(where.strip()).parent / "py.typed").exists()


def test_the_page_on_an_index_has_no_broken_pictures_and_links() -> None:
    readme_renderer = pytest.importorskip("readme_renderer.markdown")
    pytest.importorskip("setuptools")  # of setup.py; Python 3.12 and newer bring none
    spec = importlib.util.spec_from_file_location("setup_file", HOME / "setup.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = readme_renderer.render(module.index_page((HOME / "README.md").read_text()))
    assert page is not None and "<table>" in page and "<h2" in page
    assert "<img" not in page
    links = re.findall(r'href="([^"]+)"', page)
    assert links and all(link.startswith(("http", "#")) for link in links), links
