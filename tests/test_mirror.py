"""Tests mirror the package, and the package keeps its measure: names, functions, files."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "coplay"
LONGEST_FUNCTION, LONGEST_FILE = 80, 500


def modules() -> list[str]:
    """Modules below `coplay/` as paths, without those that only say what lives in a folder."""
    found = (path.relative_to(PACKAGE) for path in sorted(PACKAGE.rglob("*.py")))
    return [str(path) for path in found if path.name != "__init__.py"]


def own_test(module: str) -> Path:
    """The test of the same name."""
    path = Path(module)
    return TESTS / path.parent / f"test_{path.name}"


def reasons() -> dict[str, str]:
    """Module, or folder with a slash -> the test that covers it, from README.md."""
    rows = re.findall(
        r"^\| `([^`]+)` \| `([^`]+)` \| .+ \|$", (TESTS / "README.md").read_text(), re.M
    )
    assert len(rows) == len(dict(rows)), "a module stands twice in tests/README.md"
    return dict(rows)


def covers(entry: str, module: str) -> bool:
    return module.startswith(entry) if entry.endswith("/") else module == entry


def definitions(kinds: tuple[type, ...]) -> Iterator[tuple[str, ast.AST]]:
    """(module, definition) of all definitions of these kinds, nested ones included."""
    for module in modules():
        for node in ast.walk(ast.parse((PACKAGE / module).read_text())):
            if isinstance(node, kinds):
                yield module, node


def test_every_module_has_a_test_of_its_name_or_a_reason() -> None:
    alone = [module for module in modules() if not own_test(module).exists()]
    missing = [m for m in alone if not any(covers(entry, m) for entry in reasons())]
    assert not missing, f"write a test, or a row in tests/README.md: {missing}"


def test_reasons_are_true() -> None:
    alone = [module for module in modules() if not own_test(module).exists()]
    for entry, test in reasons().items():
        assert any(covers(entry, m) for m in alone), f"{entry} needs no row in tests/README.md"
        assert (TESTS / test).exists(), f"{entry}: there is no tests/{test}"


def test_no_class_name_exists_twice() -> None:
    names = Counter(node.name for _, node in definitions((ast.ClassDef,)))  # type: ignore
    assert not [name for name, count in names.items() if count > 1]


def test_functions_and_files_are_short() -> None:
    functions = [
        f"{module}: {node.name} has {node.end_lineno - node.lineno + 1} lines"  # type: ignore
        for module, node in definitions((ast.FunctionDef, ast.AsyncFunctionDef))
        if node.end_lineno - node.lineno >= LONGEST_FUNCTION  # type: ignore
    ]
    lengths = {module: len((PACKAGE / module).read_text().splitlines()) for module in modules()}
    files = [f"{module} has {n} lines" for module, n in lengths.items() if n > LONGEST_FILE]
    assert not functions + files
