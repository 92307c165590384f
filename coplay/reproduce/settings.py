"""Which settings of a learner are good? A sweep; what it chooses is run again on fresh seeds."""

from collections.abc import Mapping
from typing import Any

from coplay.reproduce.experiment import MAIN, Experiment, Findings, Measurement, over_runs, words
from coplay.reproduce.self_play import BEST, Rows

PPO_SWEEP = Measurement(
    "ppo-settings",
    "sweep ppo --game stag-hunt --game.height 8 --game.width 8 --parameters shared "
    "--vary discount=0.8,0.9,0.95,0.99 entropy-weight=0,0.01,0.05 --seeds 3 --steps 600000 "
    "--episodes 500 --confirm 8 --on local:2 --out runs/ppo-settings",
)


def read_ppo_settings(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    """A row for each entropy weight, a column for each discount; the chosen setting anew."""
    sweep = outputs[PPO_SWEEP.name]
    cells = {
        (trial["setting"]["entropy_weight"], trial["setting"]["discount"]): over_runs(
            trial["values"], digits=2
        )
        for trial in sweep["trials"]
        if trial["state"] == "finished"
    }
    weights, discounts = (sorted({pair[index] for pair in cells}) for index in (0, 1))
    chosen = sweep["trials"][sweep["best"]]
    entropy, discount = chosen["setting"]["entropy_weight"], chosen["setting"]["discount"]
    fresh = over_runs(sweep["confirmed"]["values"], digits=2)
    least = min(cells, key=lambda pair: cells[pair]["value"])
    return Findings(
        f"The best of {len(cells)} settings is a discount of {discount:g} with an entropy weight "
        f"of {entropy:g}: {words(fresh)} of at most {BEST:g} with {len(fresh['runs'])} fresh "
        f"seeds. The worst is a discount of {least[1]:g} with an entropy weight of {least[0]:g}: "
        f"{words(cells[least])}.",
        [[f"4 PPO on 8x8 Stag Hunt, the best setting: team mean, at most {BEST:g}", fresh]],
        {
            MAIN: {
                "columns": ["", *(f"discount {one:g}" for one in discounts)],
                "rows": [
                    [f"entropy weight {weight:g}", *(cells[weight, one] for one in discounts)]
                    for weight in weights
                ],
            },
            "fresh": {
                "columns": ["the chosen setting", "seeds", "team mean"],
                "rows": [
                    [name, str(len(cell["runs"])), cell]
                    for name, cell in (
                        ("as it was chosen", cells[entropy, discount]),
                        ("with fresh seeds", fresh),
                    )
                ],
            },
        },
        {"kind": "dots", "y": "team mean per episode", "references": {"best possible": BEST}},
    )


EXPERIMENTS = (
    Experiment(
        "ppo-settings",
        "Discount and entropy weight of PPO",
        "Which discount and which entropy weight let PPO hunt the stag on the 8x8 board?",
        "training seeds 0 to 2, fresh ones 3 to 10",
        8,
        (PPO_SWEEP,),
        read_ppo_settings,
    ),
)
