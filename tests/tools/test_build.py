"""The site: what is generated, what is linked, and that nothing comes from outside."""

import re
import tomllib
from pathlib import Path

import pytest

import coplay
from coplay.cli.arguments import parse_only
from coplay.cli.fields import fields_of
from coplay.cli.main import COMMANDS, run
from tools.docs import build, command_line, python_api
from tools.docs.source import HOME, with_links

OUTSIDE = re.compile(
    r"<(?:script|img|iframe|source|video|audio|object|embed)\b[^>]*\s(?:src|data)=[\"']?(https?:)?//"
    r"|<link\b(?=[^>]*rel=[\"']?(?:stylesheet|icon|preconnect|preload|modulepreload))"
    r"[^>]*href=[\"']?(https?:)?//"
    r"|@import\s+[\"'](https?:)?//|url\([\"']?(https?:)?//"
)
"""What a browser fetches from outside when it shows a page. A link to click on is none."""


def small_docs(folder: Path) -> Path:
    """Two pages, one on a shelf, and what every page needs."""
    docs = folder / "written"
    (docs / "explanation").mkdir(parents=True)
    for name in ("vendor", "assets"):
        (docs / name).symlink_to(HOME / "docs" / name)
    (docs / "index.md").write_text("# Start\n\nSee [why](explanation/why.md#the-sum).\n")
    (docs / "explanation" / "why.md").write_text(
        "# Why\n\nBecause $a < b$.\n\n## The sum\n\n$$\\sum_i x_i$$\n\n[Licence](../../LICENSE)\n"
    )
    return docs


def test_links_in_code_stay() -> None:
    code = "\n\n```\n[a](b.md)\n```\n`[a](b.md)` "
    text = f"[a](b.md){code}![c](d.png)\n"
    assert with_links(text, str.upper) == f"[a](B.MD){code}![c](D.PNG)\n"


def test_links_hold_on_the_site(tmp_path: Path) -> None:
    pages = tmp_path / "docs"
    (pages / "how-to").mkdir(parents=True)
    page = pages / "how-to" / "resume.md"
    inside = "[z](../index.md#a) [w](#b)"
    page.write_text(f"[x](../../LICENSE) [y](../tutorials/01-first.ipynb) {inside}")
    build.link(page, build.DOCS / "how-to" / "resume.md", pages, build.DOCS)
    assert page.read_text() == f"[x](../files/LICENSE) [y](../tutorials/01-first.md) {inside}"
    assert (pages / "files" / "LICENSE").exists()


def test_settings_name_nothing_outside_and_every_file_they_name_is_there() -> None:
    settings = tomllib.loads(build.SETTINGS.read_text())["project"]
    assert settings["theme"]["font"] is False
    files = [*settings["extra_css"], *settings["extra_javascript"]]
    assert all((build.DOCS / name).is_file() for name in files)
    assert "mermaid" not in build.SETTINGS.read_text()


def test_plugins_are_those_that_zensical_has() -> None:
    """Zensical passes over settings that it does not know; so does it over whole plugins."""
    from zensical.config import _PLUGIN_UNSUPPORTED_OPTIONS as without_effect

    for name, options in tomllib.loads(build.SETTINGS.read_text())["project"]["plugins"].items():
        assert name in without_effect, f"Zensical has no plugin {name}"
        assert not set(options) & set(without_effect[name]), f"options of {name} without effect"


def test_every_public_name_is_explained_with_an_example() -> None:
    named = [name for names in python_api.GROUPS.values() for name in names]
    assert sorted(named) == sorted(set(coplay.__all__) - {"__version__"})
    for name in named:
        paragraphs = list(python_api.paragraphs_of(getattr(coplay, name)))
        assert any(is_code for is_code, _ in paragraphs), f"coplay.{name} has no example"


def test_every_command_and_field_is_explained() -> None:
    page = command_line.page()
    for name in COMMANDS:
        assert f"## coplay {name}" in page
    for command, declared in command_line.declarations():
        for field in fields_of(declared.kind, declared.default):
            assert field.help, f"{command}: {field.name} has no words"


def test_options_are_those_of_the_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the reference lists is what the parser itself says."""
    monkeypatch.setenv("COLUMNS", "500")
    with pytest.raises(SystemExit):
        parse_only(run, ["collect", "--help"])
    said = set(re.findall(r"--[a-z][a-z.-]*[a-z]", capsys.readouterr().out))
    assert said <= command_line.all_options()
    declared = command_line.declared_by("collect")
    named = {f"--{f.name.replace('_', '-')}" for f in fields_of(declared.kind, declared.default)}
    assert named <= said


@pytest.mark.slow
def test_the_site_fetches_nothing_from_outside(tmp_path: Path) -> None:
    site = build.build(tmp_path / "build")
    pages = [*site.rglob("*.html")]
    assert len(pages) > 10
    for page in pages:
        found = OUTSIDE.search(page.read_text())
        assert not found, f"{page.relative_to(site)}: {found and found[0]}"
    assert not any("mermaid" in page.read_text() for page in pages)
    index = (site / "search.json").read_text()
    assert all(f"{name}.html" in index for name in ("configuration", "metrics", "python-api"))


@pytest.mark.slow
def test_each_plugin_has_an_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a plugin the site is another."""

    def files(out: Path) -> dict[str, bytes]:
        site = build.build(out, small_docs(out))
        found = (path for path in site.rglob("*") if path.is_file())
        return {str(path.relative_to(site)): path.read_bytes() for path in found}

    monkeypatch.setattr(build, "MAKERS", {})
    whole = files(tmp_path / "whole")
    text = build.SETTINGS.read_text()
    for name in tomllib.loads(text)["project"]["plugins"]:
        less = tmp_path / f"{name}.toml"
        less.write_text(re.sub(rf"\[project\.plugins\.{name}\]\n([^\[\n][^\n]*\n)*", "", text))
        monkeypatch.setattr(build, "SETTINGS", less)
        assert files(tmp_path / name) != whole, f"the plugin {name} has no effect"


@pytest.mark.slow
def test_a_link_that_leads_nowhere_stops_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "MAKERS", {})
    docs = small_docs(tmp_path)
    (docs / "index.md").write_text("# Start\n\n[nowhere](explanation/nowhere.md)\n")
    with pytest.raises(SystemExit, match="nowhere"):
        build.build(tmp_path / "build", docs)
