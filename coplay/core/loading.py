"""What a user trusts by naming it: Python files and modules (`--load`), games, folders.

Files and modules register games, players and learners (`coplay.register_game`, …) when they are
imported. They are imported only because a user names them. A run keeps the names of what was loaded
when it was made, so that an error can say what to name again; nothing is ever imported because a
run says so. docs/explanation/trust.md describes the whole model.
"""

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from coplay.core.errors import UserError
from coplay.core.reading import is_below

_LOADED: list[str] = []
_NAMED: set[str] = set()
_FOLDERS: list[Path] = []


def load(name: str) -> None:
    """Import a file such as `players.py` or a module such as `my_package.players`, once.

    A module is also looked for in the current folder. It is trusted from then on: a run may name
    environments in it. A folder, named with a slash, is not imported: runs and models may name
    other runs, datasets and models in it.

        coplay.load("my_package.environments")
        coplay.load_run("runs/on-my-environment")
    """
    if "/" in name and Path(name).is_dir():
        _FOLDERS.append(Path(name))
        return
    full = full_name(name)
    if full in _LOADED:
        return
    if _is_file(name):
        _import_file(Path(full))
    else:
        look_in_current_folder()
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise UserError(f"--load {name}: it needs the module '{error.name}'") from error
            raise UserError(
                f"--load {name}: there is no such file or module; a file is named by its path, as "
                f"in {name.replace('.', '/')}.py"
            ) from error
        except Exception as error:
            raise UserError(f"--load {name!r}: {_raised(error)}") from error
    _LOADED.append(full)


def loaded() -> list[str]:
    """What was loaded in this process, by full names."""
    return list(_LOADED)


def is_loaded(module: str) -> bool:
    """Whether a user has loaded this module, or a package that it is in."""
    return any(f"{module}.".startswith(f"{name}.") for name in _LOADED)


def name_game(name: str, options: Iterable[str] = ()) -> None:
    """A user writes the name of a game, perhaps with options of its environment."""
    _NAMED.update((name, *options))


def is_named(text: str) -> bool:
    """Whether a user has written this name of a game, or this option of one, in this process."""
    return text in _NAMED


def name_folder(path: str | Path) -> None:
    """A user writes the path of a folder that something is to be read from."""
    _FOLDERS.append(Path(path))


def refuse_elsewhere(path: str, folder: Path, where: str) -> None:
    """An error if a file in `folder` names a path that is neither below the current folder, nor
    beside or below its own, nor in a folder that a user names. where: what names it."""
    trusted = [Path.cwd(), Path(os.path.realpath(folder)).parent, *_FOLDERS]
    if not any(is_below(Path(path), one) for one in trusted):
        raise UserError(
            f"{where} names '{path}', which is neither below the current folder nor beside "
            f"{folder}: if you trust it, add --load {path.rstrip('/')}/"
        )


def full_name(name: str) -> str:
    """The name of a file from the root on; a module's name as it is."""
    return str(Path(name).resolve()) if _is_file(name) else name


def short_name(full: str) -> str:
    """What to type for it in the current folder: a file below it by its path from there."""
    path = Path(full)
    inside = _is_file(full) and path.is_relative_to(Path.cwd())
    return str(path.relative_to(Path.cwd())) if inside else full


def look_in_current_folder() -> None:
    """Let modules of the current folder be imported, as `python -m` does."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)


def _is_file(name: str) -> bool:
    return name.endswith(".py") or "/" in name


def _import_file(path: Path) -> None:
    if not path.is_file():
        raise UserError(f"--load {path}: there is no such file")
    # A name of its own: a file called random.py must not stand in the way of Python's module.
    name = f"_loaded_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"--load {path}: this is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UserError(f"--load {path}: {_raised(error)}") from error
    except BaseException:
        del sys.modules[name]
        raise
    # Worker processes cannot import it by its name.
    with suppress(ModuleNotFoundError):
        import cloudpickle

        cloudpickle.register_pickle_by_value(module)


def _raised(error: Exception) -> str:
    """What an import raised, and in which line of which file."""
    if isinstance(error, UserError):
        return str(error)
    text = f"{type(error).__name__}: {error}"
    places = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename and frame.filename != __file__
    ]
    return f"{text} ({places[-1].filename}, line {places[-1].lineno})" if places else text
