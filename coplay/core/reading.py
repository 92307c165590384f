"""Reading files that somebody else may have written, and showing what they say.

A file is read only if it is a plain file of bounded size that lies where it says: a link that leads
out of its folder, a pipe or a device is refused. Text from files is shown without the characters
that steer a terminal.
"""

import json
import os
import stat
from collections.abc import Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

from coplay.core.errors import UserError

MOST_JSON = 64 << 20
"""Bytes of a JSON file that is read whole."""
MOST_ROWS = 4 << 30
"""Bytes of a record with a JSON object on each line."""


class Unreadable(UserError):
    """A file that cannot be used; the message says which, and why."""


def open_file(path: Path, most: int | None = None) -> BufferedReader:
    """A plain file of at most so many bytes, open for reading."""
    refuse_link(path)
    try:
        # A pipe would wait for somebody to write into it.
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise Unreadable(f"cannot read {path}: {reason(error)}") from error
    about = os.fstat(number)
    wrong = ""
    if not stat.S_ISREG(about.st_mode):
        wrong = f"cannot read {path}: it is no plain file"
    elif most is not None and about.st_size > most:
        wrong = f"{path} has {about.st_size:,} bytes; at most {most:,} are read"
    if wrong:
        os.close(number)
        raise Unreadable(wrong)
    return os.fdopen(number, "rb")


def read_text(path: Path, most: int = MOST_JSON) -> str:
    """The text of a file in UTF-8."""
    try:
        with open_file(path, most) as file:
            return file.read().decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path} is not text in UTF-8 (byte {error.start})") from error
    except (OSError, MemoryError) as error:
        raise Unreadable(f"cannot read {path}: {reason(error)}") from error


def read_json(path: Path) -> dict[str, Any]:
    """An object with fields from a JSON file."""
    text = read_text(path)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        words = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise Unreadable(f"{path} is not JSON: {words}") from error
    if not isinstance(data, dict):
        raise Unreadable(f"{path} must be an object with fields, not {short(data)}")
    return data


def read_field(data: Mapping[Any, Any], name: Any, kind: type, where: str) -> Any:
    """A field of an object from a file; an error if it is missing or of another type."""
    value = data.get(name)
    wrong_bool = isinstance(value, bool) and kind is not bool
    if wrong_bool or not isinstance(value, (int, float) if kind is float else kind):
        said = f"not {short(value)}" if name in data else "and it is missing"
        raise Unreadable(f"{where}: '{name}' must be {kind.__name__}, {said}")
    return value


def short(value: Any) -> str:
    """A value from a file in a message."""
    try:
        text = repr(value)
    except RecursionError:
        text = type(value).__name__
    return text if len(text) <= 80 else f"{text[:77]}…"


def reason(error: Exception) -> str:
    """What an error of the system says."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


# --- where files lie ---------------------------------------------------------------------------


def refuse_link(path: Path) -> None:
    """An error if a path is a link that leads out of the folder it is in."""
    if path.is_symlink() and not is_below(path, path.parent):
        raise Unreadable(
            f"{path} is a link that leads out of its folder; put a copy of what it names in its "
            "place if you trust it"
        )


def check_folder(folder: Path) -> None:
    """An error if anything below a folder is a link that leads out of it, a pipe or a device:
    neither what is read nor what is written there may be elsewhere."""
    waiting = [folder]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError as error:
            raise Unreadable(f"cannot read {folder}: {reason(error)}") from error
        for entry in entries:
            if entry.is_symlink():
                if not is_below(Path(entry.path), folder):
                    raise Unreadable(
                        f"{entry.path} is a link that leads out of {folder}; put a copy of what it "
                        "names in its place if you trust it"
                    )
            elif entry.is_dir():
                waiting.append(Path(entry.path))
            elif not entry.is_file():
                raise Unreadable(f"{entry.path} is no plain file")


def is_below(path: Path, folder: Path) -> bool:
    """Whether a path, with all links followed, is a folder or lies in it."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except (OSError, ValueError):  # no path at all
        return False


# --- what is shown -----------------------------------------------------------------------------


def shown(text: str) -> str:
    """A text for a terminal: characters that steer it are written like \\x1b; lines stay."""
    return "".join(map(_shown, text))


def shown_in_line(text: str) -> str:
    """The same in one line."""
    return shown(text).replace("\n", "\\n").replace("\t", "\\t")


def _shown(character: str) -> str:
    if character.isprintable() or character in "\n\t":
        return character
    return character.encode("unicode_escape").decode()
