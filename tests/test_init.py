"""The public names: all there, explained with an example, and quick to import."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import coplay

PUBLIC = {
    *("Game", "Player", "Learner", "View", "Trajectory", "Observation", "Outcome", "UserError"),
    *("train", "play", "adapt", "cross_play", "compare", "audit_seats", "audit_wiring", "episodes"),
    *("collect", "pretrain", "inspect", "make_game", "make_player", "load_run", "check_game"),
    "check",
    *("register_game", "register_player", "register_learner", "from_pettingzoo", "to_pettingzoo"),
}


def test_all_public_names_are_listed() -> None:
    assert PUBLIC <= set(dir(coplay)) == set(coplay.__all__)


def test_every_public_name_is_explained_with_an_example() -> None:
    for name in coplay.__all__:
        if name != "__version__":
            words = inspect.getdoc(getattr(coplay, name)) or ""
            assert re.search(r"\n\n(    |.*coplay\.)", words), f"{name} has no example"


def test_types_are_known_for_all_names() -> None:
    text = Path(coplay.__file__).read_text()
    for name, module in coplay._WHERE.items():
        assert f"    from {module} import {name} as {name}\n" in text, name


def test_importing_is_quick() -> None:
    code = "import sys, coplay, coplay.cli.main; dir(coplay); assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
