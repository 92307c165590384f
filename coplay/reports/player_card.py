"""The card of an exported player in words: for the terminal, and for its page on the hub."""

import json
from collections.abc import Mapping
from typing import Any

from coplay.training.shared_players import card_line


def card_text(card: Mapping[str, Any]) -> str:
    """A few lines. A card may come from anybody: what it says is shown as text."""
    seated, config, summary = card["seated"], card["config"], card.get("summary")
    learned = seated.get("learned")
    lines = [
        f"{card_line(card)}{', the best checkpoint' if card['best'] else ''}",
        f"plays {config.get('game_name')} with {seated.get('seats')} seats; learned in seats "
        f"{', '.join(map(str, learned)) if isinstance(learned, list) else learned}",
        f"views of {seated.get('planes')} (height, width, planes) and {seated.get('features')} "
        f"features; {seated.get('actions')} actions",
    ]
    if summary is None:
        lines.append("not evaluated: the run was not finished, or this is its best checkpoint")
    else:
        lines.append(f"evaluated over {summary.get('episodes')} episodes")
    if loads := config.get("loads"):
        lines.append(f"needs own parts that are not in the file: {loads}")
    versions = ", ".join(f"{name} {version}" for name, version in card["versions"].items())
    return "\n".join([*lines, f"made with {versions}"])


def hub_page(card: Mapping[str, Any], place: str) -> str:
    """README.md of a repository on the hub: what the hub reads of it, and how to use the player."""
    config, summary = card["config"], card.get("summary")
    name, game = str(config["player"]), str(config["game_name"])
    about: dict[str, Any] = {
        "library_name": "coplay",
        "pipeline_tag": "reinforcement-learning",
        "tags": ["multi-agent-reinforcement-learning", "coplay", name, game],
    }
    figures = ""
    if summary is not None:
        metric = {"type": "mean_reward", "name": "team mean", "value": summary["team_mean"]}
        result = {
            "task": {"type": "reinforcement-learning"},
            "dataset": {"type": game, "name": game},
            "metrics": [metric],
        }
        about["model-index"] = [{"name": f"{name} on {game}", "results": [result]}]
        rows = "\n".join(
            f"| {seat} | {row['player']} | {row['reward']:.3f} | {row['stderr']:.3f} |"
            for seat, row in enumerate(summary["seats"])
        )
        figures = (
            f"\n## Evaluation\nTeam mean {summary['team_mean']:.3f} over {summary['episodes']} "
            f"episodes.\n\n| seat | player | reward | ± error |\n|---|---|---|---|\n{rows}\n"
        )
    # JSON is YAML, so that no name of a game or learner can be read as anything but a text.
    head = "\n".join(f"{key}: {json.dumps(value)}" for key, value in about.items())
    return f"""---
{head}
---
# {name} on {game}

A player of coplay, trained for {card["step"]:,} steps. Nothing in its file is executed.

```
pip install 'coplay[hub]'
coplay import {place} --out runs/{name}
coplay watch runs/{name}
```

```
{card_text(card)}
```
{figures}
## Configuration
```json
{json.dumps(config, indent=2)}
```
"""
