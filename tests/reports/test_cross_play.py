"""Cross-play as a table and a heat map."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coplay.core.errors import UserError
from coplay.evaluation.cross_play import CrossPlay
from coplay.reports.cross_play import check_picture, print_cross_play, write_heat_map

CELLS = np.array([[1.0, 2.0], [3.0, 4.0]])
RESULT = CrossPlay("stag-hunt", ["ns", "nh"], 100, CELLS, CELLS / 10, CELLS + 5, CELLS / 20)


def test_the_table_has_every_pair(capsys: Any) -> None:
    print_cross_play(RESULT, False)
    printed = capsys.readouterr().out
    assert (
        printed.count("nh") == 2
        and "3.00 ±0.30 / 8.00 ±0.15" in printed
        and "100 episodes each" in printed
    )
    print_cross_play(RESULT, True)
    assert json.loads(capsys.readouterr().out)["reward"] == CELLS.tolist()


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_heat_map_is_written(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"map.{ending}"
    check_picture(path)
    write_heat_map(path, RESULT)
    assert path.stat().st_size > 1000


def test_other_endings_are_refused() -> None:
    with pytest.raises(UserError, match=r"a picture ends in \.png"):
        check_picture(Path("map.txt"))
