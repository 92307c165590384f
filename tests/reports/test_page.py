"""Pages in one file."""

from pathlib import Path

from coplay.reports import charts, page


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
