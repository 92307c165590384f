"""The page of all metrics, from the table that describes them to TensorBoard."""

from coplay.training.metrics import GROUPS
from tools.docs.fields import PIPE

INTRODUCTION = """
```
tensorboard --logdir runs
```

A run writes a row to `metrics.jsonl` after every update, and the same numbers to TensorBoard. `…`
stands for a seat: `reward/seat_0`, `reward/seat_1`. `<name>` stands for an action of the game:
`action_stay/seat_0`. A seat whose player does not learn has rewards and actions, but no losses.

Losses are those of the last pass over the rollout. Steps of players that have left the game count
nowhere.
"""

ROW = {
    "step": "game steps played so far, over all game copies of the seed",
    "seed": "the seed that the row belongs to",
    "seconds": "time since the run began, without compilation",
}
"""What stands in a row beside metrics."""


def page() -> str:
    """The page as Markdown."""
    parts = ["# Metrics", INTRODUCTION.strip(), "## Every row", _table(ROW)]
    for heading, (learners, metrics) in GROUPS.items():
        parts += [f"## {heading}", f"Written by {', '.join(f'`{name}`' for name in learners)}."]
        parts.append(_table(metrics))
    return "\n\n".join(parts) + "\n"


def _table(metrics: dict[str, str]) -> str:
    rows = [f"| `{name}` | {words.replace('|', PIPE)} |" for name, words in metrics.items()]
    return "\n".join(["| name | meaning |", "|---|---|", *rows])
