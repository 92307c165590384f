"""Is every seat treated alike, and does every part of a learner act?"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from coplay.reproduce.experiment import MAIN, Experiment, Findings, Measurement
from coplay.reproduce.self_play import Rows

WIRED = ("ppo", "mappo", "hyper-mappo", "hop", "hop-plus")

SEATED = {
    "ppo": "--player ppo --steps 50000 --seeds 4 --episodes 100000",
    "mappo": "--player mappo --steps 50000 --seeds 4 --episodes 100000",
    "hyper-mappo": "--player hyper-mappo --steps 50000 --seeds 4 --episodes 100000",
}
"""Short name -> options of the seat audit. All of them look at the beginning of learning."""


def wiring(player: str) -> Measurement:
    return Measurement(
        f"wiring-{player}",
        f"audit wiring --player {player} --game stag-hunt --out runs/wiring-{player}",
    )


def seats(name: str) -> Measurement:
    return Measurement(
        f"seats-{name}", f"audit seats --game stag-hunt {SEATED[name]} --out runs/seats-{name}"
    )


def found(audit: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The check of an audit whose name contains these words."""
    return next(check for check in audit["checks"] if name in check["name"])


def passes(outputs: Mapping[str, Any]) -> str:
    """How many audits passed, in figures."""
    passed = sum(audit["verdict"] == "pass" for audit in outputs.values())
    return f"{passed} of {len(outputs)}"


def verdicts(outputs: Mapping[str, Any]) -> str:
    """Whether all audits passed, or which failed."""
    failed = [name for name, audit in outputs.items() if audit["verdict"] != "pass"]
    return (
        f"No: {', '.join(failed)} failed." if failed else "Yes: every check of every audit passes."
    )


def read_wiring(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    made = []
    for player in WIRED:
        audit = outputs[wiring(player).name]
        ratio = found(audit, "ratio")["figures"].get("ratio_error")
        fields = found(audit, "fields")["figures"]
        every = sum(len(fields[part]) for part in ("active", "inert", "untried"))
        made.append(
            [
                f"`{player}`",
                audit["verdict"],
                "none" if ratio is None else f"{ratio:.1e}",
                found(audit, "parameters move")["detail"],
                f"{len(fields['active'])} of {every}",
            ]
        )
    columns = ["learner", "verdict", "distance of the ratio from 1"]
    columns += ["arrays of parameters", "fields that act here"]
    return Findings(
        verdicts(outputs),
        [["wiring audits of learners that pass", passes(outputs)]],
        {MAIN: {"columns": columns, "rows": made}},
    )


def last_window(check: Mapping[str, Any], kind: str) -> str:
    """The seats' means over seeds in the last window, and the p-value of the test."""
    means = np.asarray(check["figures"][kind])[..., -1].mean(axis=1)
    words = ", ".join(f"{mean:.2f}" for mean in means)
    return f"{words} (p = {check['figures']['p_value']:.2f})"


def read_seats(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    made = []
    for name in SEATED:
        audit = outputs[seats(name).name]
        learned = found(audit, "what is learned")["figures"]
        checks = {
            kind: next(
                check
                for check in audit["checks"]
                if kind in check["figures"] and check["figures"]["metric"] == "reward"
            )
            for kind in ("one_learner", "self_play")
        }
        made.append(
            [
                name,
                audit["verdict"],
                f"{learned['difference']:.1e} (allowed {learned['allowed']:.0e})",
                *(last_window(check, kind) for kind, check in checks.items()),
            ]
        )
    columns = ["learner", "verdict", "change if seats are renumbered"]
    columns += ["one learner in seats 0 to 3 among NS", "self-play, seats 0 to 3"]
    return Findings(
        verdicts(outputs),
        [["seat audits of learners that pass", passes(outputs)]],
        {MAIN: {"columns": columns, "rows": made}},
    )


EXPERIMENTS = (
    Experiment(
        "wiring-audit",
        "Every declared part acts",
        "Does every declared part of each learner act?",
        "training seed 0",
        8,
        tuple(wiring(player) for player in WIRED),
        read_wiring,
    ),
    Experiment(
        "seat-audit",
        "Every seat is treated alike",
        "Does each learner treat every seat of Stag Hunt alike?",
        "training seeds 0 to 3",
        15,
        tuple(seats(name) for name in SEATED),
        read_seats,
    ),
)
