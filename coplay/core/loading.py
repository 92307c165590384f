"""Python files and modules of a user's own, named by `--load`: they register games, players and
learners (`coplay.register_game`, …) when they are imported.

A file is imported only because a user names it. A run keeps the names of what was loaded when it
was made, so that an error can say what to name again; nothing is ever imported because a run says
so.
"""

import importlib
import importlib.util
import sys
from contextlib import suppress
from pathlib import Path

from coplay.core.errors import UserError

_LOADED: list[str] = []


def load(name: str) -> None:
    """Import a file such as `players.py` or a module such as `my_package.players`, once.

    A module is also looked for in the current folder.
    """
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
    _LOADED.append(full)


def loaded() -> list[str]:
    """What was loaded in this process, by full names."""
    return list(_LOADED)


def full_name(name: str) -> str:
    """The name of a file from the root on; a module's name as it is."""
    return str(Path(name).resolve()) if _is_file(name) else name


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
    except BaseException:
        del sys.modules[name]
        raise
    # Worker processes cannot import it by its name.
    with suppress(ModuleNotFoundError):
        import cloudpickle

        cloudpickle.register_pickle_by_value(module)
