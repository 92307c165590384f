"""The result of a run: what the players of all seeds got in the final evaluation."""

from typing import Any

import jax
import numpy as np

from coplay.matches.match import Match
from coplay.matches.statistics import bootstrap_interval, iqm

SHOWN = ("team_mean", "seats", "scores")  # what a summary says of each seed


def summary_of(
    game: str, entries: list[str], seeds: list[int], matches: list[Match]
) -> dict[str, Any]:
    """The matches [seed] of a final evaluation, taken together; with several seeds also each of
    them, and the interquartile mean over them with its interval."""
    arrays = [(match.reward, match.steps, match.scores) for match in matches]
    every = Match(*jax.tree.map(lambda *parts: np.concatenate(parts), *arrays))
    summary = every.record(game, entries)
    if len(seeds) == 1:
        return summary
    records = [match.record(game, entries) for match in matches]
    means = [record["team_mean"] for record in records]
    return summary | {
        "seeds": [
            {"seed": seed} | {name: record[name] for name in SHOWN if name in record}
            for seed, record in zip(seeds, records, strict=True)
        ],
        "iqm": iqm(means),
        "interval": list(bootstrap_interval(means)),
    }
