"""What does each part of HyperMAPPO bring?

Every variant differs from MAPPO or from HyperMAPPO in one part; all have the same seeds, game and
settings otherwise. A variant is compared with the one it differs from. The intervals of these
comparisons are so wide that all of a table hold together with 95 %.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coplay.evaluation.compare import late_means
from coplay.matches.statistics import improvement_interval, probability_of_improvement
from coplay.reproduce.experiment import (
    MAIN,
    Experiment,
    Findings,
    Measurement,
    over_runs,
)
from coplay.reproduce.self_play import Rows, seeds_of

WRONG = 0.05
"""Chance of any wrong interval among all comparisons of a table."""

MAPPO, HYPER = "MAPPO", "HyperMAPPO"

SHIFT = {
    "policy_shift_kl": "KL of an update",
    "policy_shift_others": "others moved by",
    "policy_shift_ess": "effective sample",
    "gradient_cosine": "cosine of gradients",
    "diversity": "diversity",
}
"""Metric of how policies move under each other -> its column."""


@dataclass(frozen=True)
class Variant:
    """label: its name in tables. fields: what is set beside the task's. base: label of the variant
    that it is compared with. before: the variant that it begins with."""

    label: str
    fields: str = ""
    base: str = HYPER
    before: str = ""


GRU = "--memory.kind gru --memory.units {units}"
CONTROLS = {
    "mappo": Variant(MAPPO, base=""),
    "ids": Variant("MAPPO with numbers", "--parameters shared+id", MAPPO),
    "separate": Variant("MAPPO, separate networks", "--parameters separate", MAPPO),
    "kl": Variant("MAPPO held to KL", "--align-weight 0.05", MAPPO),
    "gru": Variant("recurrent MAPPO", GRU, MAPPO),
    "told": Variant(
        "recurrent MAPPO that is told action and reward", f"{GRU} --memory.told", MAPPO
    ),
}
"""Short name -> MAPPO with another part."""

TEAM = "--hypernetwork.context team"
PARTS = {
    "hyper": Variant(HYPER, base=MAPPO),
    "input": Variant("context as an input", "--hypernetwork.use input"),
    "no-alpha": Variant("alpha = 0", "--smooth-weight 0"),
    "no-beta": Variant("beta = 0", "--align-weight 0"),
    "no-both": Variant("alpha = beta = 0", "--smooth-weight 0 --align-weight 0"),
    "half": Variant("rho = 1/2", "--hypernetwork.accumulation 0.5"),
    "sum": Variant("rho = 1", "--hypernetwork.accumulation 1"),
    "no-ids": Variant("no numbers", "--hypernetwork.no-ids"),
    "team": Variant("team by attention", TEAM),
    "transformer": Variant(
        "team by a Transformer layer, 4 heads",
        f"{TEAM} --hypernetwork.attention transformer --hypernetwork.attention-heads 4",
    ),
    "one": Variant("team, one increment for all", f"{TEAM} --hypernetwork.increments team"),
    "slow": Variant("slow context", "--hypernetwork.context slow"),
    "no-history": Variant("no history", "--hypernetwork.memory window --hypernetwork.window 1"),
    "three": Variant("last 3 steps", "--hypernetwork.memory window"),
    "lstm": Variant("LSTM", "--hypernetwork.memory lstm"),
    "policies": Variant(
        "history fused by policies", "--hypernetwork.memory policies --hypernetwork.window 16"
    ),
    "all": Variant("increments of all layers", "--hypernetwork.layers all"),
    "wide": Variant("width and units 64", "--hypernetwork.width 64 --hypernetwork.units 64"),
    "anchor": Variant("anchored to the slow copy", "--anchor-weight 0.1"),
    "target": Variant("the slow copy acts", "--hypernetwork.acting target"),
    "perturbed": Variant("5 % of actions by chance", "--perturbation 0.05"),
    "blind-input": Variant(
        "context as an input, no numbers", "--hypernetwork.use input --hypernetwork.no-ids"
    ),
    "alone": Variant("one agent", "--game.players 1", ""),
    "pretrained": Variant("pre-trained with one agent", before="alone"),
}
"""Short name -> HyperMAPPO with one part replaced or removed."""


@dataclass(frozen=True)
class PartsTask:
    """A game and its settings.

    common: options of all; hyper: of HyperMAPPO's runs besides. best: the reward per episode whose
    score is 1; None: the score is the share of battles won. minutes: of all variants on two cores.
    units: width of MAPPO's memory. seeds: how many; `common` says so, too.
    """

    name: str
    title: str
    common: str
    hyper: str
    best: float | None
    minutes: float
    variants: tuple[str, ...]
    units: int = 32
    seeds: int = 5

    def step(self, key: str) -> Measurement:
        """The training of a variant."""
        variant = (CONTROLS | PARTS)[key]
        player = "mappo" if key in CONTROLS else "hyper-mappo"
        hyper = "" if key in CONTROLS else self.hyper
        warm = f"--warm-start runs/{self.name}-{variant.before}" if variant.before else ""
        fields = variant.fields.format(units=self.units)
        line = f"train {player} {self.common} {hyper} {fields} {warm}"
        name = f"{self.name}-{key}"
        return Measurement(name, f"{' '.join(line.split())} --out runs/{name}")

    def experiment(self) -> Experiment:
        return Experiment(
            f"hyper-parts-{self.name}",
            self.title,
            f"What does each part of HyperMAPPO bring on {self.name}?",
            f"training seeds 0 to {self.seeds - 1}",
            self.minutes,
            tuple(self.step(key) for key in self.variants),
            self.read,
        )

    def score(self, seed: Mapping[str, Any]) -> float:
        """That of a seed's final evaluation."""
        if self.best is None:
            return float(seed["scores"]["won"])
        return float(seed["team_mean"]) / self.best

    def read(self, outputs: Mapping[str, Any], rows: Rows) -> Findings:
        """A row for each variant."""
        known = {key: (CONTROLS | PARTS)[key] for key in self.variants if key != "alone"}
        shares = {
            one.label: [self.score(x) for x in seeds_of(outputs[f"{self.name}-{key}"])]
            for key, one in known.items()
        }
        sizes = {
            one.label: outputs[f"{self.name}-{key}"]["parameters"] for key, one in known.items()
        }
        level = 1 - WRONG / max(1, sum(bool(one.base) for one in known.values()))
        found = {
            one.label: Comparison(one.base, shares[one.label], shares[one.base], level)
            for one in known.values()
            if one.base
        }
        moves = {one.label: shifts(rows(f"runs/{self.name}-{key}")) for key, one in known.items()}
        made = [
            [
                one.label,
                over_runs(shares[one.label]),
                one.base,
                found[one.label].words if one.base else "",
                f"{sizes[one.label]:,}",
            ]
            for one in known.values()
        ]
        columns = ["variant", "score", "compared with", "probability of a gain", "parameters"]
        return Findings(
            answer(found, moves, shares),
            [
                [f"{label} on `{self.name}`: score", over_runs(shares[label])]
                for label in (MAPPO, HYPER)
            ],
            {
                MAIN: {"columns": columns, "rows": made},
                "moved": {
                    "columns": ["variant", *SHIFT.values()],
                    "rows": [
                        [label, *(moves[label].get(name, "") for name in SHIFT)] for label in moves
                    ],
                },
            },
        )


@dataclass(frozen=True)
class Comparison:
    """Seeds of a variant beside those of the one that it differs from."""

    base: str
    mine: list[float]
    theirs: list[float]
    level: float

    @property
    def ends(self) -> tuple[float, float]:
        """The interval of the probability that a seed of the variant is better."""
        return improvement_interval([self.mine], [self.theirs], self.level)

    @property
    def words(self) -> str:
        low, high = self.ends
        chance = probability_of_improvement([self.mine], [self.theirs])
        return f"{chance:.2f} ({low:.2f} to {high:.2f})"


def shifts(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Metric of `SHIFT` -> its cell over the seeds of a run, late in learning."""
    by_seed = {row.get("seed", 0): [] for row in rows}  # type: ignore[var-annotated]
    for row in rows:
        by_seed[row.get("seed", 0)].append(row)
    late = [late_means(of_seed) for of_seed in by_seed.values()]
    return {
        name: over_runs([one[name] for one in late], 4)
        for name in SHIFT
        if late and all(name in one for one in late)
    }


def answer(
    found: Mapping[str, Comparison],
    moves: Mapping[str, Mapping[str, Any]],
    shares: Mapping[str, list[float]],
) -> str:
    """Which variants gain and lose, and which of HyperMAPPO's move less than MAPPO at no less."""
    gain = [label for label, one in found.items() if one.ends[0] > 0.5]
    lose = [label for label, one in found.items() if one.ends[1] < 0.5]
    kl = "policy_shift_kl"
    calm = [
        label
        for label, one in found.items()
        if HYPER in (label, one.base)
        and min(shares[label]) >= max(shares[MAPPO])
        and kl in moves[label]
        and kl in moves[MAPPO]
        and moves[label][kl].get("high", 1.0) < moves[MAPPO][kl].get("low", 0.0)
    ]
    return (
        f"Better than what it is compared with: {_listed(gain)}. Worse: {_listed(lose)}. The other "
        "intervals hold a half. Of HyperMAPPO's variants, with a score in no seed below MAPPO's "
        f"and policies that an update moves less than MAPPO's: {_listed(calm)}."
    )


def _listed(labels: list[str]) -> str:
    return "; ".join(labels) or "none"  # labels may have commas


SMALL = (
    "--rollout 16 --copies 64 --episodes 1000 --seeds 5 --network.hidden 32 "
    "--memory.chunk-length 16 --epochs 4 --optimiser.learning-rate 1e-3 "
    "--critic-learning-rate 1e-3"
)
SMALL_HYPER = "--hypernetwork.learning-rate 1e-3"
EVERY = tuple(key for key in (*CONTROLS, *PARTS) if key != "blind-input")
SOME = (
    *("mappo", "ids", "separate", "gru", "told"),
    *("hyper", "input", "no-ids", "no-both", "team", "wide"),
)
"""What shows the most, where a task costs more."""

HIDDEN_TARGET = PartsTask(
    "hidden-target",
    "Parts of HyperMAPPO where only the past tells",
    f"--game hidden-target --steps 50000 {SMALL}",
    SMALL_HYPER,
    16.0,
    90,
    EVERY,
)
BATTLE = "--game.dead stay --episodes 1000 --no-pictures"
SIX = ("mappo", "ids", "gru", "hyper", "input", "no-both")
TASKS = (
    HIDDEN_TARGET,
    *(
        PartsTask(
            f"dispersion-{players}",
            f"Parts of HyperMAPPO where {players} agents must part",
            f"--game dispersion --game.players {players} --game.nearest 3 --steps {steps} {SMALL}",
            SMALL_HYPER,
            1.0,
            minutes,
            variants,
        )
        for players, steps, minutes, variants in (
            (4, 200_000, 60, tuple(key for key in EVERY if key not in ("alone", "pretrained"))),
            (16, 100_000, 60, SOME),
        )
    ),
    PartsTask(
        "simple-spread",
        "Parts of HyperMAPPO on simple_spread",
        f"--game jaxmarl:MPE_simple_spread_v3 --steps 200000 {SMALL}",
        SMALL_HYPER,
        1.0,
        60,
        SOME,
    ),
    PartsTask(
        "3m",
        "Parts of HyperMAPPO in SMAX's battle 3m",
        f"--game smax:3m {BATTLE} --steps 2000000 --seeds 5",
        "",
        None,
        60,
        SIX,
        units=64,
    ),
    PartsTask(
        "3s5z",
        "HyperMAPPO in SMAX's battle 3s5z",
        f"--game smax:3s5z {BATTLE} --steps 2000000 --seeds 3",
        "",
        None,
        40,
        ("mappo", "hyper"),
        seeds=3,
    ),
    PartsTask(
        "smaclite-2s3z",
        "HyperMAPPO in SMAClite's battle 2s3z",
        "--game smaclite:2s3z --copies 8 --rollout 200 --steps 300000 --episodes 320 --no-pictures",
        "",
        None,
        120,
        ("mappo", "hyper"),
        seeds=3,
    ),
)

ZERO_SHOT = {
    "mappo": MAPPO,
    "no-ids": f"{HYPER}, no numbers",
    "blind-input": "the context as an input, no numbers",
}
"""Variants whose agents are alike but for what they saw."""
SIZES, SEEDS = (2, 3, 4, 6, 8), 3
"""Sizes of teams; training seeds that play."""

FOUR = next(task for task in TASKS if task.name == "dispersion-4")


def other_size(key: str, seed: int, players: int) -> Measurement:
    """What a team of another size gets, of agents trained in fours."""
    run = f"runs/{FOUR.name}-{key}"
    seating = ",".join(f"{run}@seat={seat % 4}@seed={seed}" for seat in range(players))
    return Measurement(
        f"{key}-{seed}-{players}",
        f"play --game dispersion --game.players {players} --game.nearest 3 --seating {seating} "
        "--episodes 1000",
    )


def read_sizes(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    labels = list(ZERO_SHOT.values())
    made: list[list[Any]] = [
        [
            str(players),
            *(
                over_runs([outputs[f"{key}-{n}-{players}"]["team_mean"] for n in range(SEEDS)])
                for key in ZERO_SHOT
            ),
        ]
        for players in SIZES
    ]
    largest = dict(zip(labels, made[-1][1:], strict=True))
    eaten = ", ".join(f"{label} {cell['value']:.3f}" for label, cell in largest.items())
    return Findings(
        f"Trained with 4 agents, teams of {SIZES[-1]} eat this share of their food: {eaten}.",
        [
            [f"{label}: food of {SIZES[-1]}, trained in fours", cell]
            for label, cell in largest.items()
        ],
        {MAIN: {"columns": ["agents", *labels], "rows": made}},
    )


MAP = Measurement(
    "hyper-map",
    f"sweep hyper-mappo --game hidden-target --steps 50000 {SMALL} {SMALL_HYPER} "
    "--vary smooth-weight=0,0.01,0.1,1 align-weight=0,0.05,0.5 --confirm 0 --on local:1 "
    "--out runs/hyper-map".replace("--seeds 5", "--seeds 3"),
)


def read_map(outputs: Mapping[str, Any], rows: Rows) -> Findings:
    trials = outputs[MAP.name]["trials"]
    cells = {
        (trial["setting"]["smooth_weight"], trial["setting"]["align_weight"]): [
            value / 16 for value in trial["values"]
        ]
        for trial in trials
        if trial["values"]
    }
    alphas, betas = (sorted({pair[index] for pair in cells}) for index in (0, 1))
    made = [
        [f"alpha = {alpha:g}", *(over_runs(cells[alpha, beta]) for beta in betas)]
        for alpha in alphas
    ]
    means = {pair: sum(values) / len(values) for pair, values in cells.items()}
    best, worst = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    return Findings(
        f"Most is got with alpha = {best[0]:g} and beta = {best[1]:g}: {means[best]:.3f} of the "
        f"reward; least with alpha = {worst[0]:g} and beta = {worst[1]:g}: {means[worst]:.3f}.",
        [
            [
                "HyperMAPPO, best of the map of alpha and beta: share of the reward",
                f"{means[best]:.3f}",
            ]
        ],
        {MAIN: {"columns": ["", *(f"beta = {beta:g}" for beta in betas)], "rows": made}},
    )


EXPERIMENTS = (
    *(task.experiment() for task in TASKS),
    Experiment(
        "hyper-map",
        "Smoothness and alignment of HyperMAPPO",
        "Which weights of smoothness (alpha) and alignment (beta) are best on hidden-target?",
        "training seeds 0 to 2",
        45,
        (MAP,),
        read_map,
    ),
    Experiment(
        "hyper-sizes",
        "Teams of other sizes than in training",
        "Do agents that learned in fours play in teams of other sizes?",
        "training seeds 0 to 2 of 5",
        30,
        (
            *(FOUR.step(key) for key in ZERO_SHOT),
            *(
                other_size(key, seed, n)
                for key in ZERO_SHOT
                for seed in range(SEEDS)
                for n in SIZES
            ),
        ),
        read_sizes,
    ),
)
