"""What is installed here, said so that it can be passed on."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from coplay.api import doctor
from coplay.cli.main import run
from coplay.core.errors import UserError
from coplay.core.version import VERSION


def test_it_names_versions_devices_and_optional_parts(capsys: Any) -> None:
    assert run(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["problem"] is None and found["coplay"] == VERSION
    assert found["devices"][0].startswith("cpu") and found["versions"]["jax"]
    with_linters = doctor.installed("ruff") is not None
    assert found["optional"]["dev"]["installed"] == with_linters
    assert "mctx" in doctor.requirements("mctx") and "ruff" not in doctor.requirements("mctx")


def test_every_dependency_and_extra_is_named() -> None:
    stated = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    needed = {re.split("[^A-Za-z0-9]", text)[0] for text in stated["dependencies"]}
    assert needed == set(doctor.NEEDED) - {"jaxlib"}
    others = {"cuda12", "cuda13", "test"}  # what computes is said first; dev has the tests' parts
    assert set(stated["optional-dependencies"]) == set(doctor.EXTRAS) | others


def test_a_missing_part_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = doctor.installed
    monkeypatch.setattr(doctor, "installed", lambda name: None if name == "mctx" else there(name))
    assert run(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (mctx,) = [line for line in lines if line.lstrip().startswith("mctx ")]
    assert "not installed: pip install" in mctx and "[mctx]" in mctx


def test_a_machine_that_cannot_compute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise UserError("JAX has no device")

    monkeypatch.setattr(doctor, "use_cache", refuse)
    assert run(["doctor"]) == 1
    assert capsys.readouterr().out.startswith("nothing can be computed: JAX has no device")
