"""How well do trained players do among strangers of families that no training saw?"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from coplay.reproduce.experiment import MAIN, Experiment, Findings, Measurement, words
from coplay.reproduce.self_play import PPO, Rows, hop, hop_plus

PACK = "packs/strangers"
MADE = Measurement(
    "strangers-make",
    "partners make --game stag-hunt --families rules,selfplay,rewards,diverse,planners --rules 12 "
    f"--rewards 14 --diverse 10 --planners 2 --seed 6000 --out {PACK}",
)
"""From a seed that nothing else uses: no setting was chosen on these partners."""
SELECTED = Measurement(
    "strangers-select",
    f"partners select {PACK} --keep 20 --responses held-out",
)
SEEDS = range(2)
BASELINES = {"rl2": "RL²", "liam": "LIAM", "varibad": "VariBAD", "plastic": "PLASTIC"}
"""Players that are trained with the pack's other half -> their labels."""
PLAYERS = {
    "hop": ("HOP", "runs/hop-s{}", ""),
    "hop-plus": ("HOP+", "runs/hopp-s{}", ""),
    **{name: (label, f"runs/{name}@seed={{}}", "") for name, label in BASELINES.items()},
    "ppo-learning": ("PPO, still learning", "runs/ppo@seed={}", " --learn"),
}
"""Short name -> label, the player of a training seed, further options of `coplay adapt`."""
RESAMPLES = 2000


def trained(name: str) -> Measurement:
    """A baseline, trained with partners of the families that training may see."""
    return Measurement(
        name,
        f"train {name} --game stag-hunt --partners {PACK}/train --seeds {len(SEEDS)} "
        f"--no-pictures --out runs/{name}",
    )


def meeting(player: str, seed: int) -> Measurement:
    """One player of one training seed among all held-out partners, once in each seat."""
    _, path, options = PLAYERS[player]
    name = f"strangers-{player}-s{seed}"
    return Measurement(
        name,
        f"adapt {path.format(seed)} --partners {PACK}/held-out --seeds 1{options} "
        f"--out runs/{name}",
    )


def scores_of(found: Mapping[str, Any]) -> dict[str, float]:
    """Company -> normalised score, without companies in which there is nothing to gain. A score
    above 1 counts as 1: the best response was not quite the best, and that makes up for nothing."""
    left_out = found["summary"]["left_out"]
    return {
        one["against"]: min(one["normalised"], 1.0)
        for one in found["companies"]
        if one["against"] not in left_out
    }


def family(company: str, names: Sequence[str]) -> str:
    """The family of a company of one partner, by the names of the pack's partners."""
    number = int(company.split(",")[0].rpartition("=")[2])
    return names[number].rpartition("-")[0]


def mean_cell(scores: np.ndarray, families: Sequence[str]) -> dict[str, Any]:
    """A cell: the mean of scores [run, company], with its 95 % bootstrap interval over training
    runs and companies; companies are drawn anew within each family."""
    rng = np.random.default_rng(0)
    runs = len(scores)
    groups = [np.flatnonzero(np.array(families) == name) for name in dict.fromkeys(families)]
    means = []
    for _ in range(RESAMPLES):
        companies = np.concatenate([rng.choice(group, len(group)) for group in groups])
        means.append(scores[rng.integers(runs, size=runs)][:, companies].mean())
    low, high = np.quantile(means, [0.025, 0.975])
    return {
        "value": float(scores.mean()),
        "digits": 2,
        "runs": [float(x) for x in scores.mean(axis=1)],
        "low": float(low),
        "high": float(high),
    }


def read_strangers(players: Sequence[str], outputs: Mapping[str, Any], rows: Rows) -> Findings:
    made: list[list[Any]] = []
    by_family: list[list[Any]] = []
    partners = outputs[SELECTED.name]["held-out"]["partners"]
    names: list[str] = []
    for player in players:
        label = PLAYERS[player][0]
        found = [outputs[meeting(player, seed).name] for seed in SEEDS]
        each = [scores_of(one) for one in found]
        companies = [company for company in each[0] if all(company in one for one in each)]
        scores = np.array([[one[company] for company in companies] for one in each])
        families = [family(company, partners) for company in companies]
        names = list(dict.fromkeys(families))
        of_company = scores.mean(axis=0)
        first = np.mean([one["summary"]["all"]["first_episode"] for one in found])
        made.append(
            [
                label,
                mean_cell(scores, families),
                f"{first:.2f}",
                f"{of_company.min():.2f} ({families[int(of_company.argmin())]})",
                f"{(of_company < 0.5).mean():.0%}",
                f"{(of_company < 0.8).mean():.0%}",
            ]
        )
        chosen = [np.array(families) == name for name in names]
        by_family.append([label, *(mean_cell(scores[:, one], [""] * one.sum()) for one in chosen)])
    said = [f"{row[0]} gets {words(row[1])}, among the worst company {row[3]}" for row in made]
    return Findings(
        f"{'; '.join(said)}. 0 is random play and 1 a best response, and no score counts more than "
        "1.",
        [[f"{row[0]} on Stag Hunt, among held-out strangers: mean score", row[1]] for row in made],
        {
            "families": {"columns": ["player", *names], "rows": by_family},
            MAIN: {
                "columns": [
                    "player",
                    "mean score",
                    "first episode",
                    "worst company",
                    "below 0.5",
                    "below 0.8",
                ],
                "rows": made,
            },
        },
        {
            "kind": "dots",
            "table": "families",
            "y": "normalised score",
            "references": {"random play": 0.0, "best response": 1.0},
        },
    )


LEARNED = ("hop", "hop-plus", "ppo-learning")
EXPERIMENTS = (
    Experiment(
        "strangers",
        "Players among held-out strangers",
        "Do players adapt to partners of families that no training saw, in 2400 steps?",
        "training seeds 0 and 1",
        90,
        (
            MADE,
            SELECTED,
            *(make(seed) for make in (hop, hop_plus) for seed in SEEDS),
            PPO,
            *(meeting(player, seed) for player in LEARNED for seed in SEEDS),
        ),
        partial(read_strangers, LEARNED),
    ),
    Experiment(
        "strangers-baselines",
        "Baselines among held-out strangers",
        "Do the baselines adapt to partners of families that no training saw, in 2400 steps?",
        "training seeds 0 and 1",
        90,
        (
            MADE,
            SELECTED,
            *(trained(name) for name in BASELINES),
            *(meeting(name, seed) for name in BASELINES for seed in SEEDS),
        ),
        partial(read_strangers, tuple(BASELINES)),
    ),
)
