"""Does modelling the other player pay in matrix games?"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coplay.matches.statistics import bootstrap_interval, iqm
from coplay.reproduce.experiment import MAIN, Experiment, Findings, Measurement, over_runs, words
from coplay.reproduce.self_play import Rows

ROUNDS = 50
"""Rounds of an episode."""
EARLY, LATE = 10, 12
"""Episodes of the first and of the last rounds that are reported, of 48."""
BIASED = {"mixture-25": 0.5, "mixture-90": 0.8}
"""A player that takes heads with this percentage -> what the best answer brings in a round."""
LEARNS = {
    "hop": ("HOP, its model of the other learns", "--learn-opponents"),
    "ppo-gru": ("PPO with a GRU that goes on learning", "--learn"),
}
"""Learner -> what it is called, and what of it learns while it adapts."""
PENNIES_SEEDS, REPETITIONS = (0, 1, 2, 3, 4), 5


def trained(player: str, seed: int) -> Measurement:
    return Measurement(
        f"pennies-{player}-s{seed}",
        f"train {player} --game matrix:matching-pennies --steps 50000 --seed {seed} --no-pictures "
        f"--out runs/pennies-{player}-s{seed}",
    )


def adapted(player: str, against: str, seed: int) -> Measurement:
    _, option = LEARNS[player]
    name = f"pennies-{player}-{against}-s{seed}"
    return Measurement(
        name,
        f"adapt runs/pennies-{player}-s{seed} --side 0 --against {against} {option} "
        f"--no-normalise --seeds {REPETITIONS} --out runs/{name}",
    )


def training_seconds(summaries: Sequence[Mapping[str, Any]]) -> str:
    """Of one run without compiling, the median."""
    return f"{np.median([summary['seconds'] for summary in summaries]):.0f}"


def read_pennies(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    made, found, lines = [], {}, {}
    for player, (label, _) in LEARNS.items():
        runs = [outputs[trained(player, seed).name] for seed in PENNIES_SEEDS]
        for against, best in BIASED.items():
            curves = (
                np.array(
                    [outputs[adapted(player, against, s).name]["curve"] for s in PENNIES_SEEDS]
                )
                / ROUNDS
            )
            early, late = (
                over_runs(part.mean(axis=1), digits=2)
                for part in (curves[:, :EARLY], curves[:, -LATE:])
            )
            found[player, against] = early, late
            lines[f"{player} against {against}"] = _band(curves)
            made.append([label, f"`{against}`", early, late, f"{best:.1f}", training_seconds(runs)])
    parts = []
    for index, which in enumerate(("first 500", "last 600")):
        cells = {
            player: " and ".join(f"{found[player, a][index]['value']:.2f}" for a in BIASED)
            for player in LEARNS
        }
        pays = verdict({a: (found["hop", a][index], found["ppo-gru", a][index]) for a in BIASED})
        parts.append(
            f"in the {which} rounds HOP gets {cells['hop']} per round, PPO with a memory that goes "
            f"on learning {cells['ppo-gru']}: modelling the other {pays}"
        )
    answer = "; ".join(parts)
    return Findings(
        f"{answer[0].upper()}{answer[1:]}. The best answers bring 0.50 and 0.80.",
        [
            [f"{label}, first 500 rounds against `{a}`, best {BIASED[a]}", found[player, a][0]]
            for player, label in (("hop", "HOP in matching pennies"), ("ppo-gru", "PPO-GRU there"))
            for a in BIASED
        ],
        {
            MAIN: {
                "columns": [
                    "player",
                    "against",
                    "reward per round, first 500",
                    "last 600",
                    "best answer",
                    "seconds of training",
                ],
                "rows": made,
            }
        },
        {"kind": "curves", "x": "rounds", "y": "reward per round", "lines": lines},
    )


def verdict(pairs: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]) -> str:
    """Against which of two players modelling pays.

    pairs: another player -> the cells of who models it and of who does not; it pays where the
        first's interval is wholly above the second's, by the decimal places that are shown.
    """

    def said(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
        ends = [
            round(cell[end], cell["digits"]) for cell in (one, other) for end in ("low", "high")
        ]
        if ends[0] > ends[3]:
            return "pays"
        return "costs reward" if ends[1] < ends[2] else "makes no clear difference"

    words = {name: said(*cells) for name, cells in pairs.items()}
    first, *others = words.values()
    if all(found == first for found in others):
        return f"{first} against both"
    return ", ".join(f"{found} against {name}" for name, found in words.items())


def _band(curves: np.ndarray) -> dict[str, Any]:
    """A line of a chart: [run, episode] as interquartile mean with its interval."""
    bands = [bootstrap_interval(column, resamples=500) for column in curves.T]
    return {
        "x": [ROUNDS * (episode + 1) for episode in range(curves.shape[1])],
        "y": [round(iqm(column), 4) for column in curves.T],
        "low": [round(low, 4) for low, _ in bands],
        "high": [round(high, 4) for _, high in bands],
    }


RECIPROCAL = ("tit-for-tat", "grim")
"""Players beside whom the best plan is to cooperate until the last known round."""
PLANS = {"hop": "HOP", "ppo-gru": "PPO with a GRU"}
DILEMMA_SEEDS = (0, 1, 2)


def beside(player: str, other: str, seed: int) -> Measurement:
    name = f"dilemma-{player}-{other}-s{seed}"
    return Measurement(
        name,
        f"train {player} --game matrix:prisoners-dilemma --seating {player},{other} "
        f"--steps 50000 --seed {seed} --no-pictures --out runs/{name}",
    )


def meeting(player: str, other: str, seed: int) -> Measurement:
    return Measurement(
        f"plan-{player}-{other}-s{seed}",
        f"play --seating runs/dilemma-{player}-{other}-s{seed},{other} --greedy --episodes 64 "
        "--exploitability",
    )


def said(action: str, times: int) -> str:
    """So often an action, in words."""
    return f"{action} once" if times == 1 else f"{action} {times} times"


def read_dilemma(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    made, found = [], {}
    for player, label in PLANS.items():
        for other in RECIPROCAL:
            runs = [outputs[beside(player, other, seed).name] for seed in DILEMMA_SEEDS]
            played = [outputs[meeting(player, other, seed).name] for seed in DILEMMA_SEEDS]
            best = played[0]["policies"]["best_plan"][0]
            plan = ", then ".join(said(*one) for one in best["actions"])
            reward = over_runs([output["seats"][0]["reward"] for output in played], digits=1)
            found[player, other] = reward
            made.append(
                [
                    label,
                    f"`{other}`",
                    reward,
                    f"{best['reward']:.0f}",
                    plan,
                    training_seconds(runs),
                ]
            )
    pays = verdict({o: (found["hop", o], found["ppo-gru", o]) for o in RECIPROCAL})
    against = {
        player: " and ".join(words(found[player, other]) for other in RECIPROCAL)
        for player in PLANS
    }
    return Findings(
        f"Beside tit-for-tat and grim HOP gets {against['hop']} in 50 known rounds, PPO with a "
        f"memory {against['ppo-gru']}. The best plan brings 152. Modelling the other {pays}.",
        [
            [
                f"{label} beside tit-for-tat, 50 rounds, at most 152",
                found[player, RECIPROCAL[0]],
            ]
            for player, label in PLANS.items()
        ],
        {
            MAIN: {
                "columns": [
                    "player",
                    "beside",
                    "reward",
                    "best possible",
                    "by this plan",
                    "seconds of training",
                ],
                "rows": made,
            }
        },
    )


EXPERIMENTS = (
    Experiment(
        "pennies",
        "Matching pennies against biased players",
        "How fast is a biased player found out and exploited?",
        f"training seeds 0 to 4, {REPETITIONS} repetitions of the adaptation of each",
        15,
        (
            *(trained(player, seed) for player in LEARNS for seed in PENNIES_SEEDS),
            *(
                adapted(player, against, seed)
                for player in LEARNS
                for against in BIASED
                for seed in PENNIES_SEEDS
            ),
        ),
        read_pennies,
    ),
    Experiment(
        "dilemma",
        "The prisoner's dilemma with a known end",
        "Does a player find out that it pays to cooperate until the last round?",
        "training seeds 0 to 2",
        10,
        (
            *(
                beside(p, other, seed)
                for p in PLANS
                for other in RECIPROCAL
                for seed in DILEMMA_SEEDS
            ),
            *(
                meeting(p, other, seed)
                for p in PLANS
                for other in RECIPROCAL
                for seed in DILEMMA_SEEDS
            ),
        ),
        read_dilemma,
    ),
)
