"""Fields to vary: lists and ranges as users write them, checked against the configuration."""

import pytest

from coplay.api.training import make_config
from coplay.core.errors import UserError
from coplay.sweeps.space import configured, dimensions, drawn, grid, setting_of, texts_of
from coplay.training.config import TrainConfig


@pytest.fixture(scope="module")
def config() -> TrainConfig:
    return make_config("ppo", "stag-hunt", {}, {})


def test_lists_have_the_types_of_their_fields(config: TrainConfig) -> None:
    vary = {"discount": "0.9,1", "game.height": "4,5", "parameters": "shared,separate"}
    found = {one.path: one.values for one in dimensions(config, vary)}
    assert found == {
        "discount": (0.9, 1.0),
        "game.height": (4, 5),
        "parameters": ("shared", "separate"),
    }


def test_ranges(config: TrainConfig) -> None:
    rate, copies, steps = dimensions(
        config,
        {
            "optimiser.learning-rate": "log:1e-4..1e-2",
            "copies": "64..128",
            "discount": "0.9..0.99:4",
        },
    )
    assert (rate.path, rate.scale, rate.values) == ("optimiser.learning_rate", "log", ())
    assert copies.scale == "int" and copies.ends() == (64, 128)
    assert steps.values == (0.9, 0.93, 0.96, 0.99)


def test_a_grid_has_all_combinations(config: TrainConfig) -> None:
    space = dimensions(config, {"discount": "0.9,0.99", "epochs": "int:1..3"})
    settings = grid(space)
    assert len(settings) == 6 and settings[1] == {"discount": 0.9, "epochs": 2}
    changed = configured(config, settings[1])
    assert setting_of(changed, ["discount", "epochs"]) == settings[1]


def test_draws_are_the_same_again_and_in_range(config: TrainConfig) -> None:
    space = dimensions(config, {"optimiser.learning_rate": "log:1e-4..1e-2", "epochs": "1,2"})
    settings = drawn(space, 50, seed=3)
    assert settings == drawn(space, 50, seed=3) != drawn(space, 50, seed=4)
    rates = [one["optimiser.learning_rate"] for one in settings]
    assert all(1e-4 <= rate <= 1e-2 for rate in rates)
    assert 15 < sum(rate < 1e-3 for rate in rates) < 35  # the middle of the logarithm
    assert len(drawn(space[1:], 50, seed=3)) == 2


@pytest.mark.parametrize(
    "vary, said",
    [
        ({"discont": "0.9,0.99"}, "did you mean 'discount'"),
        ({"discount": "0.9,1.5"}, "between 0 and 1"),
        ({"discount": "0.9"}, "two different values"),
        ({"discount": "0.9..0.5"}, "to a greater one"),
        ({"discount": "log:0..0.5"}, "above 0"),
        ({"discount": "log:0.5"}, "log:LOW..HIGH"),
        ({"discount": "a..b"}, "are numbers"),
        ({"discount": "0.1..0.5:1"}, "2 to 1000 points"),
        ({"epochs": "int:1.5..3"}, "whole numbers"),
        ({"epochs": "a,b"}, "must be int"),
        ({"seed": "1,2"}, "--seed"),
        ({"block": "1,2"}, "does not change what is learned"),
        ({}, "--vary discount=0.9,0.99"),
    ],
)
def test_wrong_fields_and_values_are_refused(
    config: TrainConfig, vary: dict[str, str], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        dimensions(config, vary)


def test_texts_of_the_command_line() -> None:
    assert texts_of(["discount=0.9,1", "a.b=x=y"]) == {"discount": "0.9,1", "a.b": "x=y"}
    for wrong in (["discount"], ["=1"], ["discount="], ["a-b=1,2", "a_b=3,4"]):
        with pytest.raises(UserError):
            texts_of(wrong)


def test_a_grid_of_ranges_is_refused(config: TrainConfig) -> None:
    with pytest.raises(UserError, match=r"LOW\.\.HIGH:5"):
        grid(dimensions(config, {"discount": "0.9..0.99"}))
