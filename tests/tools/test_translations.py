"""Pages in Chinese say what the English ones say: the same code, commands, figures and pictures."""

from pathlib import Path

import pytest

from tools.docs.source import text_of
from tools.docs.translations import differences, pairs, with_code


@pytest.mark.parametrize("english, chinese", pairs(), ids=lambda path: path.name)
def test_both_languages_agree(english: Path, chinese: Path) -> None:
    assert differences(english, chinese) == []
    if chinese.suffix == ".ipynb":
        same = with_code(english.read_text(), chinese.read_text())
        assert same == chinese.read_text(), "run python -m tools.docs.translations"


@pytest.mark.parametrize("english, chinese", pairs(), ids=lambda path: path.name)
def test_each_links_to_the_other(english: Path, chinese: Path) -> None:
    assert f"[中文]({'' if english.suffix == '.md' else '../zh/'}{chinese.name})" in text_of(
        english
    )
    back = "" if english.suffix == ".md" else "../tutorials/"
    assert f"[English]({back}{english.name})" in text_of(chinese)


def test_differences_are_seen(tmp_path: Path) -> None:
    good = "# A\n\n3 of `x`, see [b](b.md)\n\n```\nls  # words\n```\n"
    (tmp_path / "a.md").write_text(good)
    for number, (old, new, said) in enumerate(
        [
            ("3 of", "4 of", "figures"),
            ("`x`", "`y`", "commands and names"),
            ("ls ", "rm ", "code"),
            ("b.md", "c.md", "links and pictures"),
        ]
    ):
        other = tmp_path / f"{number}.md"
        other.write_text(good.replace(old, new))
        (found,) = differences(tmp_path / "a.md", other)
        assert f"{said} differ" in found
    (tmp_path / "zh.md").write_text(good.replace("words", "词"))
    assert differences(tmp_path / "a.md", tmp_path / "zh.md") == []
