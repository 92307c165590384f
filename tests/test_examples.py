"""Every example runs."""

import runpy
from pathlib import Path

import pytest

LONG = {"pettingzoo_train", "train"}
EXAMPLES = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LONG else [])
    for path in sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
]


@pytest.mark.parametrize("path", EXAMPLES)
def test_example(path: Path, capsys: pytest.CaptureFixture) -> None:
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()
