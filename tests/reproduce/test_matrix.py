"""Whether modelling pays is said by the intervals, not by the means alone."""

import pytest

from coplay.reproduce.experiment import over_runs
from coplay.reproduce.matrix import verdict

LOW, MIDDLE, HIGH = (over_runs(values) for values in ([1.0, 1.2], [1.1, 2.0], [2.5, 2.6]))


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ((HIGH, LOW), (HIGH, MIDDLE), "pays against both"),
        ((LOW, MIDDLE), (MIDDLE, LOW), "makes no clear difference against both"),
        ((HIGH, LOW), (MIDDLE, LOW), "pays against a, makes no clear difference against b"),
        ((LOW, HIGH), (HIGH, LOW), "costs reward against a, pays against b"),
    ],
)
def test_a_difference_counts_where_intervals_do_not_overlap(
    first: tuple, second: tuple, words: str
) -> None:
    assert verdict({"a": first, "b": second}) == words
