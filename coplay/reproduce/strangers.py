"""How well do trained players do among strangers of families that no training saw?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coplay.reproduce.experiment import MAIN, Experiment, Findings, Measurement, words
from coplay.reproduce.self_play import PPO, Rows, hop, hop_plus

SEEDS = range(2)
RESAMPLES = 2000


@dataclass(frozen=True)
class Entrant:
    """label: its name in tables. path: the player of a training seed, {} in place of the seed.
    trained: what makes it. options: further options of `coplay adapt`."""

    label: str
    path: str
    trained: tuple[Measurement, ...]
    options: str = ""


@dataclass(frozen=True)
class Meetings:
    """Players of one game among the held-out partners of one pack.

    name: what its runs are called. title: of the game. game: its options. counts: how many partners
    of each family are made; 20 are kept. seed: of the pack; nothing else uses it, so that no
    setting was chosen on these partners.
    """

    name: str
    title: str
    game: str
    counts: str
    seed: int

    @property
    def pack(self) -> str:
        return f"packs/{self.name}"

    @property
    def made(self) -> Measurement:
        return Measurement(
            f"{self.name}-make",
            f"partners make {self.game} --families rules,selfplay,rewards,diverse,planners "
            f"{self.counts} --seed {self.seed} --out {self.pack}",
        )

    @property
    def selected(self) -> Measurement:
        return Measurement(
            f"{self.name}-select", f"partners select {self.pack} --keep 20 --responses held-out"
        )

    def learned(self, player: str, seed: int) -> Measurement:
        """A player by its plain command."""
        name = f"{self.name}-{player}-run-s{seed}"
        return Measurement(
            name, f"train {player} {self.game} --seed {seed} --no-pictures --out runs/{name}"
        )

    def trained(self, name: str) -> Measurement:
        """A baseline, trained with partners of the families that training may see."""
        return Measurement(
            name,
            f"train {name} {self.game} --partners {self.pack}/train --seeds {len(SEEDS)} "
            f"--no-pictures --out runs/{name}",
        )

    def meeting(self, name: str, player: Entrant, seed: int) -> Measurement:
        """One player of one training seed among all held-out partners, once in each seat."""
        name = f"{self.name}-{name}-s{seed}"
        return Measurement(
            name,
            f"adapt {player.path.format(seed)} --partners {self.pack}/held-out --seeds 1"
            f"{player.options} --out runs/{name}",
        )

    def steps(self, players: Mapping[str, Entrant]) -> tuple[Measurement, ...]:
        return (
            self.made,
            self.selected,
            *dict.fromkeys(step for player in players.values() for step in player.trained),
            *(self.meeting(*item, seed) for item in players.items() for seed in SEEDS),
        )

    def read(
        self, players: Mapping[str, Entrant], outputs: Mapping[str, Any], rows: Rows
    ) -> Findings:
        partners = outputs[self.selected.name]["held-out"]["partners"]
        made, by_family = [], []
        names: list[str] = []
        for name, player in players.items():
            found = [outputs[self.meeting(name, player, seed).name] for seed in SEEDS]
            row, families = among_companies(player.label, found, partners)
            names = list(families)
            made.append(row)
            by_family.append([player.label, *families.values()])
        said = [f"{row[0]} gets {words(row[1])}, among the worst company {row[3]}" for row in made]
        return Findings(
            f"{'; '.join(said)}. 0 is random play and 1 a best response, and no score counts more "
            "than 1.",
            [
                [f"{row[0]} on {self.title}, among held-out strangers: mean score", row[1]]
                for row in made
            ],
            {
                "families": {"columns": ["player", *names], "rows": by_family},
                MAIN: {"columns": COLUMNS, "rows": made},
            },
            {
                "kind": "dots",
                "table": "families",
                "y": "normalised score",
                "references": {"random play": 0.0, "best response": 1.0},
            },
        )


COLUMNS = ["player", "mean score", "first episode", "worst company", "below 0.5", "below 0.8"]


def among_companies(
    label: str, found: Sequence[Mapping[str, Any]], partners: Sequence[str]
) -> tuple[list[Any], dict[str, Any]]:
    """A row of the table, and family -> mean score. found: the output of `coplay adapt` for each
    training seed. partners: names of the pack's partners."""
    each = [scores_of(one) for one in found]
    companies = [company for company in each[0] if all(company in one for one in each)]
    scores = np.array([[one[company] for company in companies] for one in each])
    families = np.array([family(company, partners) for company in companies])
    of_company = scores.mean(axis=0)
    first = np.mean([one["summary"]["all"]["first_episode"] for one in found])
    row = [
        label,
        mean_cell(scores, families),
        f"{first:.2f}",
        f"{of_company.min():.2f} ({families[int(of_company.argmin())]})",
        f"{(of_company < 0.5).mean():.0%}",
        f"{(of_company < 0.8).mean():.0%}",
    ]
    chosen = {name: scores[:, families == name] for name in dict.fromkeys(families.tolist())}
    return row, {name: mean_cell(one, [""] * one.shape[1]) for name, one in chosen.items()}


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


def mean_cell(scores: np.ndarray, families: Sequence[str] | np.ndarray) -> dict[str, Any]:
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


HUNT = Meetings(
    "strangers",
    "Stag Hunt",
    "--game stag-hunt",
    "--rules 12 --rewards 14 --diverse 10 --planners 2",
    8000,
)
HUNTERS = {
    "hop": Entrant("HOP", "runs/hop-s{}", tuple(hop(seed) for seed in SEEDS)),
    "hop-plus": Entrant("HOP+", "runs/hopp-s{}", tuple(hop_plus(seed) for seed in SEEDS)),
    "ppo-learning": Entrant("PPO, still learning", "runs/ppo@seed={}", (PPO,), " --learn"),
}
BASELINES = {
    name: Entrant(label, f"runs/{name}@seed={{}}", (HUNT.trained(name),))
    for name, label in {
        "rl2": "RL²",
        "liam": "LIAM",
        "varibad": "VariBAD",
        "plastic": "PLASTIC",
    }.items()
}
"""Players that are trained with the pack's other half."""

DRIFT = Meetings(
    "snowdrift-strangers",
    "Snowdrift",
    "--game snowdrift --game.height 6 --game.width 6 --game.horizon 25",
    "--rules 12 --rewards 14 --diverse 10 --planners 2",
    8500,
)
DRIFTERS = {
    player: Entrant(
        label,
        f"runs/{DRIFT.name}-{player}-run-s{{}}",
        tuple(DRIFT.learned(player, seed) for seed in SEEDS),
    )
    for player, label in {"hop": "HOP", "hop-plus": "HOP+"}.items()
}

QUESTION = "adapt to partners of families that no training saw, in 2400 steps?"


def experiment(
    name: str,
    title: str,
    question: str,
    minutes: float,
    meetings: Meetings,
    players: Mapping[str, Entrant],
) -> Experiment:
    """Players among the held-out partners of one pack. question: how its question begins."""
    return Experiment(
        name,
        title,
        f"{question} {QUESTION}",
        "training seeds 0 and 1",
        minutes,
        meetings.steps(players),
        partial(meetings.read, players),
    )


EXPERIMENTS = (
    experiment("strangers", "Players among held-out strangers", "Do players", 90, HUNT, HUNTERS),
    experiment(
        "strangers-baselines",
        "Baselines among held-out strangers",
        "Do the baselines",
        90,
        HUNT,
        BASELINES,
    ),
    experiment(
        "snowdrift-strangers",
        "HOP and HOP+ among held-out strangers on Snowdrift",
        "Do HOP and HOP+",
        120,
        DRIFT,
        DRIFTERS,
    ),
)
