"""Which environments a file may name: known ones of installed libraries, and what a user names."""

import sys
from pathlib import Path

import pytest

from coplay.core import loading
from coplay.core.errors import UserError
from coplay.games.adapters.trusted import check_library, check_source, is_known, naming
from coplay.games.adapters.workers.source import Source

SPREAD = "mpe2.simple_spread_v3"


@pytest.fixture(autouse=True)
def nobody_named_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_LOADED", [])
    monkeypatch.setattr(loading, "_NAMED", set())
    monkeypatch.setattr(sys, "path", list(sys.path))


def check(module: str, function: str = "parallel_env", *options: str) -> None:
    check_source(f"pettingzoo:{module}:{function}", Source(module, function, options))


@pytest.mark.parametrize(
    ("module", "function"),
    [
        ("os", "system"),
        ("subprocess", "run"),
        ("helpful_env", "parallel_env"),
        ("", "parallel_env"),
        (SPREAD, "raw_env"),
        (SPREAD, "parallel_env.__globals__"),
        ("mpe2", "parallel_env"),
        ("mpe2.simple_spread", "parallel_env"),
        ("mpe2.simple_spread_v", "parallel_env"),
        ("mpe2.simple_spread_v3x", "parallel_env"),
        ("mpe2.evil.simple_spread_v3", "parallel_env"),
        ("mpe3.simple_spread_v3", "parallel_env"),
        (".mpe2.simple_spread_v3", "parallel_env"),
    ],
)
def test_a_file_cannot_name_any_module_or_function(module: str, function: str) -> None:
    assert not is_known(module, function)
    with pytest.raises(UserError, match=f"named by a file.* add --load {module}"):
        check(module, function)


def test_a_file_may_name_known_environments_with_numbers() -> None:
    check(SPREAD)
    check(SPREAD, "parallel_env", "N=3", "continuous_actions=false", "goals=[1, 2.5]", "seed=none")
    for option in ("render_mode=human", "path='/etc/passwd'", "maps=['a']", "x={'a': 'b'}"):
        with pytest.raises(UserError, match="is from a file, which may only give numbers"):
            check(SPREAD, "parallel_env", option)
        loading.name_game("pettingzoo:other", [option])
        check(SPREAD, "parallel_env", option)


def test_a_user_may_name_everything() -> None:
    loading.name_game("pettingzoo:os:system")
    check("os", "system", "command='true'")
    with pytest.raises(UserError, match="named by a file"):
        check("os", "popen")


def test_a_loaded_module_is_trusted_with_its_own_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own_env_of_test.py").write_text(
        "import os\nfrom os import system\ndef make():\n    pass\n_hidden = make\n"
    )
    with pytest.raises(UserError, match="add --load own_env_of_test"):
        check("own_env_of_test", "make")
    assert "own_env_of_test" not in sys.modules
    loading.load("own_env_of_test")
    check("own_env_of_test", "make", "text='x'")
    for function in ("os.system", "system", "_hidden", "make.__globals__"):
        with pytest.raises(UserError, match="named by a file"):
            check("own_env_of_test", function)
    with pytest.raises(UserError, match="add --load own_env"):
        check("own_env", "make")


@pytest.mark.parametrize("entry", ["", "."])
def test_a_known_library_is_never_taken_from_the_current_folder(
    entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(entry)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("mpe2", "smaclite")]:
        monkeypatch.delitem(sys.modules, name)
    for library in ("mpe2", "smaclite"):
        Path(library).mkdir()
        Path(library, "__init__.py").write_text("raise SystemExit('code of a stranger')\n")
    with pytest.raises(UserError, match="'mpe2' would be taken from the current folder"):
        check(SPREAD)
    with pytest.raises(UserError, match="'smaclite' would be taken from the current folder"):
        check_library("smaclite:3m", "smaclite.env", "3m", ())


def test_the_command_that_goes_on_names_what_a_file_may_not() -> None:
    assert naming(Source(SPREAD, "parallel_env")) == ""
    assert naming(Source("", "", pickled=b"x")) == ""
    assert naming(Source("host_envs", "little")) == " --load host_envs"


def test_battles() -> None:
    check_library("smac:3m", "smac.env", "3m", ("difficulty='7'", "step_mul=8"))
    for options in (("module=os:system",), ("replay_dir='/tmp'",), ("module='helpful:Env'",)):
        with pytest.raises(UserError, match="is from a file"):
            check_library("smac:3m", "smac.env", "3m", options)
    with pytest.raises(UserError, match="no plain word"):
        check_library("smac:../3m", "smac.env", "../3m", ())
    loading.name_game("smac:3m")
    with pytest.raises(UserError, match="add --load os"):
        check_library("smac:3m", "smac.env", "3m", ("module=os:system",))
    loading.name_game("smac:3m", ["module=os:system"])
    check_library("smac:3m", "smac.env", "3m", ("module=os:system",))
