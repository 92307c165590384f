"""The page of all public names, from their signatures and docstrings."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import coplay

GROUPS = {
    "Train, play, measure": [
        *("train", "sweep", "play", "episodes", "replay", "cross_play", "schelling"),
        *("adapt", "compare", "report"),
        *("audit_seats", "audit_wiring", "check", "doctor"),
    ],
    "Share a player": ["export_player", "import_player"],
    "Packs of partners": ["make_partners", "select_partners", "show_partners"],
    "Models of others and of the world": ["collect", "pretrain", "inspect"],
    "Games and players at hand": [
        *("make_game", "check_game", "from_pettingzoo", "to_pettingzoo"),
        *("make_player", "step_player", "load_run", "seat_keys"),
    ],
    "Your own": [
        *("register_game", "register_player", "register_learner", "load"),
        "learner_parts",
        *("Game", "Player", "Learner"),
    ],
    "What they speak of": [
        *("Observation", "Outcome", "EntityList", "View", "ViewShape"),
        *("Insight", "Group", "Trajectory", "UserError"),
    ],
}
"""Heading -> public names; a test fails for a name that is in none."""


def page() -> str:
    """The page as Markdown."""
    parts = [
        "# Python API",
        "```python\nimport coplay\n\n"
        'run = coplay.train("ppo", "stag-hunt", steps=200_000)\n'
        'coplay.play("stag-hunt", [run["folder"], "ns", "ns", "random"])\n```',
        "`help(coplay.train)` shows the same in Python.",
    ]
    for heading, names in GROUPS.items():
        parts.append(f"## {heading}")
        for name in names:
            parts += _entry(name)
    return "\n\n".join(parts) + "\n"


def _entry(name: str) -> Iterator[str]:
    thing = getattr(coplay, name)
    yield f"### coplay.{name} {{ #{name} }}"
    yield f"```python\n{declaration_of(name, thing)}\n```"
    yield from as_markdown(thing)
    if inspect.isclass(thing):
        for method, function in _methods(thing):
            yield f"#### {name}.{method} {{ #{name}.{method} }}"
            yield f"```python\n{declaration_of(method, function)}\n```"
            yield from as_markdown(function)


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that a class itself declares and explains."""
    for name, value in vars(kind).items():
        own = isinstance(value, property) or (
            callable(value) and inspect.isfunction(inspect.unwrap(value))
        )
        if own and not name.startswith("_") and value.__doc__:
            yield name, value


def declaration_of(name: str, thing: Any) -> str:
    """How a function, class or property is declared, as it stands in the source."""
    source: Any = thing.fget if isinstance(thing, property) else inspect.unwrap(thing)
    node = ast.parse(textwrap.dedent(inspect.getsource(source))).body[0]
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        fields = [ast.unparse(line) for line in node.body if isinstance(line, ast.AnnAssign)]
        head = f"class {name}({bases}):" if bases else f"class {name}:"
        return "\n".join([head, *(f"    {field}" for field in fields)] if fields else [head[:-1]])
    assert isinstance(node, ast.FunctionDef)
    if isinstance(thing, property):
        return f"{name}: {ast.unparse(node.returns)}" if node.returns else name
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    arguments = [each for each in _each(node.args) if each != "self"]
    flat = f"{name}({', '.join(arguments)}){result}"
    if len(flat) <= 88:
        return flat
    return f"{name}(\n" + "".join(f"    {each},\n" for each in arguments) + f"){result}"


def _each(arguments: ast.arguments) -> Iterator[str]:
    """The arguments of a function one by one, with types and defaults."""
    given = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(given) - len(arguments.defaults))
    for argument, default in zip(given, [*defaults, *arguments.defaults], strict=True):
        yield _argument(argument, default)
    if arguments.vararg or arguments.kwonlyargs:
        yield f"*{ast.unparse(arguments.vararg)}" if arguments.vararg else "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _argument(argument, default)
    if arguments.kwarg:
        yield f"**{ast.unparse(arguments.kwarg)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    equals = "" if default is None else (" = " if argument.annotation else "=")
    return ast.unparse(argument) + equals + ("" if default is None else ast.unparse(default))


def paragraphs_of(thing: Any) -> Iterator[tuple[bool, str]]:
    """(whether it is an example, text) of the paragraphs of a docstring."""
    for paragraph in re.split(r"\n\s*\n", inspect.getdoc(thing) or ""):
        lines = paragraph.splitlines()
        indented = all(line.startswith("    ") for line in lines)
        yield indented or _is_code(paragraph), textwrap.dedent(paragraph)


def _is_code(paragraph: str) -> bool:
    """Whether a paragraph that is not indented is Python: the example of a docstring that has no
    further words."""
    try:
        ast.parse(paragraph)
    except SyntaxError:
        return False
    return bool(re.search(r"[=(]", paragraph))


def as_markdown(thing: Any) -> Iterator[str]:
    """A docstring as Markdown: arguments as a list, examples as code."""
    code: list[str] = []
    for is_code, text in paragraphs_of(thing):
        if is_code:
            code.append(text)
            continue
        if code:
            yield _block(code)
            code = []
        yield _with_arguments(text, _names(thing))
    if code:
        yield _block(code)


def _block(code: list[str]) -> str:
    return "```python\n" + "\n\n".join(code) + "\n```"


def _names(thing: Any) -> set[str]:
    """Arguments of a function, fields of a class."""
    if inspect.isclass(thing):
        return {name for base in thing.__mro__ for name in vars(base).get("__annotations__", {})}
    function: Any = thing.fget if isinstance(thing, property) else inspect.unwrap(thing)
    return set(inspect.signature(function).parameters)


def _with_arguments(text: str, names: set[str]) -> str:
    """A paragraph; if it explains arguments, as a list of them."""
    flat = " ".join(text.split())
    name = "|".join(sorted(names, key=len, reverse=True))
    if not names or not (starts := list(_starts(flat, name))):
        return flat
    pieces = [flat[a:b].strip() for a, b in zip(starts, [*starts[1:], len(flat)], strict=True)]
    items = [re.sub(r"^([\w, ]+): ", lambda m: f"- **{m[1]}**: ", piece) for piece in pieces]
    before = flat[: starts[0]].strip()
    return "\n".join([*([before, ""] if before else []), *items])


def _starts(text: str, name: str) -> Iterator[int]:
    """Where explanations of arguments begin: "seed: …", "a, b: …", also after a full stop."""
    for found in re.finditer(rf"(?:^|(?<=[.;] ))((?:{name})(?:, (?:{name}))*): ", text):
        yield found.start(1)
