"""Options of other libraries mean ours."""

import re
from pathlib import Path
from typing import Any

from coplay.cli import train
from coplay.cli.aliases import ALIASES, in_our_names
from coplay.cli.arguments import declaration, parse_only
from coplay.cli.train import configured
from coplay.core.config import get_field
from coplay.core.errors import UserError

MOVED = Path(__file__).parents[2] / "docs/how-to/move-from-other-libraries.md"


def test_options_are_renamed_with_their_values(capsys: Any) -> None:
    given = ["train", "ppo", "--lr", "0.1", "--num_envs=8", "--steps", "100", "lr"]
    ours = ["train", "ppo", "--optimiser.learning-rate", "0.1", "--copies=8", *given[5:]]
    assert in_our_names(given) == ours
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "note: --lr is --optimiser.learning-rate here",
        "note: --num_envs is --copies here",
    ]


def test_an_option_of_the_command_itself_keeps_its_name() -> None:
    """A learner of one's own may have a field that elsewhere stands for one of ours."""
    given = ["--learning_rate", "0.1", "--gamma", "0.9"]
    assert in_our_names(given, lambda: ["--learning-rate"]) == [*given[:2], "--discount", "0.9"]


def test_a_line_of_another_library_is_understood() -> None:
    line = "ppo --env stag-hunt --total-timesteps 1000 --gamma 0.9 --ent-coef 0.01 --clip-coef 0.1"
    parse_only(train.run, in_our_names(line.split()))


def test_no_alias_hides_an_option_of_ours() -> None:
    found = declaration(train.run, ["mappo"])
    assert found is not None
    default = found.default
    for theirs, ours in ALIASES.items():
        assert not hasattr(default, theirs.replace("-", "_"))
        if ours != "game":
            places = (default.learner, default.run)
            path = ours.replace("-", "_")
            assert any(_has(place, path) for place in places), ours


def _has(config: Any, path: str) -> bool:
    try:
        get_field(config, path)
    except UserError:
        return False
    return True


def test_the_page_and_the_table_agree() -> None:
    """Whatever the page says is renamed to one of ours is renamed to that one."""
    rows = [row.split("|")[1:-1] for row in MOVED.read_text().splitlines() if row.startswith("| `")]
    stated = {
        name.replace("_", "-"): re.findall(r"`--([\w.-]+)", ours)[0]
        for ours, *theirs in rows
        for cell in theirs
        for name in re.findall(r"^ `([\w-]+)` $", cell)
    }
    both = {name for name in stated if name in ALIASES}
    assert len(both) > 12
    assert {name: stated[name] for name in both} == {name: ALIASES[name] for name in both}


def test_none_is_the_word_for_no_value_as_in_files() -> None:
    for words in ("--huber none --game.view=none", "--huber None --game.view None"):
        _, config, _ = configured(["mappo", *words.split()])
        assert config.learner.huber is None and config.game.view is None
    _, config, _ = configured(["mappo", "--memory.kind", "none"])
    assert config.learner.memory.kind == "none", "a choice of this name stays one"
