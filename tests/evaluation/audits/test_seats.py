"""The seat audit passes what is fair and names the stage of what is not."""

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coplay import UserError
from coplay.algorithms.hop.config import HOPConfig
from coplay.algorithms.hop.learner import HOP
from coplay.algorithms.hop_plus.config import HopPlusConfig
from coplay.algorithms.hop_plus.learner import HopPlus
from coplay.algorithms.mappo.config import HyperMAPPOConfig
from coplay.algorithms.mappo.hyper import HyperMAPPO
from coplay.algorithms.ppo.config import PPOConfig
from coplay.algorithms.ppo.learner import PPO
from coplay.algorithms.registry import LEARNERS
from coplay.cli import main as cli
from coplay.core.config import with_fields
from coplay.core.trajectory import Trajectory
from coplay.evaluation.audits import seats
from coplay.evaluation.audits.checks import Audit, Check
from coplay.evaluation.audits.seat_fairness import compare_seats, fairness_checks
from coplay.evaluation.audits.seat_learning import fewest_seeds
from coplay.evaluation.audits.seat_rotation import (
    Learned,
    _changes,
    _drift,
    _largest,
    _update_check,
    difference,
    game_checks,
    learner_checks,
)
from coplay.evaluation.audits.seats import STAGES, audit_seats
from coplay.games.registry import GAMES
from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.nn.networks import view_shape
from coplay.training.config import RunConfig, TrainConfig
from tests.evaluation.audits import planted

SMALL = StagHuntConfig(height=3, width=3, players=3, hares=2, horizon=7)
TINY = {"network.hidden": (4,), "epochs": 1, "minibatches": 2}


def audited(kind: Any, config: object, game: StagHunt | None = None) -> Audit:
    """The exact checks of a learner."""
    game = game or StagHunt(SMALL)
    seats = tuple(range(game.seats))
    learner = kind(
        config=config, shape=view_shape(game), game_seats=len(seats), seats=seats, active=seats
    )
    checks = learner_checks(game, learner, copies=8, steps=10, seed=0)
    return Audit("test", STAGES, tuple(checks))


# --- the game -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "stage"),
    [
        pytest.param(StagHunt, None, marks=pytest.mark.slow),
        (planted.RewardToSeat0, "reward bookkeeping"),
        (planted.ActionsOffByOne, "ego view"),
        pytest.param(planted.MovesFirst, "game", marks=pytest.mark.slow),
        # Its rules are right: only the worth of the seats is not.
        pytest.param(planted.PoolOfLayouts, None, marks=pytest.mark.slow),
    ],
)
def test_faults_of_the_game_are_found_exactly(kind: type, stage: str | None) -> None:
    checks = game_checks(kind(replace(SMALL, players=4)), seed=0)
    fault = Audit("test", STAGES, tuple(checks)).first_fault
    assert (fault and fault.stage) == stage


@pytest.mark.slow
def test_a_pool_of_layouts_with_fixed_seats_is_found() -> None:
    config = StagHuntConfig(height=3, width=3)

    def worth(kind: type) -> Check:
        """Of the second player, which is ns."""
        _, second = islice(fairness_checks(kind(config), 0.05, 20_000, 0, lambda text: None), 2)
        return second

    assert worth(StagHunt).passed
    found = worth(planted.PoolOfLayouts)
    assert not found.passed and found.stage == "game" and "initial states" in found.detail


def rewards(rng: np.random.Generator, count: int, favour: float = 0.0) -> np.ndarray:
    """Like those of a stag hunt: mostly nothing, seldom much, shared luck. [episode, seat]"""
    uniform = rng.random((count, 1)) < 0.5
    mine = rng.choice([0.0, 1.0, 5.0], p=[0.4, 0.4, 0.2], size=(count, 4))
    return (mine + uniform) * np.array([1 + favour, 1, 1, 1])


def test_no_false_alarm_in_a_thousand_audits_and_no_miss_of_two_percent() -> None:
    rng = np.random.default_rng(0)
    limit = 4.9
    fair = [
        compare_seats(lambda _: rewards(rng, 4000), 4, 0.5, 4000, comparisons=12)
        for _ in range(1000)
    ]
    assert max(np.abs(result.z).max() for result in fair) < limit
    for _ in range(20):
        found = compare_seats(lambda _: rewards(rng, 65536, 0.02), 4, 0.02, 10**7, comparisons=12)
        assert np.abs(found.z).max() > limit
        assert found.detectable <= 0.02
        assert abs(found.advantage[0] - 0.02) < 0.01


def test_the_worth_of_seats_agrees_with_numpy() -> None:
    drawn = rewards(np.random.default_rng(1), 5000)
    result = compare_seats(lambda _: drawn, 4, 0.5, 5000, comparisons=4)
    apart = drawn - drawn.mean(axis=1, keepdims=True)
    stderr = apart.std(axis=0, ddof=1) / np.sqrt(5000)
    np.testing.assert_allclose(result.z, apart.mean(axis=0) / stderr, rtol=1e-6)
    np.testing.assert_allclose(result.mean, drawn.mean(axis=0))
    assert result.episodes == 5000


# --- the learner --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    ["separate", *(pytest.param(p, marks=pytest.mark.slow) for p in ("shared", "shared+id"))],
)
def test_ppo_treats_seats_alike(parameters: str) -> None:
    audit = audited(PPO, with_fields(PPOConfig(parameters=parameters), TINY))
    assert audit.passed, audit.words
    assert {check.stage for check in audit.checks} >= {"batch", "advantages", "loss", "update"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "stage"), [(HyperMAPPO, None), (planted.HalfTeamAdvantage, "advantages")]
)
def test_mappo_shows_its_stages(kind: type, stage: str | None) -> None:
    hyper = {"context": "team", "latent": 3, "width": 5, "units": 5}
    sizes = {"hypernetwork": hyper, "memory.chunk_length": 5, "network.hidden": (4,)}
    config = with_fields(HyperMAPPOConfig(epochs=1), sizes)
    audit = audited(kind, config)
    assert (audit.first_fault and audit.first_fault.stage) == stage, audit.words
    assert {check.stage for check in audit.checks} >= {"batch", "advantages", "loss", "update"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "stage", "words"),
    [
        (planted.Reinforce, None, ""),
        (planted.FedSeat0, "batch", "seats [1, 2] learn nothing from their own trajectory"),
        *(
            pytest.param(*fault, marks=pytest.mark.slow)
            for fault in (
                (planted.KeepsDeadSteps, "batch", "rows of seats that had left"),
                (planted.InOrder, "update", "difference"),
                (planted.InitBySeat, "initialisation", "streams"),
                (planted.LoudSeat, "acting", "log_policy"),
            )
        ),
        (planted.SlowSeat, "update", "difference"),
    ],
)
def test_faults_of_a_learner_are_found_in_their_stage(
    kind: type, stage: str | None, words: str
) -> None:
    fault = audited(kind, planted.ReinforceConfig()).first_fault
    assert (fault and fault.stage) == stage
    assert fault is None or words in fault.detail


@pytest.mark.parametrize(
    ("kind", "stage"), [(planted.HalfAdvantage, "advantages"), (planted.HalfGradient, "loss")]
)
@pytest.mark.slow
def test_a_learner_that_shows_its_stages_has_them_named(kind: type, stage: str) -> None:
    fault = audited(kind, with_fields(PPOConfig(), TINY)).first_fault
    assert fault is not None and fault.stage == stage


SEARCH = {"search.simulations": 2, "network.hidden": (4,)}
HOP_SMALL = {"search.draws": 1, "replay.updates": 2, "replay.batch": 16, "replay.capacity": 160}
PLUS_SMALL = {"recordings.samples": 0, "models.chunk_length": 5, "epochs": 1, "minibatches": 2}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "stage"), [(HOP, None), (planted.HalfReturns, "advantages")], ids=str
)
def test_hop_shows_its_stages(kind: type, stage: str | None) -> None:
    audit = audited(kind, with_fields(HOPConfig(), SEARCH | HOP_SMALL))
    assert (audit.first_fault and audit.first_fault.stage) == stage, audit.words
    assert {check.stage for check in audit.checks} >= {"batch", "advantages", "loss", "update"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "stage"),
    [
        (HopPlus, None),
        (planted.HalfCodes, "batch"),
        (planted.FedSeat0HopPlus, "batch"),
        (planted.HalfHopPlusAdvantage, "advantages"),
    ],
    ids=str,
)
def test_hop_plus_shows_its_stages(kind: type, stage: str | None) -> None:
    audit = audited(kind, with_fields(HopPlusConfig(), SEARCH | PLUS_SMALL))
    assert (audit.first_fault and audit.first_fault.stage) == stage, audit.words
    assert {check.stage for check in audit.checks} >= {"batch", "advantages", "loss", "update"}


PLUS_LEARNING = {
    "its models": {
        "models.learn_opponents": True,
        "imagination.share": 0.25,
        "imagination.strangers": 0.25,
        "imagination.over": "model",
    },
    "its own view": {"models.learn_opponents": True, "views": "own"},
}


@pytest.mark.slow
@pytest.mark.parametrize("learning", PLUS_LEARNING)
def test_all_that_hop_plus_learns_and_imagines_moves_with_the_seats(learning: str) -> None:
    config = with_fields(HopPlusConfig(), SEARCH | PLUS_SMALL | PLUS_LEARNING[learning])
    audit = audited(HopPlus.made, config)
    assert audit.passed, audit.words
    # Not even by rounding: clipping and the optimiser would make more of it.
    (learned,) = (check for check in audit.checks if check.name == "what is learned, seats rotated")
    assert learned.figures["difference"] == 0


@pytest.mark.slow
def test_drawing_by_position_is_named_as_the_update_of_hop_plus() -> None:
    config = with_fields(HopPlusConfig(), SEARCH | PLUS_SMALL | PLUS_LEARNING["its models"])
    fault = audited(planted.BySeatHopPlus, config).first_fault
    assert fault is not None and fault.stage == "update", fault


def test_what_stood_for_nothing_hides_no_difference() -> None:
    """A reward that had not occurred yet is 1e9."""

    def learned(weight: float) -> Learned:
        start, after = np.array([0.0, 1e9]), np.array([weight, 1.0])
        return Learned(((start[:1], start[1:]),) * 2, ((after[:1], after[1:]),) * 2, {}, {})

    turned, orders = [learned(0.5), learned(0.6)], [np.arange(2), np.arange(2)]
    moved = np.array([_largest(change) for change in _changes(turned[0])])
    assert moved == pytest.approx([1, 1])
    assert not _update_check(turned, orders, moved, lambda: 0.0).passed


@pytest.mark.slow
def test_order_of_updates_is_named_too() -> None:
    failed = [c for c in audited(planted.InOrder, planted.ReinforceConfig()).checks if not c.passed]
    assert any("depend on each other's order" in check.detail for check in failed)


@pytest.mark.parametrize(
    ("apart", "rounding", "passed"),
    [
        (5e-4, 0.0, True),
        (0.02, 1e-5, False),
        (0.02, 0.01, True),
        (0.2, 0.01, False),
        (0.2, 1, False),
    ],
)
def test_what_a_learner_makes_of_rounding_is_allowed(
    apart: float, rounding: float, passed: bool
) -> None:
    def learned(changes: list[float]) -> Learned:
        return Learned((np.zeros(1),) * 2, tuple(np.array([x]) for x in changes), {}, {})

    turned = [learned([1.0, 2.0]), learned([2.0, 1.0 + apart])]
    orders = [np.array([0, 1]), np.array([1, 0])]
    check = _update_check(turned, orders, np.array([1.0, 2.0]), lambda: rounding)
    assert check.passed == passed, check.detail
    assert ("last digit" in check.detail) == (apart > 1e-3)


def test_rounding_is_measured_as_often_as_seats_are_rotated() -> None:
    """What a kink makes of rounding shows in few draws."""
    first = Learned((np.zeros(1),) * 2, (np.ones(1),) * 2, {}, {})
    kink = Learned((np.zeros(1),) * 2, (np.full(1, 1.5),) * 2, {}, {})
    given: list[Any] = []

    def learn(order: Any, played: Any) -> Learned:
        given.append(np.asarray(played.reward))
        return kink if len(given) == 3 else first

    played = Trajectory(*(np.ones((2, 3, 4, 2)),) * 12)
    assert [_drift(first, learn, played, 0, 2), len(given)] == [0.0, 2]
    assert not np.array_equal(*given)
    assert [_drift(first, learn, played, 0, 2), len(given)] == [0.5, 4]


def test_differences_are_relative_and_illegal_actions_have_no_size() -> None:
    assert difference([np.array([2.0, 4.0])], [np.array([2.0, 4.0])]) == 0
    assert difference([np.array([2.0, 4.4])], [np.array([2.0, 4.0])]) == pytest.approx(0.1)
    assert difference([np.array([-1e30, 4.4])], [np.array([-1e30, 4.0])]) == pytest.approx(0.1)
    assert difference([np.array([np.nan])], [np.array([np.nan])]) == 0
    assert difference([np.array([np.nan])], [np.array([1.0])]) == np.inf
    assert difference([np.array([0.0])], [np.array([1e-6])], scale=1.0) == pytest.approx(1e-6)


# --- the verdict, the whole chain ---------------------------------------------------------------


def test_exact_checks_name_the_stage_before_statistical_ones() -> None:
    noise = Check("worth", "game", False, "unequal", exact=False)
    cause = Check("rewards", "reward bookkeeping", False, "to seat 0")
    later = Check("learned", "update", False, "differs")
    audit = Audit("x", STAGES, (noise, later, cause))
    assert audit.as_json()["stage"] == "reward bookkeeping" and "to seat 0" in audit.words
    assert Audit("x", STAGES, (noise,)).as_json()["stage"] == "game"
    assert Audit("x", STAGES, ()).as_json()["verdict"] == "pass"


def test_fewest_seeds_by_hand() -> None:
    assert fewest_seeds(2, 0.05, paired=False) == 4  # 2 of 70 arrangements; of 20: 0.1
    assert fewest_seeds(4, 0.001, paired=True) == 4  # 24 of 24**4
    assert fewest_seeds(2, 0.3, paired=True) == 3  # 2 of 8


@pytest.mark.slow
def test_the_command_passes_a_fair_learner(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LEARNERS, "own", (planted.ReinforceConfig, planted.Reinforce))
    out = tmp_path / "audit"
    command = [
        *("audit", "seats", "--steps", "400", "--seeds", "2", "--copies", "8", "--rollout", "10"),
        *("--player", "own", "--learning-rate", "0.1", "--episodes", "4000"),
        *("--game.height", "3", "--game.width", "3", "--game.players", "2", "--game.horizon", "7"),
        *("--game.hares", "2", "--out", str(out), "--json"),
    ]
    assert cli.run(command) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["verdict"] == "pass" and result["stage"] is None
    names = [check["name"] for check in result["checks"]]
    assert any("2 x random" in name for name in names)
    assert sum("one learner in every seat" in name for name in names) == 2, "reward and entropy"
    assert any("self-play" in name for name in names)
    assert {path.name for path in out.iterdir()} >= {"audit.json", "index.html", "seat_1"}
    assert json.loads((out / "audit.json").read_text())["checks"] == result["checks"]
    page = (out / "index.html").read_text()
    assert page.count("data:image/png;base64,") == 5
    assert cli.run([*command, "--steps", "800"]) == 2, "another audit's runs are in the way"


@pytest.mark.slow
def test_the_command_fails_a_game_of_ones_own(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GAMES, "faulty", (StagHuntConfig, planted.RewardToSeat0))
    monkeypatch.setitem(LEARNERS, "own", (planted.ReinforceConfig, planted.Reinforce))
    command = ["audit", "seats", "--game", "faulty", "--player", "own", "--copies", "8"]
    command += ["--game.height", "3", "--game.width", "3", "--rollout", "10", "--episodes", "4000"]
    assert cli.run([*command, "--out", str(tmp_path / "audit"), "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["verdict"] == "fail" and result["stage"] == "reward bookkeeping"
    assert "which seat a reward is credited to" in result["words"]
    assert not (tmp_path / "audit" / "seat_0").exists(), "a fault found before training saves it"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"among": "nobody"}, "nobody"),
        ({"advantage": 0.0}, "advantage"),
        ({"episodes": 1}, "episodes"),
    ],
)
def test_wrong_input_is_refused_before_work(tmp_path: Path, change: dict, words: str) -> None:
    config = TrainConfig("ppo", "stag-hunt", PPOConfig(), StagHuntConfig(), RunConfig())
    with pytest.raises(UserError, match=words):
        audit_seats(config, tmp_path / "audit", **change)
    with pytest.raises(UserError, match="seating"):
        seated = TrainConfig(
            "ppo", "stag-hunt", PPOConfig(), StagHuntConfig(), RunConfig(seating="ppo,ns,ns,ns")
        )
        audit_seats(seated, tmp_path / "audit")
    assert not (tmp_path / "audit").exists()


@pytest.mark.parametrize(
    ("first", "options", "run"),
    [
        (True, {}, 2),
        (True, {"training": False}, 1),
        (False, {}, 1),
        (False, {"keep_going": True}, 2),
        (False, {"keep_going": True, "training": False}, 1),
    ],
)
def test_when_an_audit_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bool, options: dict, run: int
) -> None:
    chain = [Check("exact", "game", first, ""), None, Check("trained", "update", True, "")]
    monkeypatch.setattr(seats, "_chain", lambda *_: iter(chain))
    config = TrainConfig("ppo", "stag-hunt", PPOConfig(), StagHuntConfig(), RunConfig())
    assert len(audit_seats(config, tmp_path / "audit", **options).checks) == run


def test_games_whose_seats_cannot_be_renumbered_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fixed(StagHunt):
        symmetric = False

    monkeypatch.setitem(GAMES, "fixed", (StagHuntConfig, Fixed))
    config = TrainConfig("ppo", "fixed", PPOConfig(), StagHuntConfig(), RunConfig())
    with pytest.raises(UserError, match="cannot be renumbered"):
        audit_seats(config, tmp_path / "audit")
