"""Pages in one file."""

import hashlib
import json
from pathlib import Path

from coplay.reports import charts, page

VENDOR = Path(page.__file__).parent / "web" / "vendor"


def test_a_page_holds_its_pictures_and_escapes_words(tmp_path: Path) -> None:
    picture = tmp_path / "p.png"
    charts.save(charts.new_figure(1, 1), picture)
    parts = [page.heading("a < b"), page.paragraph("x & y", "verdict"), page.picture(picture, "p")]
    page.write_page(tmp_path / "index.html", "R&D", parts)
    text = (tmp_path / "index.html").read_text()
    assert "<h2>a &lt; b</h2>" in text and '<p class="verdict">x &amp; y</p>' in text
    assert "<title>R&amp;D</title>" in text and "data:image/png;base64," in text


def test_verdicts_in_tables_are_coloured() -> None:
    text = page.table(("check", ""), [("<one>", "passed"), ("two", "FAILED")])
    assert '<td class="mark-pass">passed</td>' in text and "&lt;one&gt;" in text
    assert '<td class="mark-fail">FAILED</td>' in text


def test_numbers_in_tables_stand_below_each_other() -> None:
    text = page.table(
        ("name", "error", "share"), [("1a", "-0.25 ± 0.1", "5 %"), ("2", "", "1,000")]
    )
    assert '<th>name</th><th class="number">error</th><th class="number">share' in text
    assert '<td>2</td><td class="number"></td><td class="number">1,000</td>' in text


def test_only_sentences_in_tables_are_broken_into_lines() -> None:
    sentence = "a sentence that takes more than one line of a window"
    text = page.table(("name", "words"), [("rules-0", sentence), ("rules-1", "-")])
    assert f'<td>rules-0</td><td class="sentence">{sentence}</td>' in text
    assert "main.text td { white-space: nowrap; }" in page.web_text("frame.css")


def test_what_others_wrote_is_unchanged_and_has_a_licence() -> None:
    listed = {"vendor.json"}
    for name, about in json.loads((VENDOR / "vendor.json").read_text()).items():
        assert about["version"] and about["licence"] and f"{name}.LICENSE" in about["files"]
        for file, stated in about["files"].items():
            assert hashlib.sha256((VENDOR / file).read_bytes()).hexdigest() == stated, file
        listed |= set(about["files"])
    assert {path.name for path in VENDOR.iterdir()} == listed


def test_a_part_of_a_template_may_hold_braces() -> None:
    assert page.filled("<{a}|{b}>", {"a": "{b}{a}", "b": "x"}) == "<{b}{a}|x>"
