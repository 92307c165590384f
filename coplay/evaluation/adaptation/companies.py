"""A player among the partners of a pack: which companies it meets, and what that came to.

A *company* is a set of co-players: the same partner in every other seat, or a mixed one.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.evaluation.adaptation.scores import References
from coplay.matches.statistics import iqm
from coplay.training.partner_packs import Pack

MIXED = "mixed"
"""The family of companies whose partners are not all alike."""
LEAST_SHARE = 0.05
"""Companies in which the best response gains less than this share of its reward over random play
count in no normalised mean: there is nothing to adapt to."""
POOR_REFERENCE = 1.05
"""Normalised scores above this say that the best response was not trained to its end."""
RESAMPLES = 500


def companies(pack: Pack, game: Game, mixed: int) -> dict[str, str]:
    """Co-players as entries of a seating -> the family of the company.

    mixed: how many companies of different partners, drawn from the pack by the pack's own seed.
    """
    others = game.seats - 1
    alike = {
        ",".join([pack.entry(number)] * others): partner.family
        for number, partner in enumerate(pack.partners)
    }
    if not mixed:
        return alike
    if others < 2 or len(pack.partners) < others:
        raise UserError(
            f"mixed companies need two seats or more beside the focal player's and {others} "
            f"different partners; {pack.folder} has {len(pack.partners)}: leave out --mixed"
        )
    rng = np.random.default_rng([pack.seed, 1])
    drawn = (rng.choice(len(pack.partners), others, replace=False) for _ in range(mixed))
    more = {",".join(pack.entry(int(number)) for number in numbers): MIXED for numbers in drawn}
    return alike | more


def summarise_companies(
    results: Sequence[dict[str, Any]], families: Sequence[str], seed: int = 0
) -> dict[str, Any]:
    """Scores over all companies and by family, as a JSON object.

    mean, iqm, worst: of the companies' normalised scores; below_half, below_0.8: shares of the
    companies. first_episode: the mean before anything could be learned of the partners.
    above_best: how many scores are so far above the best response that it is a poor reference.
    interval: of the mean, 95 %, over companies (resampled within families) and units.
    """
    counted = [_counts(result) for result in results]
    kept = [
        (result, family)
        for result, family, counts in zip(results, families, counted, strict=True)
        if counts
    ]
    left_out = [
        result["against"] for result, counts in zip(results, counted, strict=True) if not counts
    ]
    found: dict[str, Any] = {"companies": len(results), "left_out": left_out}
    if not kept:
        return found | {"all": None, "by_family": {}}
    names = list(dict.fromkeys(family for _, family in kept))
    by_family = {
        name: _summary([result for result, family in kept if family == name], seed)
        for name in names
    }
    strata = [[result for result, family in kept if family == name] for name in names]
    whole = _summary([result for result, _ in kept], seed)
    whole["interval"] = _interval(strata, seed)
    return found | {"all": whole, "by_family": by_family}


def _references(result: dict[str, Any]) -> References:
    return References(result["random"], result["best_response"])


def _counts(result: dict[str, Any]) -> bool:
    """Whether a company has something to adapt to."""
    random, best = _references(result)
    if random is None or best is None:
        return False
    return best - random > LEAST_SHARE * abs(best)


def _units(result: dict[str, Any]) -> np.ndarray:
    """[unit] normalised scores."""
    return np.asarray(_references(result).normalised(np.asarray(result["scores"], float)))


def _summary(results: list[dict[str, Any]], seed: int) -> dict[str, Any]:
    scores = np.array([_units(result).mean() for result in results])
    first = [float(_references(result).normalised(result["curve"][0])) for result in results]
    worst = int(np.argmin(scores))
    return {
        "companies": len(results),
        "mean": float(scores.mean()),
        "interval": _interval([results], seed),
        "iqm": float(iqm(scores)),
        "worst": float(scores[worst]),
        "worst_against": results[worst]["against"],
        "below_half": float((scores < 0.5).mean()),
        "below_0.8": float((scores < 0.8).mean()),
        "first_episode": float(np.mean(first)),
        "above_best": int((scores > POOR_REFERENCE).sum()),
    }


def _interval(strata: list[list[dict[str, Any]]], seed: int) -> list[float]:
    """Of the mean over companies: companies are drawn anew within each stratum, and the units of
    each company that is drawn."""
    rng = np.random.default_rng(seed)
    units = [[_units(result) for result in stratum] for stratum in strata]
    means = [_resampled_mean(units, rng.integers) for _ in range(RESAMPLES)]
    return [float(x) for x in np.quantile(means, [0.025, 0.975])]


def _resampled_mean(
    strata: list[list[np.ndarray]], draw: Callable[..., np.ndarray]
) -> np.floating[Any]:
    scores = []
    for companies_ in strata:
        for index in draw(len(companies_), size=len(companies_)):
            units = companies_[index]
            scores.append(units[draw(len(units), size=len(units))].mean())
    return np.mean(scores)
