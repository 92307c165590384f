"""A player among the partners of a pack: which companies it meets, and what that came to.

A *company* is a set of co-players: the same partner in every other seat, or a mixed one.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.loading import refuse_elsewhere
from coplay.core.reading import read_field, read_json
from coplay.evaluation.adaptation.scores import References
from coplay.matches.statistics import iqm
from coplay.training.partner_packs import (
    TRAINING_FAMILIES,
    Pack,
    is_pack,
    pack_checksum,
    read_pack,
)
from coplay.training.run import RunFolder

MIXED = "mixed"
"""The family of companies whose partners are not all alike."""
LEAST_SHARE, LEAST_ERRORS = 0.05, 3.0
"""Companies in which the best response gains less than this share of its reward over random play,
or less than so many standard errors, count in no normalised mean: there is nothing to adapt to."""
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


class Known(NamedTuple):
    """What a player has met in training.

    families: of partners; where nobody knows, those that training may use. partners: digests of
    the very partners.
    """

    families: frozenset[str]
    partners: frozenset[str] = frozenset()


def _told(folder: RunFolder) -> Known | None:
    """What the card of an imported player says of the partners it was trained with, if anything."""
    where, card = str(folder.card_file), read_json(folder.card_file)
    if "met" not in card:
        return None
    met = read_field(card, "met", dict, where)
    families, partners = (read_field(met, name, list, where) for name in Known._fields)
    return Known(frozenset(map(str, families)), frozenset(map(str, partners)))


def known_to(focal: str) -> Known:
    """What the run of a focal player says of the partners it was trained with."""
    folder = RunFolder(Path(focal.split("@")[0]))
    if not folder.exists():
        return Known(frozenset(TRAINING_FAMILIES))
    about = read_json(folder.config_file)
    # HOP's personas are partners that want certain events.
    personas = {"rewards"} if about.get("player") == "hop" else set()
    unsaid = Known(frozenset({*TRAINING_FAMILIES, *personas}))
    if folder.card_file.exists():
        return _told(folder) or unsaid
    stated = about.get("partners")
    if not isinstance(stated, dict) or not isinstance(stated.get("path"), str):
        return unsaid
    path: str = stated["path"]
    refuse_elsewhere(path, folder.path, str(folder.config_file))
    # A pack that is gone, or is another one by now, tells nothing of what was met.
    if not is_pack(path) or pack_checksum(Path(path)) != stated.get("checksum"):
        return unsaid
    pack = read_pack(Path(path))
    families = {partner.family for partner in pack.partners}
    return Known(frozenset(families | personas), frozenset(pack.digests().values()))


def were_met(sets: Sequence[str], known: Known) -> list[bool]:
    """[set] whether a player was trained with a partner of each company."""
    if not known.partners:
        return [False] * len(sets)
    packs = {path: read_pack(Path(path)) for text in sets for path, _ in _named(text)}
    digests = {path: pack.digests() for path, pack in packs.items()}
    return [
        any(digests[path][packs[path].partner(name).name] in known.partners for path, name in named)
        for named in map(_named, sets)
    ]


def _named(text: str) -> list[tuple[str, str]]:
    """The packs and partners in a set of co-players."""
    parts = [entry.partition("@partner=") for entry in text.split(",")]
    return [(path, name) for path, _, name in parts if name]


def summarise_companies(
    results: Sequence[dict[str, Any]],
    families: Sequence[str],
    seed: int = 0,
    known: Known = Known(frozenset(TRAINING_FAMILIES)),
) -> dict[str, Any]:
    """Scores over all companies, by family, and apart for families that the player knows
    (in_family) and others (out_of_family), as a JSON object.

    mean, iqm, worst: of the companies' normalised scores; below_half, below_0.8: shares of the
    companies. first_episode: the mean before anything could be learned of the partners.
    above_best: how many scores are so far above the best response that it is a poor reference.
    interval: of the mean, 95 %, over companies (resampled within families) and units.
    """
    counted = [counts(result) for result in results]
    kept = [
        (result, family)
        for result, family, counting in zip(results, families, counted, strict=True)
        if counting
    ]
    left_out = [
        result["against"] for result, counting in zip(results, counted, strict=True) if not counting
    ]
    found: dict[str, Any] = {"companies": len(results), "left_out": left_out}
    if not kept:
        return found | {"all": None, "by_family": {}, "in_family": None, "out_of_family": None}
    names = list(dict.fromkeys(family for _, family in kept))
    by_family = {
        name: _summary([result for result, family in kept if family == name], seed)
        for name in names
    }
    strata = [[result for result, family in kept if family == name] for name in names]
    whole = _summary([result for result, _ in kept], seed)
    whole["interval"] = _interval(strata, seed)
    sides: dict[str, list[str]] = {"in_family": [], "out_of_family": []}
    for name in names:
        if name != MIXED:
            sides["in_family" if name in known.families else "out_of_family"].append(name)
    apart = {side: _side(strata, names, members, seed) for side, members in sides.items()}
    return found | {"all": whole, "by_family": by_family, "sides": sides} | apart


def _side(
    strata: list[list[dict[str, Any]]], names: list[str], members: list[str], seed: int
) -> dict[str, Any] | None:
    """The summary of some families; None: there are none."""
    mine = [stratum for stratum, name in zip(strata, names, strict=True) if name in members]
    if not mine:
        return None
    together = [result for stratum in mine for result in stratum]
    return _summary(together, seed) | {"interval": _interval(mine, seed)}


def _references(result: dict[str, Any]) -> References:
    return References(result["random"], result["best_response"])


def counts(result: dict[str, Any]) -> bool:
    """Whether a company has something to adapt to."""
    random, best = result["random"], result["best_response"]
    if random is None or best is None:
        return False
    noise = result.get("references_stderr") or 0.0
    return best - random > max(LEAST_SHARE * abs(best), LEAST_ERRORS * noise)


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
        "cumulative_regret": _mean_of(results, "cumulative_regret"),
        "above_best": int((scores > POOR_REFERENCE).sum()),
    }


def _mean_of(results: list[dict[str, Any]], name: str) -> float | None:
    """The mean of a figure; None if a result is without."""
    values = [result.get(name) for result in results]
    return None if None in values else float(np.mean(np.array(values, float)))


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
