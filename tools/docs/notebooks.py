"""Tutorials are notebooks: execute them, and turn them into pages.

python -m tools.docs.notebooks                     executes all tutorials, in place
python -m tools.docs.notebooks PATH.ipynb          executes one
"""

import base64
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
TIME_LIMIT = 1800
"""Seconds that one cell may take, on a busy machine."""
DOWNLOAD = "[Download this page as a notebook]({}) and run it yourself."
DOWNLOAD_ZH = "[下载本页的 notebook]({}) 并自己运行。"
PICTURES = {"image/png": "png", "image/gif": "gif", "image/jpeg": "jpg"}
"""Type of an output -> ending of its file, the preferred type first."""


def tutorials() -> list[Path]:
    """The notebooks of the documentation, in their order."""
    return sorted(TUTORIALS.glob("*.ipynb"))


def read(path: Path) -> Any:
    """A notebook from its file."""
    return nbformat.read(path, as_version=4)


# --- executing ---------------------------------------------------------------------------------


def execute(notebook: Any) -> Any:
    """The notebook with the outputs of the present program.

    It runs in an empty folder that is removed in the end, with the package of this checkout. A cell
    that fails raises `nbclient.exceptions.CellExecutionError`.
    """
    fresh = nbformat.from_dict(notebook)
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    # On a busy machine XLA complains that compiling is slow, and a page would show it.
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    environment = os.environ | quiet | {"PYTHONPATH": os.pathsep.join(paths)}
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            fresh,
            timeout=TIME_LIMIT,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
        )
        client.execute(env=environment)
    return cleaned(fresh)


def cleaned(notebook: Any) -> Any:
    """The notebook without what differs from one execution to the next."""
    cells = []
    for number, cell in enumerate(notebook.cells):
        cell = nbformat.from_dict(cell)
        cell.id = f"cell-{number}"
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [_cleaned_output(output) for output in cell.outputs]
        cells.append(cell)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return nbformat.v4.new_notebook(cells=cells, metadata=about)


def _cleaned_output(output: Any) -> Any:
    """A picture needs no words about the object that it shows."""
    data = output.get("data", {})
    if any(kind in data for kind in PICTURES):
        data.pop("text/plain", None)
        output.metadata = {}
    return output


def write(path: Path, notebook: Any) -> None:
    """A notebook to its file."""
    nbformat.validate(notebook)
    path.write_text(nbformat.writes(notebook).rstrip("\n") + "\n")


# --- pages -------------------------------------------------------------------------------------


def title(notebook: Any) -> str:
    """The first heading."""
    first = notebook.cells[0].source.splitlines()[0]
    return first.removeprefix("#").strip()


def write_page(notebook: Path, page: Path) -> list[Path]:
    """Turn a notebook into a Markdown page, with its pictures and the notebook itself beside it.

    The result names all files written. Links between notebooks become links between pages.
    """
    page.parent.mkdir(parents=True, exist_ok=True)
    copy = page.with_name(notebook.name)
    if copy.resolve() != notebook.resolve():
        copy.write_bytes(notebook.read_bytes())
    pictures = page.with_name(f"{page.stem}_files")
    text, files = _markdown(read(notebook), pictures.name)
    words = DOWNLOAD_ZH if page.parent.name == "zh" else DOWNLOAD
    link = words.format(notebook.name)
    heading, _, rest = text.partition("\n")
    page.write_text(f"{heading}\n\n{link}\n{rest}")
    for name, data in files.items():
        pictures.mkdir(exist_ok=True)
        (pictures / name).write_bytes(data)
    return [page, copy, *(pictures / name for name in files)]


def _markdown(notebook: Any, folder: str) -> tuple[str, dict[str, bytes]]:
    """The page, and its pictures by name; `folder` is where the page looks for them."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(re.sub(r"\]\((\d\d-[\w-]+)\.ipynb\)", r"](\1.md)", cell.source))
        elif cell.cell_type == "code":
            parts.append(_fenced(cell.source, "python"))
            for output in cell.outputs:
                parts.append(_shown(output, folder, pictures))
    return "\n\n".join(filter(None, parts)) + "\n", pictures


def _shown(output: Any, folder: str, pictures: dict[str, bytes]) -> str:
    """One output as Markdown; a picture is added to `pictures`."""
    if output.output_type == "stream":
        return _fenced(output.text, "text")
    data = output.get("data", {})
    for kind, ending in PICTURES.items():
        if kind in data:
            name = f"picture-{len(pictures) + 1}.{ending}"
            pictures[name] = base64.b64decode(data[kind])
            return f"![Output of the cell above]({folder}/{name})"
    return _fenced(data.get("text/plain", ""), "text")


def _fenced(text: str, language: str) -> str:
    """A block of code, fenced by more backticks than it holds in a row."""
    if not text.strip():
        return ""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def main(arguments: list[str]) -> None:
    for path in map(Path, arguments) if arguments else tutorials():
        print(f"executing {path.name}", flush=True)
        write(path, execute(read(path)))


if __name__ == "__main__":
    main(sys.argv[1:])
