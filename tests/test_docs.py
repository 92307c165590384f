"""Pages that show code show the code that runs."""

import re
from pathlib import Path

HOME = Path(__file__).parents[1]


def test_the_tutorial_is_its_example_from_top_to_bottom() -> None:
    page = (HOME / "docs" / "own-game.md").read_text()
    code = (HOME / "examples" / "own_game.py").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    # A page shows methods without the indentation of their class.
    shown = [line.strip() for block in blocks for line in block.splitlines() if line]
    assert shown == [line.strip() for line in code.splitlines() if line]
    assert len(code.splitlines()) < 80
