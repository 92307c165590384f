"""The Tab key, pressed in a real bash and, where there is one, in a real fish."""

import shutil
import subprocess
from functools import cache

import pytest

from coplay.cli.completion import first_words, script
from tools.docs.command_line import FIRST

SHELLS = [
    pytest.param(
        shell, marks=pytest.mark.skipif(shutil.which(shell) is None, reason=f"there is no {shell}")
    )
    for shell in ("bash", "fish")
]


@cache
def script_for(shell: str) -> str:
    return script(shell)


def in_fish(line: str) -> list[str]:
    """What fish offers after a line; its own descriptions stand behind tabs."""
    asked = f"{script_for('fish')}\ncomplete -C '{line}'"
    done = subprocess.run(["fish", "-N", "-c", asked], capture_output=True, text=True, check=True)
    assert not done.stderr
    return [offered.split("\t")[0] for offered in done.stdout.splitlines()]


def in_bash(line: str) -> list[str]:
    """What bash offers after a line; it ends with the word that is completed, perhaps empty."""
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    asked = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _coplay; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(
        ["bash", "-c", f"{script_for('bash')}\n{asked}"], capture_output=True, text=True, check=True
    )
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("shell", SHELLS)
def test_words_options_and_values(shell: str) -> None:
    completed = in_fish if shell == "fish" else in_bash
    assert completed("coplay tr") == ["train"]
    assert {"ppo", "hop-plus", "mappo"} <= set(completed("coplay train "))
    assert completed("coplay train mappo --memory.ki") == ["--memory.kind"]
    assert set(completed("coplay train mappo --memory.kind ")) == {"none", "gru", "lstm"}
    if shell == "fish":
        assert completed("coplay watch CONTRIB") == ["CONTRIBUTING.md"]
    else:  # names of files are left to the shell, which knows where a folder goes on
        assert completed("coplay watch CONTRIB") == []
        assert "complete -o default -F _coplay coplay" in script_for("bash")
    assert "--search.simulations" in completed("coplay train hop-plus --search.")
    assert completed("coplay train ppo --search.") == []
    assert completed("coplay train ppo --game stag") == ["stag-hunt"]
    assert completed("coplay audit w") == ["wiring"]
    assert "--episodes" in completed("coplay play --seating ns,ns --ep")
    assert "cleanrl-ppo" in completed("coplay train ppo --preset ")
    assert completed("coplay bench --qu") == ["--quick"]


def test_every_command_with_parts_is_completed() -> None:
    assert set(FIRST) <= set(first_words()), "a line in first_words is missing"


def test_zsh_reads_the_same_script() -> None:
    assert script("zsh").endswith(script_for("bash"))
    assert "compinit" in script("zsh").splitlines()[0] and "bashcompinit" in script("zsh")
