"""A server in this process, and a real browser that looks at it."""

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from coplay.serve.server import address, listening, server

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE = 60_000
"""Milliseconds that a page may take on a busy machine."""


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an application on a free port; its address."""
    bound = listening("127.0.0.1", 0)
    made = server(app, "127.0.0.1", "")
    thread = threading.Thread(target=made.run, args=([bound],), daemon=True)
    thread.start()
    while not made.started:
        assert thread.is_alive()
        time.sleep(0.05)
    try:
        yield address("127.0.0.1", bound.getsockname()[1])
    finally:
        made.should_exit = True
        thread.join(30)


@contextmanager
def browsing() -> Iterator[Any]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield started
        finally:
            started.close()


def opened(browser: Any, where: str, **settings: Any) -> Any:
    """A page in a window of its own, as another person would open it. Dialogs and errors of its
    scripts fail the test."""
    page = browser.new_context(**settings).new_page()
    page.set_default_timeout(PATIENCE)
    page.wrong = []
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("dialog", lambda dialog: page.wrong.append(dialog.message))
    page.goto(where)
    return page
