"""Files of the one folder that the server was given, and no others."""

from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from coplay.core.errors import UserError
from coplay.core.reading import is_below, open_file

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".gif": "image/gif",
    ".mp4": "video/mp4",
    ".json": "application/json",
    ".jsonl": "text/plain; charset=utf-8",
    ".csv": "text/plain; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
}
"""The files that are shown, by their endings."""

MOST_PAGES = 500

SCRIPTED = (".html", ".svg")
SCRIPTED_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; media-src data:; frame-ancestors 'none'"
)
"""For pages from the folder: their scripts may draw. They have no origin, so that they can neither
ask the server nor reach anything else."""
PLAIN_POLICY = "sandbox; default-src 'none'; img-src 'self'; media-src 'self'"
"""For all other files."""

CHUNK = 1 << 16


def inside(root: Path, name: str) -> Path:
    """The file or folder of a name below a folder; status 404 for everything else: names that lead
    out, links that lead out, hidden files, what does not exist."""
    parts = PurePosixPath(name).parts
    odd = not parts or "\\" in name or "\0" in name or name.startswith("/")
    if odd or any(part.startswith(".") for part in name.split("/")):
        raise HTTPException(404)
    path = root.joinpath(*parts)
    try:
        there = path.exists()
    except OSError:
        there = False
    if not there or not is_below(path, root):
        raise HTTPException(404)
    return path


def file_response(root: Path, name: str) -> Response:
    """A file of the folder, as the server shows it to a browser."""
    path = inside(root, name)
    kind = KINDS.get(path.suffix.lower())
    if kind is None or not path.is_file():
        raise HTTPException(404)
    try:
        file = open_file(path)
    except UserError:
        raise HTTPException(404) from None
    policy = SCRIPTED_POLICY if path.suffix.lower() in SCRIPTED else PLAIN_POLICY
    headers = {"Content-Security-Policy": policy}
    return StreamingResponse(_chunks(file), media_type=kind, headers=headers)


def _chunks(file: BufferedReader) -> Iterator[bytes]:
    with file:
        while part := file.read(CHUNK):
            yield part


def pages_of(root: Path, runs: set[Path]) -> list[dict[str, str]]:
    """The pages below a folder that are not the page of a run: {"name", "address"} of each."""
    found = []
    for path in sorted(root.glob("**/*.html")):
        name = path.relative_to(root).as_posix()
        own = path.name == "index.html" and path.parent in runs
        hidden = any(part.startswith(".") for part in name.split("/"))
        readable = name.encode(errors="replace").decode() == name
        if not own and not hidden and readable and is_below(path, root):
            found.append({"name": name, "address": address_of(name)})
    return found[:MOST_PAGES]


def address_of(name: str) -> str:
    """The address of a file or a run's page on this server."""
    return f"/run/{quote(name)}"
