"""What the fields of a dataclass mean: the docstrings below them."""

import ast
import dataclasses
import inspect
import textwrap
from functools import cache
from itertools import pairwise


@cache
def helps_of(kind: type) -> dict[str, str]:
    """Field -> the docstring below it, with those of the base classes."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if dataclasses.is_dataclass(base):
            body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body  # type: ignore
            for field, below in pairwise(body):
                text = below.value if isinstance(below, ast.Expr) else None
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Constant):
                    found[field.target.id] = " ".join(str(text.value).split())  # type: ignore
    return found
