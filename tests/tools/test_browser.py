"""The site in a real browser that reaches no other machine."""

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.tools.test_build import small_docs
from tools.docs import build

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="needs Chromium: apt-get install chromium"),
]


class Proxy(BaseHTTPRequestHandler):
    """Refuses all that a browser wants from outside, and remembers it."""

    asked: list[str]

    def refuse(self) -> None:
        self.asked.append(self.path)
        self.send_error(403)

    do_GET = do_CONNECT = do_POST = do_HEAD = refuse

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "MAKERS", {})
        return build.build(folder / "build", small_docs(folder))


@pytest.fixture
def asked() -> Iterator[tuple[int, list[str]]]:
    """The port of a proxy that lets nothing through, and the addresses that it was asked for."""
    wanted: list[str] = []
    handler = type("Recording", (Proxy,), {"asked": wanted})
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as port:
        yield port, wanted


class serving:
    """A server in a thread, for as long as the block lasts; gives its port."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.server = server

    def __enter__(self) -> int:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return int(self.server.server_address[1])

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def shown(address: str, proxy: int) -> str:
    """The page as the browser has it after all scripts."""
    command = [
        *(str(BROWSER), "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"),
        *("--disable-component-update", "--disable-background-networking", "--no-first-run"),
        *(f"--proxy-server=http://127.0.0.1:{proxy}", "--virtual-time-budget=15000"),
    ]
    ended = subprocess.run(
        [*command, address], capture_output=True, text=True, timeout=300, check=True
    )
    return ended.stdout


def of_the_browser(address: str) -> bool:
    """Whether the browser itself asks, whatever page it shows."""
    own = r"(googleapis|gvt1|google|gstatic|googleusercontent|chromium)\.(com|org)"
    return bool(re.search(own, address)) and "fonts" not in address


def check(page: str, wanted: list[str]) -> None:
    assert page.count('class="katex"') == 2 and "katex-error" not in page
    assert not [address for address in wanted if not of_the_browser(address)]


def test_formulas_are_set_and_nothing_outside_is_asked_for(
    site: Path, asked: tuple[int, list[str]]
) -> None:
    proxy, wanted = asked
    handler = partial(SimpleHTTPRequestHandler, directory=str(site))
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as port:
        check(shown(f"http://127.0.0.1:{port}/explanation/why.html", proxy), wanted)


def test_the_site_can_be_opened_as_a_file(site: Path, asked: tuple[int, list[str]]) -> None:
    proxy, wanted = asked
    check(shown((site / "explanation" / "why.html").as_uri(), proxy), wanted)


SEARCH = """<script>
const attach = Element.prototype.attachShadow, roots = [];
Element.prototype.attachShadow = function (how) {
  roots.push(attach.call(this, how));
  return roots.at(-1);
};
const later = (what) => setTimeout(what, 1500);
window.addEventListener("load", () => later(() => {
  document.querySelector(".md-search__button").click();
  later(() => {
    const input = roots.map((root) => root.querySelector("input[type=text]")).find(Boolean);
    input.value = "because";
    input.dispatchEvent(new Event("input", { bubbles: true }));
    later(() => { document.title = roots.map((root) => root.innerHTML).join(); });
  });
}));
</script>"""
"""Searches as a reader would, and leaves what is found in the page's title."""


def test_search_finds_a_word_in_a_site_that_is_opened_as_a_file(
    site: Path, asked: tuple[int, list[str]]
) -> None:
    proxy, wanted = asked
    page = site / "searching.html"
    page.write_text((site / "index.html").read_text().replace("<head>", f"<head>{SEARCH}"))
    assert "why.html?h=because" in shown(page.as_uri(), proxy)
    assert not [address for address in wanted if not of_the_browser(address)]
