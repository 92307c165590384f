"""Results as text."""

from typing import Any

import pytest

from coplay.reproduce.experiment import MAIN, over_runs
from coplay.reproduce.tables import as_text, duration, made_by, markdown


def a_result(**changes: Any) -> dict[str, Any]:
    command = {"name": "a", "command": "coplay list", "commit": "0123456789abcdef"}
    table = {"columns": ["player", "score"], "rows": [["HOP", over_runs([0.9, 1.0])]]}
    return {
        "name": "so",
        "title": "So",
        "question": "Is it so?",
        "answer": "It is so.",
        "headlines": [["HOP: score", over_runs([0.9, 1.0])]],
        "seeds": "training seeds 0 and 1",
        "version": "0.2.0",
        "machine": {"cores": 2, "cpu": "a processor", "jax": "0.10"},
        "seconds": 90.0,
        "commands": [command | {"seconds": 90.0, "other_cores": 0.0}],
        "tables": {MAIN: table},
        "chart": {"kind": "dots", "y": "score", "references": {"best": 1.0}},
    } | changes


def test_a_table_is_markdown() -> None:
    assert markdown(["a", "b"], [["x", 1], [None, "y"]]) == (
        "| a | b |\n| --- | --- |\n| x | 1 |\n|  | y |"
    )


def test_text_has_question_answer_and_tables() -> None:
    text = as_text(a_result())
    assert text.startswith("Is it so?\nIt is so.\n\n| player | score |")
    assert "| HOP | 0.950 (0.900 to 1.000) |" in text


@pytest.mark.parametrize(("other", "shared"), [(0.0, False), (None, False), (1.4, True)])
def test_a_shared_machine_is_said(other: float | None, shared: bool) -> None:
    result = a_result()
    result["commands"][0]["other_cores"] = other
    assert made_by(result).startswith("coplay 0.2.0, commit 0123456789; training seeds 0 and 1; 2")
    assert made_by(result).endswith("beside other work") == shared


def test_durations() -> None:
    assert duration(90) == "90 seconds" and duration(300) == "5 minutes"
