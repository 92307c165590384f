"""Pages and results/*.json agree."""

import pytest

from coplay.reproduce.registry import EXPERIMENTS
from tests.reproduce.test_tables import a_result
from tools.docs.results import HOME, MARKED, commands, filled, listing, pages, read_results

RESULTS = read_results(HOME / "results")


def test_what_stands_between_markers_is_made_anew() -> None:
    page = "before\n<!-- results: so -->\nold\n<!-- end -->\n\n"
    page += "<!-- results: so answer -->\n<!-- end -->"
    assert filled(page, {"so": a_result()}) == (
        "before\n<!-- results: so -->\n| player | score |\n| --- | --- |\n"
        "| HOP | 0.950 (0.900 to 1.000) |\n<!-- end -->\n\n"
        "<!-- results: so answer -->\nIt is so.\n<!-- end -->"
    )


def test_main_figures_have_links_on_pages_and_names_in_the_readme() -> None:
    for marker, place in {"all": "[page](so.md)", "readme": "`so`"}.items():
        page = filled(f"<!-- results: {marker} -->\n<!-- end -->", {"so": a_result()})
        assert f"| HOP: score | 0.950 (0.900 to 1.000) | {place} |" in page


@pytest.mark.parametrize("marker", ["nothing", "so nothing"])
def test_markers_of_nothing_are_refused(marker: str) -> None:
    with pytest.raises(SystemExit, match=f"results: {marker} "):
        filled(f"<!-- results: {marker} -->\n<!-- end -->", {"so": a_result()})


def test_long_commands_are_continued() -> None:
    command = {"command": "coplay train ppo " + " ".join(f"--option-{i} {i}" for i in range(20))}
    text = commands({"commands": [command]})
    assert max(map(len, text.splitlines())) <= 102
    assert text.replace(" \\\n   ", "") == command["command"]


def test_the_listing_says_command_commit_seeds_machine_and_time() -> None:
    said = listing({"so": a_result()})
    for words in ("coplay list", "0123456789", "0 and 1", "2 cores (a processor)", "90 seconds"):
        assert words in said


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_pages_show_the_results(page) -> None:
    text = page.read_text()
    assert filled(text, RESULTS) == text, f"{page.name} is behind results/: make results"
    assert len(MARKED.findall(text)) == text.count("<!-- results:"), "a marker without its end"


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_is_of_the_declared_commands_and_has_a_page(name: str) -> None:
    result, experiment = RESULTS[name], EXPERIMENTS[name]
    assert [one["command"] for one in result["commands"]] == [one.shown for one in experiment.steps]
    for field in ("question", "title", "seeds"):
        assert result[field] == getattr(experiment, field)
    assert all(one["commit"] for one in result["commands"])
    assert (HOME / "docs" / "results" / f"{name}.md").exists()
    if result["chart"] is not None:
        assert (HOME / "docs" / "images" / f"results-{name}.png").exists()
