"""The options of searches."""

from typing import Any

import pytest

from coplay.core.errors import UserError
from coplay.search.config import SearchConfig


def test_a_shared_tree_makes_the_simulations_of_all_draws() -> None:
    config = SearchConfig(simulations=5, draws=3)
    assert (config.trees, config.simulations_per_tree) == (3, 5)
    shared = SearchConfig(simulations=5, draws=3, resample=True, share_tree=True)
    assert (shared.trees, shared.simulations_per_tree) == (1, 15)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"simulations": 0}, "simulations must be above 0"),
        ({"share_tree": True}, "needs resample"),
        ({"resample": True, "kind": "gumbel"}, "kind=puct"),
        ({"resample": True, "backup": "best"}, "backup=mean"),
        ({"resample": True, "backend": "mctx"}, "backend=mctx"),
    ],
)
def test_options_that_contradict_each_other(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        SearchConfig(**fields)
