"""A result as text: its answer, its tables, and what made it."""

from collections.abc import Mapping, Sequence
from typing import Any

from coplay.reproduce.experiment import words


def markdown(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table; cells as `words` gives them."""
    lines = [columns, ["---"] * len(columns), *([words(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_text(result: Mapping[str, Any]) -> str:
    """The answer and all tables of a result."""
    parts = [f"{result['question']}\n{result['answer']}"]
    parts += [markdown(table["columns"], table["rows"]) for table in result["tables"].values()]
    return "\n\n".join(parts)
