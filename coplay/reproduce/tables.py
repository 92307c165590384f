"""A result as text: its tables, and what made it."""

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


def made_by(result: Mapping[str, Any]) -> str:
    """What made a result, in one sentence: program, seeds, machine, time."""
    commits = sorted({(command["commit"] or "unknown")[:10] for command in result["commands"]})
    machine = result["machine"]
    text = (
        f"coplay {result['version']}, commit {' and '.join(commits)}; {result['seeds']}; "
        f"{machine['cores']} cores ({machine['cpu']}), JAX {machine['jax']}; "
        f"{duration(result['seconds'])}"
    )
    return text + (", beside other work" if was_shared(result) else "")


def was_shared(result: Mapping[str, Any]) -> bool:
    """Whether other programs used more than a tenth of a core meanwhile."""
    return max((command["other_cores"] or 0.0 for command in result["commands"]), default=0) > 0.1


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes"
