"""Shelves: pages in their order, under headings, each with its first sentence."""

from pathlib import Path

import pytest

from tools.docs import shelves
from tools.docs.shelves import Shelf, first_sentence, groups_on, write_index
from tools.docs.source import text_of

SHELF = Shelf("how-to", "How-to", "Questions.", {"Begin": ("b",), "Later": ("c", "missing")})


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "how-to").mkdir()
    for name in "abc":
        text = f"# Page {name}\n\n```\ncoplay list\n```\n\nIt says {name}. And more.\n"
        (tmp_path / "how-to" / f"{name}.md").write_text(text)
    return tmp_path


def test_pages_stand_under_their_headings_and_others_under_more(docs: Path) -> None:
    found = {
        title: [page.stem for page in pages] for title, pages in groups_on(SHELF, docs).items()
    }
    assert found == {"Begin": ["b"], "Later": ["c"], "More": ["a"]}


def test_pages_of_a_shelf_without_headings_follow_by_name(docs: Path) -> None:
    plain = SHELF._replace(groups={"": ("c",)})
    assert [page.stem for page in groups_on(plain, docs)[""]] == ["c", "a", "b"]


def test_the_index_has_headings_and_first_sentences(docs: Path) -> None:
    write_index(SHELF, docs)
    index = (docs / "how-to" / "index.md").read_text()
    assert index.startswith("# How-to\n\nQuestions.\n\n## Begin\n- [Page b](b.md): It says b.\n\n")
    assert index.endswith("## More\n- [Page a](a.md): It says a.\n")


def test_a_sentence_before_an_example_ends_with_a_full_stop(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\nTrain it by the plain command:\n\n```\ncoplay train\n```\n")
    text_of.cache_clear()
    assert first_sentence(page) == "Train it by the plain command."


def test_the_navigation_has_groups(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelves, "shelves", lambda: [SHELF])
    _, how_to = shelves.navigation(docs)
    assert how_to["How-to"][:2] == ["how-to/index.md", {"Begin": [{"Page b": "how-to/b.md"}]}]
