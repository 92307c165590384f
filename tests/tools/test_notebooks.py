"""Tutorials run, are committed as they ran, and become pages."""

import base64
import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import pytest

from tools.docs import notebooks

FIRST = 2
"""So many tutorials are run by `make test`, with little training; `make test-docs` executes all as
they are."""
LITTLE = {r"steps=\d+_000": "steps=2048", r"episodes=\d+": "episodes=8"}
LARGEST_PICTURE = 150_000  # bytes
DOT = base64.b64encode(b"\x89PNG dot").decode()


@pytest.fixture
def notebook() -> Any:
    """Words, a cell with a printed line, and one with a picture."""
    said = nbformat.v4.new_output("stream", name="stdout", text="two ``` ticks\n")
    shown = nbformat.v4.new_output(
        "display_data", {"image/png": DOT, "text/plain": "<Figure>"}, metadata={"width": 3}
    )
    cells = [
        nbformat.v4.new_markdown_cell("# A title\n\nSee [next](02-next.ipynb)."),
        nbformat.v4.new_code_cell("print(1)", outputs=[said], metadata={"when": "today"}),
        nbformat.v4.new_code_cell("draw()", outputs=[shown]),
    ]
    return nbformat.v4.new_notebook(cells=cells, metadata={"by": "somebody"})


def test_what_differs_between_executions_is_dropped(notebook: Any) -> None:
    clean = notebooks.cleaned(notebook)
    assert set(clean.metadata) == {"kernelspec", "language_info"}
    assert [cell.id for cell in clean.cells] == ["cell-0", "cell-1", "cell-2"]
    assert not any(cell.metadata for cell in clean.cells)
    assert clean.cells[2].outputs[0].data == {"image/png": DOT}
    assert clean.cells[1].source == "print(1)"


def test_a_notebook_becomes_a_page(notebook: Any, tmp_path: Path) -> None:
    source = tmp_path / "01-here.ipynb"
    notebooks.write(source, notebooks.cleaned(notebook))
    page = tmp_path / "site" / "01-here.md"
    written = notebooks.write_page(source, page)
    assert {path.relative_to(page.parent).as_posix() for path in written} == {
        *("01-here.md", "01-here.ipynb", "01-here_files/picture-1.png"),
    }
    assert written[-1].read_bytes() == b"\x89PNG dot"
    text = page.read_text()
    assert text.startswith("# A title\n\n[Download this page as a notebook](01-here.ipynb)")
    assert "[next](02-next.md)" in text
    assert "```python\nprint(1)\n```" in text
    assert "````text\ntwo ``` ticks\n````" in text
    assert "![Output of the cell above](01-here_files/picture-1.png)" in text


@pytest.mark.parametrize("path", notebooks.tutorials(), ids=lambda path: path.stem)
def test_a_committed_tutorial_is_whole(path: Path) -> None:
    notebook = notebooks.read(path)
    assert notebooks.cleaned(notebook) == notebook, "execute it by python -m tools.docs.notebooks"
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]
    pictures = [o.data["image/png"] for o in outputs if "image/png" in o.get("data", {})]
    assert pictures, "a tutorial shows a picture"
    assert all(len(base64.b64decode(data)) < LARGEST_PICTURE for data in pictures)
    printed = "".join(str(o.get("text", "")) + str(o.get("data", "")) for o in outputs)
    assert not re.search(r"/(home|tmp|root|work|Users)/", printed), "a path of a machine"


@pytest.mark.parametrize("path", notebooks.tutorials(), ids=lambda path: path.stem)
def test_a_tutorial_uses_public_names_and_leads_on(path: Path) -> None:
    notebook = notebooks.read(path)
    source = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    assert not re.findall(r"(?:from|import) coplay\.\S+", source)
    words = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert words.startswith("# ") and "## Where to go next" in words
    for name in re.findall(r"\]\(([\w-]+\.ipynb)\)", words):
        assert path.with_name(name).exists(), f"{path.name} links to {name}"


@pytest.mark.parametrize("path", notebooks.tutorials()[:FIRST], ids=lambda path: path.stem)
def test_the_first_tutorials_run_with_little_training(path: Path) -> None:
    names: dict[str, Any] = {}
    for cell in notebooks.read(path).cells:
        if cell.cell_type == "code":
            source = cell.source
            for pattern, little in LITTLE.items():
                source = re.sub(pattern, little, source)
            exec(compile(source, path.name, "exec"), names)
    plt.close("all")
    summary = names["summary"]
    assert summary["steps"] == 2048 and summary["episodes"] == 8, "it was to be short"


@pytest.mark.docs
@pytest.mark.parametrize("path", notebooks.tutorials(), ids=lambda path: path.stem)
def test_a_tutorial_runs(path: Path) -> None:
    notebooks.execute(notebooks.read(path))
