"""Which setting comes next, and what a sampler remembers when a sweep is taken up."""

import pytest

from coplay.sweeps.config import SweepConfig
from coplay.sweeps.samplers import Listed, OptunaSampler, make_sampler
from coplay.sweeps.space import Dimension, Setting

SPACE = [Dimension("discount", (0.9, 0.99)), Dimension("rate", (), 1e-4, 1e-2, "log")]
LISTS = [Dimension("discount", (0.9, 0.99)), Dimension("widths", ([8], [8, 8]))]


def test_auto_is_a_grid_of_lists_and_random_else() -> None:
    assert make_sampler(SweepConfig(), LISTS, 0).count == 4
    assert make_sampler(SweepConfig(trials=3), LISTS, 0).count == 3
    random = make_sampler(SweepConfig(trials=7), SPACE, 0)
    assert isinstance(random, Listed) and random.count == 7


def score(setting: Setting) -> float:
    return setting["discount"] - abs(setting["rate"] - 1e-3)


def test_optuna_goes_on_as_if_it_had_not_stopped() -> None:
    pytest.importorskip("optuna")
    config = SweepConfig(sampler="optuna", trials=8)
    sampler = make_sampler(config, SPACE, 0)
    asked = []
    for number in range(6):
        asked.append(sampler.ask(number))
        sampler.tell(number, "finished", score(asked[-1]))
    assert all(1e-4 <= one["rate"] <= 1e-2 and one["discount"] in (0.9, 0.99) for one in asked)
    again = make_sampler(config, SPACE, 0)
    assert isinstance(again, OptunaSampler)
    for number, setting in enumerate(asked[:5]):
        again.take_up(number, setting, "finished", score(setting))
    again.take_up(5, asked[5], "waiting", None)
    again.tell(5, "finished", score(asked[5]))
    before = {number: one.params for number, one in enumerate(sampler.study.trials)}  # type: ignore
    assert {number: one.params for number, one in enumerate(again.study.trials)} == before
    assert again.study.best_value == max(map(score, asked))


def test_pruning_stops_what_is_below_the_median() -> None:
    pytest.importorskip("optuna")
    config = SweepConfig(prune=True)
    sampler = make_sampler(config, [Dimension("discount", tuple(range(10)))], 0)
    for number in range(5):
        assert sampler.ask(number) == {"discount": number}
        assert not sampler.hopeless(number, 100, 1.0 + number)
        sampler.tell(number, "finished", 1.0 + number)
    sampler.ask(5)
    assert not sampler.hopeless(5, 100, 4.0)
    sampler.ask(6)
    assert sampler.hopeless(6, 100, 1.0)
    sampler.tell(6, "pruned", 1.0)
