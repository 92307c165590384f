"""Where environments come from: a module's function, or a callable that is sent to workers."""

import ast
import importlib
import inspect
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coplay.core.errors import UserError

WORDS = {"true": True, "false": False, "none": None}


@dataclass(frozen=True)
class Source:
    """`module.function(**options)`, or the pickled callable if there is one.

    options: texts NAME=VALUE; a value is a Python literal, else a string.
    """

    module: str
    function: str
    options: tuple[str, ...] = ()
    pickled: bytes = b""

    def make(self, film: bool = False) -> Any:
        """A new environment; `film`: one that gives pictures, if it can be asked for them."""
        function = self.resolve()
        options = dict(parse_option(text) for text in self.options)
        if film and accepts(function, "render_mode"):
            options["render_mode"] = "rgb_array"
        return function(**options)

    def resolve(self) -> Callable[..., Any]:
        if self.pickled:
            return pickle.loads(self.pickled)
        found: Any = importlib.import_module(self.module)
        for name in self.function.split("."):
            found = getattr(found, name)
        return found


def parse_option(text: str) -> tuple[str, Any]:
    """`max_cycles=50` as ("max_cycles", 50)."""
    name, equals, value = text.partition("=")
    if not (equals and name.isidentifier()):
        raise UserError(f"option '{text}': expected NAME=VALUE, e.g. max_cycles=50")
    if value.lower() in WORDS:
        return name, WORDS[value.lower()]
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def accepts(function: Callable[..., Any], name: str) -> bool:
    """Whether a function takes a keyword argument of this name."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # built-in
        return False
    return any(p.name == name or p.kind is p.VAR_KEYWORD for p in parameters)
