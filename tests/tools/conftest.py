"""Tests of the site need the extra docs; `make test-oldest` is without it."""

from importlib.util import find_spec

collect_ignore = (
    [] if find_spec("nbformat") else ["test_browser.py", "test_build.py", "test_notebooks.py"]
)
