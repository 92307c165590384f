"""How fast is it?"""

from collections.abc import Mapping
from typing import Any

from coplay.reproduce.experiment import MAIN, Experiment, Findings, Measurement
from coplay.reproduce.self_play import Rows

BENCH = Measurement("bench", "bench --no-pettingzoo")


def read_speed(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    made = [
        [
            row["what"],
            row["board"],
            row["counted"],
            f"{row['per_second']:,.0f}",
            f"{row['limit']:,.0f}" if row["limit"] else "",
            f"{row['per_second'] / row['limit']:.0%}" if row["limit"] else "",
        ]
        for row in outputs[BENCH.name]["rows"]
        if row["per_second"]
    ]
    training = next(row for row in made if row[0].startswith("PPO"))
    return Findings(
        f"PPO trains {training[3]} game steps per second on the {training[1]} board, "
        f"{training[5]} of what the bare networks allow.",
        [[f"PPO on {training[1]}: game steps per second in training", training[3]]],
        {
            MAIN: {
                "columns": ["what", "board", "counted", "per second", "limit", "of limit"],
                "rows": made,
            }
        },
    )


EXPERIMENTS = (
    Experiment(
        "speed",
        "Speed beside its limits",
        "How fast are playing, training and planning, beside what the machine allows?",
        "nothing is trained",
        6,
        (BENCH,),
        read_speed,
    ),
)
