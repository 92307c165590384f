"""How well do players do that learn together?"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coplay.reproduce.experiment import (
    MAIN,
    Experiment,
    Findings,
    Measurement,
    curve,
    over_runs,
    words,
)

Rows = Callable[[str], list[dict[str, Any]]]

BEST = 3.0
"""No team of four can get more on average in Stag Hunt with one stag."""


def seeds_of(summary: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The final evaluations of a run, one for each of its seeds."""
    return summary.get("seeds") or [summary]


def self_play_row(label: str, summaries: Sequence[Mapping[str, Any]]) -> list[Any]:
    """A row: team mean over seeds, the lowest seed, the seats, steps of each seed."""
    seeds = [seed for summary in summaries for seed in seeds_of(summary)]
    means = [seed["team_mean"] for seed in seeds]
    seats = len(seeds[0]["seats"])
    of_seats = [
        sum(seed["seats"][seat]["reward"] for seed in seeds) / len(seeds) for seat in range(seats)
    ]
    return [
        label,
        over_runs(means),
        f"{min(means):.3f}",
        ", ".join(f"{reward:.2f}" for reward in of_seats),
        f"{summaries[0]['steps']:,}",
    ]


COLUMNS = ["players", "team mean", "lowest seed", "seats 0, 1, 2, 3", "steps"]


def learning_curves(lines: Mapping[str, Any]) -> dict[str, Any]:
    """A chart of the team's reward while it learns."""
    return {
        "kind": "curves",
        "x": "game steps",
        "y": "team mean per episode, while learning",
        "lines": lines,
        "references": {"best possible": BEST},
    }


def read_ppo(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    row = self_play_row("4 PPO, separate networks", [outputs["ppo"]])
    return Findings(
        f"The team mean is {words(row[1])} of at most {BEST:g}, that of the lowest seed {row[2]}.",
        [[f"4 PPO on Stag Hunt: team mean, at most {BEST:g}", row[1]]],
        {MAIN: {"columns": COLUMNS, "rows": [row]}},
        learning_curves({"PPO": curve(rows("runs/ppo"), "team_mean")}),
    )


PPO = Measurement("ppo", "train ppo --game stag-hunt --seeds 8 --steps 600000 --out runs/ppo")

PLANNER_SEEDS = range(2)


def hop(seed: int) -> Measurement:
    """HOP by its plain command."""
    name = f"hop-s{seed}"
    return Measurement(name, f"train hop --game stag-hunt --seed {seed} --out runs/{name}")


def hop_plus(seed: int) -> Measurement:
    """HOP+ by its plain command."""
    name = f"hopp-s{seed}"
    return Measurement(name, f"train hop-plus --game stag-hunt --seed {seed} --out runs/{name}")


HOP = tuple(hop(seed) for seed in PLANNER_SEEDS)
HOP_PLUS = tuple(hop_plus(seed) for seed in PLANNER_SEEDS)


def read_planners(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    groups = {"HOP": HOP, "HOP+": HOP_PLUS}
    made = [
        self_play_row(f"4 {label}", [outputs[step.name] for step in steps])
        for label, steps in groups.items()
    ]
    curves = {
        label: curve(
            [
                row | {"seed": number}
                for number, step in enumerate(steps)
                for row in rows(f"runs/{step.name}")
            ],
            "team_mean",
        )
        for label, steps in groups.items()
    }
    return Findings(
        f"HOP's team mean is {words(made[0][1])} and HOP+'s {words(made[1][1])}, of at most "
        f"{BEST:g}.",
        [[f"{row[0]} on Stag Hunt: team mean, at most {BEST:g}", row[1]] for row in made],
        {MAIN: {"columns": COLUMNS, "rows": made}},
        learning_curves(curves),
    )


EXPERIMENTS = (
    Experiment(
        "ppo-stag-hunt",
        "PPO hunts the stag",
        "Do four independent PPO players learn to hunt the stag together on the 4x4 board?",
        "training seeds 0 to 7",
        4,
        (PPO,),
        read_ppo,
    ),
    Experiment(
        "planners-stag-hunt",
        "HOP and HOP+ hunt the stag",
        "Do four players of HOP, or of HOP+, learn to hunt the stag in self-play on the 4x4 board?",
        "training seeds 0 and 1",
        25,
        (*HOP, *HOP_PLUS),
        read_planners,
    ),
)
