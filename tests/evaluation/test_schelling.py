"""Schelling diagrams of a game whose pay-offs are known."""

from pathlib import Path

import numpy as np
import pytest

import coplay
from coplay.core.errors import UserError
from coplay.evaluation.schelling import schelling
from coplay.reports.schelling import draw_schelling


@pytest.mark.slow
def test_public_goods_and_its_picture(tmp_path: Path) -> None:
    """Of 3 players each contribution of 1 gives 0.5 to everybody."""
    game = coplay.make_game("matrix:public-goods", players=3, multiplier=1.5, rounds=4)
    found = schelling(game, episodes=4)
    others = np.arange(3)
    np.testing.assert_allclose(found.defect, 4 * 0.5 * others, atol=1e-5)
    np.testing.assert_allclose(found.cooperate, 4 * (0.5 * (others + 1) - 1), atol=1e-5)
    assert (found.cooperator, found.defector) == ("always-contribute", "always-keep")
    draw_schelling(tmp_path / "picture.png", found)
    assert (tmp_path / "picture.png").stat().st_size > 1000


@pytest.mark.parametrize("name", ["matrix:matching-pennies", "identity"])
def test_seats_must_be_alike(name: str) -> None:
    with pytest.raises(UserError, match="seats that are all alike"):
        schelling(coplay.make_game(name))
