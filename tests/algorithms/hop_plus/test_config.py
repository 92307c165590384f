"""The options of HOP+: fields that do nothing are named, parts do not contradict each other."""

from typing import Any

import pytest

from coplay.algorithms.hop_plus.config import HopPlusConfig
from coplay.core.config import inert_fields, with_fields
from coplay.core.errors import UserError


def inert(fields: dict[str, Any]) -> list[str]:
    """Paths of the fields that do nothing."""
    found = inert_fields(with_fields(HopPlusConfig(), fields))
    return [text.split(" ")[0] for text in found]


@pytest.mark.parametrize(
    "field",
    [
        {"search.draws": 3},
        {"search.simulations": 3},
        {"plan_over": "model"},
        {"plan_while_learning": True},
        {"goals.from": "goals", "goals.loss": "reconstruction"},
        {"imagination.strangers": 0.0, "imagination.over": "model"},
        {"imagination.strangers": 0.0, "imagination.after": 3},
        {"goals.from": "goals", "recordings.samples": 3},
        {"world_model.channels": 8},
        {"models.buffer_transitions": 8},
        {"models.batch_transitions": 8},
        {"models.learn_world": False},
    ],
)
def test_fields_that_do_nothing_by_default(field: dict[str, Any]) -> None:
    assert inert(field) == list(field)[-1:]


def test_fields_that_act() -> None:
    searching = {"planner": "search", "search.simulations": 3, "search.draws": 3}
    assert inert(searching) == []
    assert inert(searching | {"planner": "one-step"}) == ["search.simulations"]
    model = {"world_model.channels": 8, "models.batch_transitions": 8}
    assert inert({"planner": "search", "plan_over": "model"} | model) == []
    imagined = {"imagination.share": 0.25, "imagination.over": "model", "imagination.after": 3}
    assert inert(imagined | model) == []
    assert inert({"goals.loss": "reconstruction", "goals.dim": 3}) == []
    assert inert({"goals.from": "goals", "goals.dim": 3}) == []
    recurrent = {"imagination.strangers": 0.0, "goals.inference": "gru"}
    assert inert(recurrent | {"goals.prototypes": 3}) == ["goals.prototypes"]


def test_one_step_ahead_is_a_search_of_every_action() -> None:
    fields = {"planner": "one-step", "search": {"kind": "gumbel", "simulations": 9, "draws": 5}}
    found = with_fields(HopPlusConfig(), fields).search_config(7)
    assert (found.kind, found.simulations, found.depth, found.draws) == ("puct", 7, 1, 5)
    assert found.discount == 0.97


def test_a_shared_tree_is_refused() -> None:
    with pytest.raises(UserError, match="one tree per sample"):
        with_fields(HopPlusConfig(), {"search": {"resample": True, "share_tree": True}})
