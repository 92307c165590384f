"""Lists of entities among the features of a view."""

from typing import Any

import pytest

from coplay.core.entities import EntityList, entity_faults, in_a_row


def test_places_in_a_row() -> None:
    assert in_a_row(4, 3, 2) == ((4, 5), (6, 7), (8, 9))
    assert in_a_row(4, 0, 2) == ()


def test_lists_that_fit_have_no_fault() -> None:
    lists = (EntityList("a", in_a_row(0, 2, 2), there=1), EntityList("b", ((5, 7), (4, 6))))
    assert entity_faults(lists, 8) == []
    assert entity_faults((), 0) == []


@pytest.mark.parametrize(
    ("lists", "words"),
    [
        ([EntityList("a", ())], "entities 'a' must have the same numbers each"),
        ([EntityList("a", ((), ()))], "entities 'a' must have the same numbers each"),
        ([EntityList("a", ((0, 1), (2,)))], "entities 'a' must have the same numbers each"),
        ([EntityList("a", ((0, 1),), there=2)], "there=2 is none"),
        ([EntityList("a", ((0, 1),), there=-1)], "there=-1 is none"),
        ([EntityList("a", ((6, 8),))], "at places 6 to 8 of 8 features"),
        ([EntityList("a", ((-1, 0),))], "at places -1 to 0 of 8 features"),
        ([EntityList("a", ((0, 1),)), EntityList("b", ((1, 2),))], "belongs to two entities"),
        ([EntityList("a", ((0, 1), (1, 2)))], "belongs to two entities"),
    ],
)
def test_what_is_wrong_is_said(lists: Any, words: str) -> None:
    faults = entity_faults(tuple(lists), 8)
    assert len(faults) == 1 and words in faults[0]
