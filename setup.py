"""The page of the package on an index: README without what an index cannot show.

An index shows no pictures of a repository and follows no links into it. Everything else about the
package is in pyproject.toml.
"""

import re
from pathlib import Path

from setuptools import setup


def index_page(readme: str) -> str:
    """README without pictures, and with the words of links that lead into the repository."""
    text = re.sub(r"^!\[[^\]]*\]\([^)]*\)\n\n?", "", readme, flags=re.MULTILINE)
    text = re.sub(r"^<!--.*?-->\n", "", text, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]+)\]\((?!https?://)[^)]*\)", r"\1", text)


if __name__ == "__main__":
    setup(
        long_description=index_page((Path(__file__).parent / "README.md").read_text("utf-8")),
        long_description_content_type="text/markdown",
    )
