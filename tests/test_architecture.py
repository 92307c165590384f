"""The house: imports go one way and in no circle, those inside functions included."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "coplay"

LAYERS = (
    ("core",),
    ("nn", "rl"),
    ("search", "models"),
    ("games", "algorithms"),
    ("matches",),
    ("training",),
    ("evaluation",),
    ("sweeps",),
    ("reports",),
    ("serve",),
    ("api", "bench", "reproduce", "cli", "integrations"),
    ("__init__", "__main__"),
)
"""From below to above. A module imports from its own layer and from those below it; within a layer
a package imports only from packages that stand before it."""

RANK = {name: number for number, name in enumerate(name for layer in LAYERS for name in layer)}


def imports(tree: ast.AST, modules: set[str]) -> Iterator[tuple[int, str]]:
    """(line, module of ours) of all imports, those inside functions included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            named = [
                inner if (inner := f"{node.module}.{alias.name}") in modules else node.module
                for alias in node.names
            ]
        else:
            continue
        yield from ((node.lineno, name) for name in named if name.split(".")[0] == "coplay")


@functools.cache
def house() -> dict[str, ast.Module]:
    """Module -> syntax tree."""
    trees = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = ["coplay", *path.relative_to(PACKAGE).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)
        trees[name] = ast.parse(path.read_text())
    return trees


def top(module: str) -> str:
    """The package or module right below `coplay`."""
    return module.split(".")[1] if "." in module else "__init__"


def backward(trees: dict[str, ast.Module]) -> list[str]:
    """Imports that go back up, as lines to read."""
    return [
        f"{name}, line {line}: imports {other}"
        for name, tree in trees.items()
        for line, other in imports(tree, set(trees))
        if RANK[top(other)] > RANK[top(name)]
    ]


def circle(trees: dict[str, ast.Module]) -> list[str]:
    """The modules of some circle of imports; empty if there is none."""
    known = set(trees)
    needs = {
        name: {other for _, other in imports(tree, known) if other in known and other != name}
        for name, tree in trees.items()
    }
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name not in done:
            for other in sorted(needs[name]):
                if found := visit(other, [*path, name]):
                    return found
            done.add(name)
        return []

    for name in trees:
        if found := visit(name, []):
            return found
    return []


def test_imports_go_one_way() -> None:
    trees = house()
    assert set(map(top, trees)) == set(RANK), "a package without a place in LAYERS"
    assert not backward(trees)


def test_no_circles() -> None:
    assert not circle(house())


@pytest.mark.parametrize(
    "text",
    [
        "from coplay.cli import main",
        "def late():\n    import coplay.training.run",
        "if TYPE_CHECKING:\n    from coplay.games import registry",
    ],
)
def test_a_step_back_is_seen(text: str) -> None:
    known = dict.fromkeys(house(), ast.parse(""))
    assert len(backward(known | {"coplay.core.game": ast.parse(text)})) == 1


def test_a_circle_is_seen() -> None:
    trees = house() | {"coplay.core.game": ast.parse("from coplay.core.learner import Learner")}
    assert "coplay.core.game" in circle(trees)


def test_every_folder_says_what_lives_there() -> None:
    for path in PACKAGE.rglob("__init__.py"):
        words = ast.get_docstring(ast.parse(path.read_text())) or ""
        assert words, f"{path.parent.name} has no docstring"
