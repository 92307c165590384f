"""The library's own games beside JaxMARL's are of the same size."""

from typing import Any

import jax
import pytest

import coplay
from coplay.bench.jaxmarl import COUNTERPARTS, jaxmarl_stepping


@pytest.mark.parametrize("theirs", COUNTERPARTS)
def test_a_counterpart_has_the_same_size_and_a_row(theirs: str) -> None:
    pytest.importorskip("jaxmarl")
    own, fields = COUNTERPARTS[theirs]
    ours: Any = coplay.make_game(own, **fields)
    adapted: Any = coplay.make_game(theirs)
    inner, outer = (getattr(adapted.env, f"num_{part}_steps") for part in ("inner", "outer"))
    assert (ours.seats, ours.horizon) == (adapted.seats, inner * outer)
    height, width = adapted.observe(adapted.reset(jax.random.key(0)))[0].shape[1:3]
    assert (ours.config.height, ours.config.width) == (height, width)
    names = [work.name for work in jaxmarl_stepping(theirs)]
    assert names[0].startswith(f"random players in {theirs}")
    assert names[1].startswith(f"random players in {own} {height}x{width}")
    assert names[2] == "JaxMARL's own stepping"
