"""What the iterations of a run counted, as named numbers."""

from typing import Any

import numpy as np

from coplay.core.game import Game

COUNTED = ("episodes", "reward", "length", "actions")


def metrics_of(counts: dict[str, np.ndarray], game: Game) -> dict[str, Any]:
    """What one iteration of one seed counted, as named numbers; NaN where there was nothing."""
    episodes = int(counts["episodes"])
    per_episode = {
        name: counts[name] / episodes if episodes else np.full(game.seats, np.nan)
        for name in ("reward", "length")
    }
    row: dict[str, Any] = {"team_mean": float(per_episode["reward"].mean()), "episodes": episodes}
    learned = {name: value for name, value in counts.items() if name not in COUNTED}
    for name, values in (per_episode | learned).items():
        titled = {name: values} if values.ndim == 1 else by_action(name, values, game)
        for title, numbers in titled.items():
            for seat in range(game.seats):
                row[f"{title}/seat_{seat}"] = float(numbers[seat])
    share = counts["actions"] / np.maximum(counts["actions"].sum(1, keepdims=True), 1)
    for action, title in enumerate(game.action_names):
        for seat in range(game.seats):
            row[f"action_{title.replace(' ', '_')}/seat_{seat}"] = float(share[seat, action])
    return row


def by_action(name: str, values: np.ndarray, game: Game) -> dict[str, np.ndarray]:
    """A metric [seat, action] as one per action."""
    titles = [title.replace(" ", "_") for title in game.action_names]
    return {f"{name}_{title}": values[:, index] for index, title in enumerate(titles)}
