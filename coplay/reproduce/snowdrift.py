"""Does HOP clean alone, among cleaners, and with players like itself?"""

from collections.abc import Mapping
from typing import Any

from coplay.reproduce.boards import SEEDS, Board
from coplay.reproduce.experiment import MAIN, Experiment, Findings, Measurement, over_runs, words
from coplay.reproduce.self_play import Rows

BOARD = Board("snowdrift", "--game snowdrift --game.height 6 --game.width 6 --game.horizon 25")
BEST = {"self": 30.0, "exploiter": 12.0, "nd": 36.0}
"""What is best: for a team, among three exploiters, among three cleaners."""
OTHERS = {
    "exploiter": "among three exploiters, who never clean",
    "nd": "among three cleaners (ND)",
}


def among(seed: int, others: str) -> Measurement:
    return BOARD.among(seed, others, ",".join([others] * 3), "--no-normalise")


def random_play(others: str) -> Measurement:
    seating = ",".join(["random", *[others] * 3])
    return Measurement(
        f"snowdrift-random-{others}",
        f"play {BOARD.game} --seating {seating} --episodes 4000",
    )


def read_snowdrift(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    got = {
        "self": [outputs[BOARD.together(seed).name]["team_mean"] for seed in SEEDS],
        **{
            others: [outputs[among(seed, others).name]["score"] for seed in SEEDS]
            for others in OTHERS
        },
    }
    by_chance = {
        others: outputs[random_play(others).name]["seats"][0]["reward"] for others in OTHERS
    }
    cells = {name: over_runs(values, digits=1) for name, values in got.items()}
    labels = {"self": "four of it", **OTHERS}
    return Findings(
        f"Four HOP players get {words(cells['self'])} of at most {BEST['self']:g} each. Among "
        f"three exploiters HOP gets {words(cells['exploiter'])} of {BEST['exploiter']:g}, among "
        f"three cleaners {words(cells['nd'])} of {BEST['nd']:g}.",
        [
            [f"HOP on Snowdrift, {labels[name]}: at most {BEST[name]:g}", cells[name]]
            for name in labels
        ],
        {
            MAIN: {
                "columns": ["HOP", "reward per episode", "random play", "best"],
                "rows": [
                    [
                        labels[name],
                        cells[name],
                        f"{by_chance[name]:.1f}" if name in by_chance else "",
                        f"{BEST[name]:g}",
                    ]
                    for name in labels
                ],
            }
        },
    )


EXPERIMENTS = (
    Experiment(
        "snowdrift",
        "HOP on Snowdrift",
        "Does HOP clean where nobody else does, and leave the work to those who do it anyway?",
        "training seeds 2 and 3",
        25,
        (
            *(BOARD.trained(seed) for seed in SEEDS),
            *(BOARD.together(seed) for seed in SEEDS),
            *(random_play(others) for others in OTHERS),
            *(among(seed, others) for seed in SEEDS for others in OTHERS),
        ),
        read_snowdrift,
    ),
)
