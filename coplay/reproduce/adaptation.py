"""How well do trained players do among others?"""

from collections.abc import Mapping
from typing import Any

from coplay.reproduce.experiment import MAIN, Experiment, Findings, Measurement, over_runs, words
from coplay.reproduce.self_play import HOP, HOP_PLUS, PLANNER_SEEDS, PPO, Rows

PACK = "packs/rules"

STRANGERS = Measurement(
    "strangers",
    f"partners make --game stag-hunt --families rules --rules 3 --seed 2000 --out {PACK}",
)
"""Partners made of rules, from a seed that no training uses."""

SETS = {
    "nh": ("nh,nh,nh", "3 hare hunters"),
    "rules": (",".join(f"{PACK}@partner={number}" for number in range(3)), "3 strangers"),
}
"""Short name -> the co-players, and what they are called in tables."""

PLAYERS = {
    "hop": ("HOP", "runs/hop-s{}", ""),
    "hop-plus": ("HOP+", "runs/hopp-s{}", ""),
    "ppo-learning": ("PPO, still learning", "runs/ppo@seed={}", " --learn"),
}
"""Short name -> label, the player of a training seed, further options of `coplay adapt`."""


def meeting(player: str, seed: int, co_players: str) -> Measurement:
    """One player of one training seed among one set of co-players, once in each seat."""
    _, path, options = PLAYERS[player]
    name = f"adapt-{player}-s{seed}-{co_players}"
    against = SETS[co_players][0]
    return Measurement(
        name, f"adapt {path.format(seed)} --against {against} --seeds 1{options} --out runs/{name}"
    )


def meetings(seed: int, *players: str) -> list[Measurement]:
    """These players of a training seed among all sets of co-players."""
    return [meeting(player, seed, name) for name in SETS for player in players]


def read_adaptation(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    made: list[list[Any]] = []
    when: list[list[Any]] = []
    for player, (label, _, _) in PLAYERS.items():
        met = {
            name: [outputs[meeting(player, seed, name).name] for seed in PLANNER_SEEDS]
            for name in SETS
        }
        made.append(
            [
                label,
                *(over_runs([one["normalised"] for one in met[name]], digits=2) for name in SETS),
            ]
        )
        when.append([label, *(first_good(met[name]) for name in SETS)])
    titles = [title for _, title in SETS.values()]
    hop, hop_plus, learning = made[0], made[1], made[2]
    return Findings(
        f"Among three hare hunters HOP gets {words(hop[1])} and HOP+ {words(hop_plus[1])}, among "
        f"three strangers {words(hop[2])} and {words(hop_plus[2])}, where random play is 0 and a "
        "best response is 1. PPO that goes on learning by gradient gets "
        f"{words(learning[1])} and {words(learning[2])}.",
        [
            [f"{row[0]}, among {titles[place - 1]}: score", row[place]]
            for place in (1, 2)
            for row in made
        ],
        {
            MAIN: {"columns": ["player", *titles], "rows": made},
            "episodes": {"columns": ["player", *titles], "rows": when},
        },
        {
            "kind": "dots",
            "y": "normalised score",
            "references": {"random play": 0.0, "best response": 1.0},
        },
    )


def first_good(met: list[Mapping[str, Any]]) -> str:
    """The episodes that each training seed needed to get to 90 %; "never" if it did not."""
    needed = [one["episodes_to_first_90"] for one in met]
    return ", ".join("never" if episodes is None else str(episodes) for episodes in needed)


EXPERIMENTS = (
    Experiment(
        "adaptation-stag-hunt",
        "Players among others",
        "Do trained players adapt to co-players that follow rules of their own, in 2400 steps?",
        "training seeds 0 and 1",
        40,
        (
            PPO,
            STRANGERS,
            *(
                step
                for seed in PLANNER_SEEDS
                for step in (HOP[seed], *meetings(seed, "hop", "ppo-learning"))
            ),
            *(
                step
                for seed in PLANNER_SEEDS
                for step in (HOP_PLUS[seed], *meetings(seed, "hop-plus"))
            ),
        ),
        read_adaptation,
    ),
)
