"""Files and modules of a user's own."""

import sys
from pathlib import Path
from typing import Any

import pytest

from coplay.core import loading
from coplay.core.errors import UserError


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_LOADED", [])
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_a_file_is_run_once(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("random.py").write_text("from pathlib import Path\nPath('seen').open('a').write('x')\n")
    loading.load("random.py")
    loading.load(str(tmp_path / "random.py"))
    assert Path("seen").read_text() == "x"
    assert loading.loaded() == [str(tmp_path / "random.py")]
    import random

    assert random.__file__ != str(tmp_path / "random.py")
    assert str(tmp_path) not in sys.path, "a file does not make its folder importable"


def test_a_module_of_the_current_folder(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own_thing_of_test.py").write_text("VALUE = 3\n")
    loading.load("own_thing_of_test")
    assert sys.modules["own_thing_of_test"].VALUE == 3
    assert loading.loaded() == ["own_thing_of_test"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.py", "no such file"),
        ("missing_module", "a file is named by its path, as in missing_module.py"),
        ("needs_more", "needs the module 'not_there'"),
    ],
)
def test_errors(name: str, message: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("needs_more.py").write_text("import not_there\n")
    with pytest.raises(UserError, match=message):
        loading.load(name)
    assert loading.loaded() == []


def test_a_file_is_named_as_it_is_typed_here(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert loading.short_name(str(tmp_path / "more" / "game.py")) == "more/game.py"
    assert loading.short_name("/elsewhere/game.py") == "/elsewhere/game.py"
    assert loading.short_name("my_package.games") == "my_package.games"
