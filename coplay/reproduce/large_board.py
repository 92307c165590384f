"""Does HOP adapt on a large board, where prey is far away?"""

from collections.abc import Mapping
from typing import Any

from coplay.reproduce.boards import SEEDS, Board
from coplay.reproduce.experiment import MAIN, Experiment, Findings, Measurement, over_runs, words
from coplay.reproduce.self_play import BEST, Rows

BOARD = Board("large", "--game stag-hunt --game.height 8 --game.width 8")
SETS = {
    "nh": ("nh,nh,nh", "3 hare hunters"),
    "mixed": ("ns,nh,random", "a stag hunter, a hare hunter, a random player"),
}
"""Short name -> the co-players, and what they are called in tables."""


def among(seed: int, co_players: str) -> Measurement:
    return BOARD.among(seed, co_players, SETS[co_players][0], "--best.seeds 1")


def read_large(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    team = over_runs([outputs[BOARD.together(seed).name]["team_mean"] for seed in SEEDS], 2)
    scores = {
        name: over_runs([outputs[among(seed, name).name]["normalised"] for seed in SEEDS], 2)
        for name in SETS
    }
    return Findings(
        f"Four HOP players get {words(team)} of at most {BEST:g}. Among three hare hunters HOP "
        f"gets {words(scores['nh'])}, in mixed company {words(scores['mixed'])}, where random play "
        "is 0 and a best response is 1.",
        [
            ["4 HOP on 8x8 Stag Hunt: team mean, at most 3", team],
            ["HOP on 8x8 Stag Hunt, among 3 hare hunters: score", scores["nh"]],
        ],
        {
            MAIN: {
                "columns": ["HOP on 8x8", "figure", "best"],
                "rows": [
                    ["four of it: team mean", team, f"{BEST:g}"],
                    *(
                        [f"among {title}: score", scores[name], "1"]
                        for name, (_, title) in SETS.items()
                    ),
                ],
            }
        },
    )


EXPERIMENTS = (
    Experiment(
        "hop-large-board",
        "HOP on the large board",
        "Does HOP cooperate and adapt on the 8x8 board?",
        f"training seeds {SEEDS[0]} and {SEEDS[1]}",
        20,
        (
            *(BOARD.trained(seed) for seed in SEEDS),
            *(BOARD.together(seed) for seed in SEEDS),
            *(among(seed, name) for name in SETS for seed in SEEDS),
        ),
        read_large,
    ),
)
