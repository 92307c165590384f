"""How fast is it?"""

from collections.abc import Mapping
from typing import Any

from coplay.bench.measure import ratio_words
from coplay.reproduce.experiment import MAIN, Experiment, Findings, Measurement
from coplay.reproduce.self_play import Rows

BENCH = Measurement("bench", "bench --boards 4 --repeats 3 --no-pettingzoo")
PEERS = Measurement("peers", "bench peers --repeats 3")
PLAIN, MIRROR, MCTX = "a plain script in JAX", "JaxMARL's script, mirrored", "a plain mctx program"
PAIRS = (
    ("PPO on 4x4", PLAIN),
    ("PPO on 8x8", PLAIN),
    ("PPO on simple_spread", MIRROR),
    ("MAPPO-GRU on simple_spread", MIRROR),
    ("MAPPO-GRU on SMAX 3m", MIRROR),
    ("search, 256 trees of 32", MCTX),
    ("search, 256 trees of 200", MCTX),
)
"""What each row of `coplay bench peers` is, in a few words, and what stands beside it."""

STEPPING = Measurement(
    "stepping",
    "bench --boards --games stag-hunt own --jaxmarl jaxmarl:coin_game --repeats 3 --no-pettingzoo "
    "--no-start-up",
)


def read_stepping(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    found = outputs[STEPPING.name]["rows"]
    own = [row for row in found if row["board"]]
    others = [row for row in found if not row["board"]]
    shares = [_ratio(row) for row in own]
    times = _ratio(others[-1])
    return Findings(
        f"With the views of all seats built, games step at {min(shares):.0%} to {max(shares):.0%} "
        f"of the speed of their rules alone. The coin game steps {times:.2f} times as fast as "
        "JaxMARL's.",
        [["coin game, steps per second: times as fast as JaxMARL's", f"{times:.2f}"]],
        {
            MAIN: {
                "columns": ["game", "steps per second", "rules alone", "share"],
                "rows": [[f"`{row['board']}`", *_beside(row), f"{_ratio(row):.0%}"] for row in own],
            },
            "jaxmarl": {
                "columns": ["what", "steps per second", "JaxMARL's own", "times as fast"],
                "rows": [[row["what"], *_beside(row), f"{_ratio(row):.2f}"] for row in others],
            },
        },
    )


def _speed(row: Mapping[str, Any]) -> str:
    return f"{row['per_second']:,.0f}"


def _beside(row: Mapping[str, Any]) -> list[str]:
    return [_speed(row), f"{row['beside_per_second']:,.0f}"]


def _ratio(row: Mapping[str, Any]) -> float:
    return float(row["per_second"] / row["beside_per_second"])


def read_speed(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    made = [
        [
            row["what"],
            row["board"],
            row["counted"],
            f"{row['per_second']:,.0f}",
            row["beside"] or "",
            f"{row['beside_per_second']:,.0f}" if row["beside"] else "",
            f"{row['per_second'] / row['beside_per_second']:.0%}" if row["beside"] else "",
        ]
        for row in outputs[BENCH.name]["rows"]
        if row["per_second"]
    ]
    beside = outputs[PEERS.name]["rows"]
    training = next(row for row in made if row[0].startswith("PPO"))
    times = f"{beside[0]['ratio']:.2f}"
    return Findings(
        f"PPO trains {training[3]} game steps per second on the {training[1]} board, "
        f"{training[6]} of what its networks alone allow, and {times} times as many as a plain "
        "script in JAX.",
        [
            [f"PPO on {training[1]}: game steps per second in training", training[3]],
            *(
                [f"{what}: times as fast as {other}", ratio_words(row)]
                for (what, other), row in zip(PAIRS, beside, strict=True)
            ),
        ],
        {
            MAIN: {
                "columns": ["what", "board", "counted", "per second", "beside", "its", "share"],
                "rows": made,
            },
            "peers": {
                "columns": ["work", "beside", "counted", "ours", "theirs", "times as fast"],
                "rows": [
                    [
                        row["work"],
                        row["beside"],
                        row["counted"],
                        f"{row['ours']:,.0f}",
                        f"{row['theirs']:,.0f}",
                        ratio_words(row),
                    ]
                    for row in beside
                ],
            },
        },
    )


EXPERIMENTS = (
    Experiment(
        "speed",
        "Speed beside its limits and beside others",
        "How fast are playing, training and planning, beside what the machine allows and beside "
        "others' programs?",
        "nothing is trained",
        15,
        (BENCH, PEERS),
        read_speed,
    ),
    Experiment(
        "stepping",
        "Stepping speed of all games",
        "How fast is each game, beside its rules alone and beside JaxMARL's?",
        "nothing is trained",
        5,
        (STEPPING,),
        read_stepping,
    ),
)
