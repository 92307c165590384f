"""Writing files so that a reader never sees half of one."""

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place, on disk, when the block succeeds."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, data: Any) -> None:
    """JSON with one field per line, written whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(data, indent=2) + "\n")


def new_folder(*words: str) -> Path:
    """A folder below runs/ that does not exist yet, named by these words and a number."""
    name = re.sub(r"[^A-Za-z0-9._]+", "-", "-".join(words)).strip("-")
    number = 1
    while (path := Path("runs") / f"{name}-{number}").exists():
        number += 1
    return path
