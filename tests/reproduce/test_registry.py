"""All experiments: their commands are right, and what they print is read rightly."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coplay.cli.arguments import parse_only
from coplay.cli.main import run
from coplay.reproduce import adaptation, audits, parts, play, speed
from coplay.reproduce.experiment import MAIN, Experiment
from coplay.reproduce.registry import EXPERIMENTS
from coplay.reproduce.strangers import mean_cell
from coplay.reproduce.tables import as_text
from tools.docs.results import main_figures

ROWS = [{"step": step, "seed": 0, "team_mean": float(step)} for step in range(5)]


def seats(reward: float) -> list[dict[str, Any]]:
    return [{"reward": reward + seat, "steps": 4.0} for seat in range(4)]


def trained(reward: float, seeds: int) -> dict[str, Any]:
    """The summary of a run; team means are reward, reward + 1, … by seed."""
    scores = {"won": 0.5}
    of_seeds = [
        {"team_mean": reward + seed, "seats": seats(seed), "scores": scores}
        for seed in range(seeds)
    ]
    ran = {"steps": 1000, "parameters": 5000, "seconds": 2.5}
    return ran | {"seeds": of_seeds} if seeds > 1 else ran | of_seeds[0]


def audit(verdict: str) -> dict[str, Any]:
    """An audit of either kind."""
    curves = [[[9.0, seat]] * 4 for seat in range(4)]
    figures: dict[str, dict[str, Any]] = {
        "the importance ratio starts at 1": {"ratio_error": 2e-7},
        "parameters move": {"still": []},
        "fields of the configuration act": {"active": ["a", "b"], "inert": ["c"], "untried": []},
        "what is learned, seats rotated": {"difference": 1e-4, "allowed": 1e-3},
        "one learner": {"metric": "reward", "one_learner": curves, "p_value": 0.5},
        "self-play": {"metric": "reward", "self_play": curves, "p_value": 0.25},
    }
    checks = [{"name": name, "detail": "all", "figures": found} for name, found in figures.items()]
    return {"verdict": verdict, "checks": checks}


def printed(command: str) -> Any:
    """What a command might print."""
    if command.startswith("train"):
        words = command.split()
        many = "--seeds" in words
        return trained(1.0, int(words[words.index("--seeds") + 1]) if many else 1)
    if command.startswith("sweep"):
        names = ("smooth_weight", "align_weight")
        if command.startswith("sweep ppo"):
            names = ("discount", "entropy_weight")
        pairs = [(0.0, 0.0), (0.0, 0.5), (1.0, 0.0), (1.0, 0.5)]
        made = [
            {
                "setting": dict(zip(names, pair, strict=True)),
                "values": [1.0 + sum(pair), 2.0 + sum(pair)],
                "state": "finished",
            }
            for pair in pairs
        ]
        return {"trials": made, "best": 3, "confirmed": made[0]}
    if command.startswith("partners select"):
        return {"held-out": {"partners": ["rewards-0", "rewards-4", "diverse-1", "planners-0"]}}
    if "--partners" in command:
        companies = [
            {"against": f"packs/p@partner={number}", "normalised": score}
            for number, score in enumerate((0.0, 0.25, 0.5, 1.75))
        ]
        left_out, whole = ["packs/p@partner=0"], {"first_episode": 0.5}
        return {"summary": {"left_out": left_out, "all": whole}, "companies": companies}
    if command.startswith("adapt"):
        kept = {"score": 20.0, "interval": [19.0, 21.0], "curve": [1.0, 20.0, *[25.0] * 22]}
        first = None if "nh,nh" in command else 3
        return kept | {"normalised": 0.5, "episodes_to_first_90": first}
    if command.startswith("play --cross"):
        players = len(play.CROSSED)
        matrix = [[row + 0.1 * column for column in range(players)] for row in range(players)]
        return {"reward": matrix, "stderr": matrix}
    if command.startswith("play"):
        plan = {"reward": 152.0, "actions": [["cooperate", 49], ["defect", 1]]}
        policies = {"best_plan": [plan, None]}
        return {"team_mean": 1.0, "seats": seats(0.0), "policies": policies}
    if command.startswith("audit"):
        return audit("pass")
    if command.startswith("bench peers"):
        row = {"work": "PPO", "beside": "plain JAX", "counted": "steps", "ours": 3.0, "theirs": 2.0}
        return {"rows": [row | {"ratio": 1.5, "range": [1.2, 1.7]}] * len(speed.PAIRS)}
    if command.startswith("bench"):
        row = {"what": "PPO", "board": "4x4", "counted": "steps", "per_second": 50}
        row |= {"beside": "limit: the networks alone", "beside_per_second": 100}
        if "--jaxmarl" in command:
            return {"rows": [row | {"board": "stag-hunt"}, row | {"board": ""}]}
        none = {"per_second": None, "beside": None, "beside_per_second": None}
        return {"rows": [row, row | none]}
    return None


def findings(experiment: Experiment) -> Any:
    outputs = {step.name: printed(step.command) for step in experiment.steps}
    return experiment.read(outputs, lambda run: ROWS)


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda one: one.name)
def test_every_experiment_reads_what_its_commands_print(experiment: Experiment) -> None:
    found = findings(experiment)
    assert found.answer.endswith(".") and MAIN in found.tables and found.headlines
    for table in found.tables.values():
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    lines = as_text({"question": "", "answer": "", "tables": found.tables}).splitlines()
    result = {"headlines": found.headlines}
    for links in (True, False):
        lines += main_figures({experiment.name: result}, links).splitlines()
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda one: one.name)
def test_steps_have_names_of_their_own_and_runs_that_were_made_before(
    experiment: Experiment,
) -> None:
    names = [step.name for step in experiment.steps]
    assert len(set(names)) == len(names)
    made: set[str] = set()
    for step in experiment.steps:
        words = step.command.replace(",", " ").split()
        out = words[words.index("--out") + 1] if "--out" in words else ""
        needed = {word.split("@")[0] for word in words if word.startswith(("runs/", "packs/"))}
        assert needed - {out} <= made, f"{step.name} needs what no command before it makes"
        made.add(out)
        if words[:2] == ["partners", "select"]:
            made |= {f"{words[2]}/train", f"{words[2]}/held-out"}


def test_commands_parse() -> None:
    """One of all with the same options; those that need runs are parsed where pages show them."""
    kinds = {}
    for step in [step for one in EXPERIMENTS.values() for step in one.steps]:
        if " runs/" not in step.command.split("--out")[0]:
            names = [word for word in step.arguments if word.startswith("--")]
            kinds[(step.arguments[0], *names)] = step
    assert len(kinds) > 8
    for step in kinds.values():
        parse_only(run, step.arguments)


def test_adaptation_takes_the_scores_of_each_training_seed() -> None:
    found = findings(EXPERIMENTS["adaptation-stag-hunt"])
    label, hares, *_ = found.tables[MAIN]["rows"][0]
    assert label == "HOP" and hares["runs"] == [0.5, 0.5]
    assert found.tables["episodes"]["rows"][0][1:3] == ["never, never", "3, 3"]


def test_strangers_are_averaged_over_runs_and_companies_in_which_something_can_be_gained() -> None:
    found = findings(EXPERIMENTS["strangers"])
    label, mean, first, worst, half, most = found.tables[MAIN]["rows"][0]
    assert (label, mean["digits"]) == ("HOP", 2)
    assert mean["runs"] == pytest.approx([1.75 / 3] * 2)
    assert (first, worst, half, most) == ("0.50", "0.25 (rewards)", "33%", "67%")
    assert found.tables["families"]["columns"] == ["player", "rewards", "diverse", "planners"]
    assert [cell["value"] for cell in found.tables["families"]["rows"][0][1:]] == [0.25, 0.5, 1.0]


def test_an_interval_is_over_runs_and_over_companies_of_each_family() -> None:
    runs_differ = mean_cell(np.array([[0.0, 0.0], [1.0, 1.0]]), ["a", "a"])
    assert (runs_differ["low"], runs_differ["high"]) == (0.0, 1.0)
    families_differ = mean_cell(np.array([[0.0, 1.0], [0.0, 1.0]]), ["a", "b"])
    assert (families_differ["low"], families_differ["high"]) == (0.5, 0.5)
    companies_differ = mean_cell(np.array([[0.0, 1.0], [0.0, 1.0]]), ["a", "a"])
    assert (companies_differ["low"], companies_differ["high"]) == (0.0, 1.0)


def test_a_failed_audit_is_named() -> None:
    outputs = {audits.wiring(player).name: audit("pass") for player in audits.WIRED}
    assert audits.read_wiring(outputs, lambda run: []).answer.startswith("Yes")
    outputs["wiring-hop"] = audit("fail")
    found = audits.read_wiring(outputs, lambda run: [])
    assert found.answer == "No: wiring-hop failed." and found.headlines[0][1] == "4 of 5"


def test_seats_are_shown_at_the_end_of_learning() -> None:
    found = findings(EXPERIMENTS["seat-audit"])
    assert found.tables[MAIN]["rows"][0][3] == "0.00, 1.00, 2.00, 3.00 (p = 0.50)"


def test_meetings_name_their_players() -> None:
    step = adaptation.meeting("hop-plus", 1, "nh")
    assert step.command.startswith("adapt runs/hopp-s1 --against nh,nh,nh")


def test_parts_that_gain_lose_and_move_less_are_named() -> None:
    """HyperMAPPO gets more than MAPPO and moves less; without alpha it gets less; the rest gets the
    same as it."""
    task = parts.TASKS[0]
    shares = {"mappo": 1.0, "no-alpha": 2.0, "ids": -9.0} | dict.fromkeys(("separate", "kl"), 1.0)
    outputs = {f"{task.name}-{key}": trained(shares.get(key, 30.0), 5) for key in task.variants}

    def rows(run: str) -> list[dict[str, Any]]:
        kl = 0.02 if run.endswith("-mappo") else 0.01 if run.endswith("-hyper") else 0.03
        return [
            {"step": 1, "seed": seed, "policy_shift_kl/seat_0": kl + 1e-5 * seed}
            for seed in range(5)
        ]

    found = task.read(outputs, rows)
    assert found.answer.startswith(
        "Better than what it is compared with: recurrent MAPPO; recurrent MAPPO that is told "
        "action and reward; HyperMAPPO. Worse: MAPPO with numbers; alpha = 0."
    )
    assert found.answer.endswith("moves less than MAPPO's: HyperMAPPO.")
    row = next(row for row in found.tables[MAIN]["rows"] if row[0] == "alpha = 0")
    assert row[2:] == ["HyperMAPPO", "0.00 (0.00 to 0.00)", "5,000"]


def test_the_folder_of_results_holds_experiments() -> None:
    for path in (Path(__file__).parents[2] / "results").glob("*.json"):
        assert path.stem in EXPERIMENTS


def test_a_chosen_setting_is_reported_by_its_fresh_seeds() -> None:
    found = findings(EXPERIMENTS["ppo-settings"])
    assert "a discount of 1 with an entropy weight of 0.5: 1.50 (1.00 to 2.00)" in found.answer
    assert "worst is a discount of 0 with an entropy weight of 0: 1.50" in found.answer
    assert found.tables[MAIN]["rows"][1][2]["value"] == 3.0  # entropy 0.5, discount 1
    assert [row[2]["value"] for row in found.tables["fresh"]["rows"]] == [3.0, 1.5]
    assert found.headlines[0][1]["value"] == 1.5
