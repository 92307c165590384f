"""Help shows what matters first, and everything on demand."""

import re
from typing import Any

import pytest

from coplay.cli import train
from coplay.cli.arguments import declaration
from coplay.cli.fields import fields_of, option_name
from coplay.cli.help import FIRST, HELP
from coplay.cli.main import COMMANDS, run


def shown(capsys: Any, *words: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        train.run(list(words))
    assert stopped.value.code == 0
    return capsys.readouterr().out


def test_help_shows_ten_options_and_how_to_see_all(capsys: Any) -> None:
    text = shown(capsys, "hop-plus", "--help")
    options = [line.split()[0] for line in text.splitlines() if line.startswith("  --")]
    assert options == [option_name(name) for name in FIRST] and len(options) == 10
    assert "coplay train hop-plus --help-all" in text and "search, " in text
    assert len(text.splitlines()) < 45
    assert re.search(r"--seeds INT .*\(default:\s+1\)", text, re.DOTALL)
    assert "on-policy-smac" in shown(capsys, "mappo", "--help")


def test_help_all_has_every_option_by_topic(capsys: Any) -> None:
    found = declaration(train.run, ["hop-plus"])
    assert found is not None
    text = shown(capsys, "hop-plus", "--help-all")
    topics = re.findall(r"^([a-z][\w. -]*):", text, re.MULTILINE)
    assert topics[:4] == ["usage", "this command", "run", "hop-plus"] and "search" in topics
    lines = text.splitlines()
    for field in fields_of(found.kind, found.default):
        start = f"  {option_name(field.name)}"
        assert sum(line.startswith((f"{start} ", f"{start},")) for line in lines) == 1, start


def test_conditions_are_words_that_a_user_knows(capsys: Any) -> None:
    text = " ".join(shown(capsys, "hop-plus", "--help-all").split())
    assert "Acts only if there is a world model." in text and "uses_" not in text
    assert "Acts only if goals.from is empty" in text and "from_" not in text
    assert "self-play alone" in text, "no line ends at a hyphen"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("option", HELP)
def test_every_command_helps_with_either_option(command: str, option: str, capsys: Any) -> None:
    try:
        code = run([command, option])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    shown = capsys.readouterr()
    assert code == 0 and shown.out.startswith(f"usage: coplay {command}") and not shown.err
