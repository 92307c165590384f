"""Does modelling the other player pay in matrix games?"""

from collections.abc import Mapping
from typing import Any

from coplay.reproduce.experiment import MAIN, Experiment, Findings, Measurement
from coplay.reproduce.self_play import Rows

ROUNDS = 50
BIASED = {"mixture-25": 0.5, "mixture-90": 0.8}
"""A player that takes heads with this percentage -> what the best answer brings in a round."""
LEARNS = {
    "hop": ("HOP, its model of the other learns", "--learn-opponents"),
    "ppo-gru": ("PPO with a GRU that goes on learning", "--learn"),
}
"""Learner -> what it is called, and what of it learns while it adapts."""
REPETITIONS = 10


def trained(player: str) -> Measurement:
    return Measurement(
        f"pennies-{player}",
        f"train {player} --game matrix:matching-pennies --steps 50000 --no-pictures "
        f"--out runs/pennies-{player}",
    )


def adapted(player: str, against: str) -> Measurement:
    _, option = LEARNS[player]
    return Measurement(
        f"pennies-{player}-{against}",
        f"adapt runs/pennies-{player} --side 0 --against {against} {option} --no-normalise "
        f"--seeds {REPETITIONS} --out runs/pennies-{player}-{against}",
    )


def read_pennies(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    made, shares = [], {}
    for player, (label, _) in LEARNS.items():
        for against, best in BIASED.items():
            result = outputs[adapted(player, against).name]
            low, high = (end / ROUNDS for end in result["interval"])
            shares[player, against] = result["score"] / ROUNDS / best
            made.append(
                [
                    label,
                    f"`{against}`",
                    f"{result['score'] / ROUNDS:.3f} ({low:.3f} to {high:.3f})",
                    f"{result['curve'][0] / ROUNDS:.3f}",
                    f"{best:.1f}",
                    f"{shares[player, against]:.2f}",
                ]
            )
    least = {player: min(shares[player, against] for against in BIASED) for player in LEARNS}
    pays = "pays" if least["hop"] > least["ppo-gru"] else "does not pay"
    return Findings(
        f"After 2400 rounds in one copy HOP gets at least {least['hop']:.2f} of what the best "
        f"answer to a biased player brings, PPO with a memory that goes on learning "
        f"{least['ppo-gru']:.2f}: modelling the other {pays} here.",
        [
            [f"{label} against a biased player in matching pennies", f"{least[player]:.2f}"]
            for player, (label, _) in LEARNS.items()
        ],
        {
            MAIN: {
                "columns": [
                    "player",
                    "against",
                    "reward per round, last 600",
                    "first episode",
                    "best answer",
                    "share of it",
                ],
                "rows": made,
            }
        },
    )


RECIPROCAL = ("tit-for-tat", "grim")
"""Players beside whom the best plan is to cooperate until the last known round."""
PLANS = {"hop": "HOP", "ppo-gru": "PPO with a GRU"}


def beside(player: str, other: str) -> Measurement:
    return Measurement(
        f"dilemma-{player}-{other}",
        f"train {player} --game matrix:prisoners-dilemma --seating {player},{other} "
        f"--steps 50000 --no-pictures --out runs/dilemma-{player}-{other}",
    )


def meeting(player: str, other: str) -> Measurement:
    return Measurement(
        f"plan-{player}-{other}",
        f"play --seating runs/dilemma-{player}-{other},{other} --greedy --episodes 64 "
        "--exploitability",
    )


def read_dilemma(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    made, found = [], {}
    for player, label in PLANS.items():
        for other in RECIPROCAL:
            output = outputs[meeting(player, other).name]
            best = output["policies"]["best_plan"][0]
            found[player, other] = reward = output["seats"][0]["reward"]
            plan = ", then ".join(f"{name} {times} times" for name, times in best["actions"])
            made.append([label, f"`{other}`", f"{reward:.1f}", f"{best['reward']:.0f}", plan])
    against = {
        player: " and ".join(f"{found[player, other]:.1f}" for other in RECIPROCAL)
        for player in PLANS
    }
    return Findings(
        f"Beside tit-for-tat and grim HOP gets {against['hop']} in 50 known rounds, PPO with a "
        f"memory {against['ppo-gru']}; the best plan brings 152.",
        [
            [
                f"{label} beside tit-for-tat, 50 rounds, at most 152",
                f"{found[player, RECIPROCAL[0]]:.1f}",
            ]
            for player, label in PLANS.items()
        ],
        {
            MAIN: {
                "columns": ["player", "beside", "reward", "best possible", "by this plan"],
                "rows": made,
            }
        },
    )


EXPERIMENTS = (
    Experiment(
        "pennies",
        "Matching pennies against biased players",
        "How fast is a biased player found out and exploited?",
        f"one training seed, {REPETITIONS} repetitions of the adaptation",
        6,
        (
            *(trained(player) for player in LEARNS),
            *(adapted(player, against) for player in LEARNS for against in BIASED),
        ),
        read_pennies,
    ),
    Experiment(
        "dilemma",
        "The prisoner's dilemma with a known end",
        "Does a player find out that it pays to cooperate until the last round?",
        "one training seed",
        6,
        (
            *(beside(player, other) for player in PLANS for other in RECIPROCAL),
            *(meeting(player, other) for player in PLANS for other in RECIPROCAL),
        ),
        read_dilemma,
    ),
)
