"""The figures of a sweep's page."""

import numpy as np
import pytest

from coplay.api.sweeping import new_sweep
from coplay.api.training import make_config
from coplay.reports import charts
from coplay.reports.sweep_page import BY_WORTH, draw_map, draw_parallel, importance
from coplay.reports.sweep_table import ranked, result_words
from coplay.sweeps.config import SweepConfig
from coplay.sweeps.folder import SweepState, Trial


@pytest.fixture
def state() -> SweepState:
    """Twelve trials in which the discount decides all, and the rate nothing."""
    config = make_config("ppo", "stag-hunt", {}, {})
    vary = {"discount": "0.8,0.9,0.99", "optimiser.learning_rate": "log:1e-4..1e-2"}
    found = new_sweep(config, SweepConfig(), vary)
    for number in range(12):
        discount = (0.8, 0.9, 0.99)[number % 3]
        setting = {"discount": discount, "optimiser.learning_rate": 1e-4 * 1.4 ** (number // 3)}
        value = discount + 0.001 * (number % 2)
        found.trials.append(Trial(number, setting, "finished", values=[value], value=value))
    return found


def test_importance_is_the_share_that_a_field_explains(state: SweepState) -> None:
    shares = importance(state, state.trials)
    assert shares["discount"] > 0.99 and shares["optimiser.learning_rate"] < 0.01


def test_pictures_of_lists_and_ranges(state: SweepState) -> None:
    paths = [one.path for one in state.space]
    assert len(draw_parallel(state, state.trials).axes) == 1
    assert len(draw_map(state, state.trials, *paths).axes) == 2


def test_the_worst_is_seen_on_white_and_numbers_on_their_cells(state: SweepState) -> None:
    assert charts.contrast(BY_WORTH(0.0), "white") > 3
    for one in state.trials:
        one.setting["optimiser.learning_rate"] = 1e-3 * (one.number // 3)
        one.value = (one.value or 0) + 0.01 * one.number
    (axes, _) = draw_map(state, state.trials, *(one.path for one in state.space)).axes
    (cells,) = axes.get_images()
    numbers = {text.get_position(): text for text in axes.texts}
    assert len(numbers) == 12
    for (row, column), value in np.ndenumerate(cells.get_array()):
        assert charts.contrast(numbers[column, row].get_color(), cells.to_rgba(value)) > 3


def test_fresh_seeds_come_first_and_the_best_is_on_top(state: SweepState) -> None:
    state.trials[0].state = "failed"
    state.confirmed = Trial(2, state.trials[2].setting, "finished", values=[0.5], value=0.5)
    assert ranked(state)[0].value == 0.991 and ranked(state)[-1].state == "failed"
    assert result_words(state)[0].startswith("team_mean 0.500 with 1 fresh seed")
