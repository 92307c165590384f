"""What do scripted players get, and who plays well with whom?"""

from collections.abc import Mapping
from typing import Any

from coplay.reproduce.experiment import MAIN, Experiment, Findings, Measurement
from coplay.reproduce.self_play import HOP, HOP_PLUS, PPO, Rows

LARGE = "--game.height 8 --game.width 8 "
TABLES = {
    "4-random": ("4x4", "random,random,random,random"),
    "4-ns": ("4x4", "ns,ns,ns,ns"),
    "4-nh": ("4x4", "nh,nh,nh,nh"),
    "4-half": ("4x4", "ns,ns,nh,nh"),
    "4-alone": ("4x4", "ns,nh,nh,nh"),
    "8-random": ("8x8", "random,random,random,random"),
    "8-ns": ("8x8", "ns,ns,ns,ns"),
    "8-nh": ("8x8", "nh,nh,nh,nh"),
}
"""Short name -> board and seating."""

CROSSED = {
    "PPO 0": "runs/ppo@seed=0",
    "PPO 1": "runs/ppo@seed=1",
    "HOP 0": "runs/hop-s0",
    "HOP+ 0": "runs/hopp-s0",
    "NS": "ns",
    "NH": "nh",
}
"""Label, with its training seed -> player."""


def match(name: str) -> Measurement:
    board, seating = TABLES[name]
    size = LARGE if board == "8x8" else ""
    return Measurement(
        f"play-{name}", f"play --game stag-hunt {size}--seating {seating} --episodes 20000"
    )


def read_scripted(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    made = []
    for name, (board, seating) in TABLES.items():
        seats = outputs[match(name).name]["seats"]
        made.append(
            [
                board,
                f"`{seating}`",
                ", ".join(f"{seat['reward']:.2f}" for seat in seats),
                ", ".join(f"{seat['steps']:.1f}" for seat in seats),
            ]
        )
    team = {name: outputs[match(name).name]["team_mean"] for name in TABLES}
    return Findings(
        f"On 4x4, four stag hunters get {team['4-ns']:.2f} each, four hare hunters "
        f"{team['4-nh']:.2f}, four random players {team['4-random']:.2f}; a stag hunter alone "
        f"among hare hunters gets {outputs[match('4-alone').name]['seats'][0]['reward']:.2f}.",
        [["4 scripted stag hunters on Stag Hunt: team mean", f"{team['4-ns']:.2f}"]],
        {
            MAIN: {
                "columns": ["board", "seating", "reward of each seat", "steps in the game"],
                "rows": made,
            }
        },
    )


CROSS = Measurement("cross", f"play --cross {' '.join(CROSSED.values())} --episodes 40")


def read_cross(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    result = outputs[CROSS.name]
    labels = list(CROSSED)
    rewards = dict(zip(labels, result["reward"], strict=True))
    made = [[label, *(f"{mean:.2f}" for mean in rewards[label])] for label in labels]
    largest = max(error for row in result["stderr"] for error in row)
    hares, other = labels.index("NH"), labels.index("PPO 1")
    return Findings(
        f"One HOP player among three PPO players of another run gets "
        f"{rewards['HOP 0'][other]:.2f} and one HOP+ player "
        f"{rewards['HOP+ 0'][other]:.2f}; among three hare hunters they get "
        f"{rewards['HOP 0'][hares]:.2f} and {rewards['HOP+ 0'][hares]:.2f}, and a PPO "
        f"player {rewards['PPO 0'][hares]:.2f}. The largest standard error of a cell is "
        f"{largest:.2f}.",
        [
            [
                f"{label}, seed 0, among 3 PPO of seed 1: reward",
                f"{rewards[f'{label} 0'][other]:.2f}",
            ]
            for label in ("HOP", "HOP+")
        ],
        {MAIN: {"columns": ["one player, among three", *labels], "rows": made}},
        {
            "kind": "matrix",
            "x": "three others",
            "y": "one player",
            "labels": labels,
            "values": result["reward"],
        },
    )


EXPERIMENTS = (
    Experiment(
        "scripted",
        "What scripted players get",
        "What do scripted players get in Stag Hunt?",
        "nothing is trained",
        2,
        tuple(match(name) for name in TABLES),
        read_scripted,
    ),
    Experiment(
        "cross-play",
        "Who plays well with whom",
        "How well do players of different runs and learners play with each other?",
        "training seed 0, and seed 1 of PPO",
        25,
        (PPO, HOP[0], HOP_PLUS[0], CROSS),
        read_cross,
    ),
)
