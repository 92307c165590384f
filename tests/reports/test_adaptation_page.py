"""The page of an adaptation."""

from pathlib import Path

import pytest

from coplay.core.invocation import invoked
from coplay.reports.adaptation import draw_adaptation
from coplay.reports.adaptation_page import verdict, write_adaptation_page
from tests.reports.test_adaptation import result
from tests.trust.pages import EVIL, read_page


def test_figures_first_then_tables_then_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "runs" / "hop"
    run.mkdir(parents=True)
    (run / "index.html").touch()
    picture = tmp_path / "a.png"
    draw_adaptation(picture, result("nh,nh,nh", True))
    results = [result("nh,nh,nh", True), result(f"ns,{EVIL},ns", False) | {"normalised": -0.25}]
    with invoked(["adapt", "runs/hop", "--suite", EVIL]):
        path = write_adaptation_page(tmp_path / "out", results, [(picture, "A title", EVIL)])
    texts = read_page(path)
    assert "../runs/hop/index.html" in "".join(texts)
    assert sum(EVIL in text for text in texts) >= 3
    page = path.read_text()
    assert page.index("verdict") < page.index("data:image/png") < page.index("<table>")
    assert page.index("<table>") < page.index("coplay adapt runs/hop --suite")
    assert (
        page.index("<table>") < page.index("coplay watch runs/hop --against")
        and "ns,&quot;" in page
    )


def test_the_verdict_is_a_sentence() -> None:
    good = result("nh,nh,nh", False)
    assert verdict([good]) == (
        "It gets 3.00 per episode among 3 x nh, which is 50 % of the way from random play to the "
        "best response; 90 % of it after 7 episodes."
    )
    bad = result("ns,nh", False) | {"normalised": 0.0}
    assert "25 % of the way" in verdict([good, bad]) and "0 % among ns, nh" in verdict([good, bad])
    unknown = good | {"normalised": None, "episodes_to_90": None}
    assert verdict([unknown]) == "It gets 3.00 per episode among 3 x nh."
    assert "without a best response" in verdict([unknown, unknown])
