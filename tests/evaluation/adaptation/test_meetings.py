"""Requests that are kept: suites go on where they were, references are trained once."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coplay.core.errors import UserError
from coplay.evaluation.adaptation import best_response as best
from coplay.evaluation.adaptation import meetings
from coplay.evaluation.adaptation.best_response import (
    BestResponseConfig,
    Opposition,
    best_response,
)
from coplay.evaluation.adaptation.meetings import Request, meet_all, slug
from coplay.evaluation.adaptation.protocol import AdaptConfig, has_best_response
from coplay.evaluation.adaptation.suites import SUITES, suite_sets
from coplay.games.predator_prey import PredatorPreyConfig
from coplay.games.registry import make_game
from coplay.games.stag_hunt import StagHuntConfig
from coplay.reports.progress import ProgressLine
from coplay.training.records import read_rows
from coplay.training.trainer import Watcher

GAME = make_game("stag-hunt")
REQUEST = Request(
    focal="ns",
    sets=("ns,ns,ns", "nh,ns,random"),
    game_name="stag-hunt",
    game=StagHuntConfig(),
    adapt=AdaptConfig(steps=8, last=4, seeds=1),
    normalise=False,
    best=BestResponseConfig(),
)


def test_suites_name_players_of_their_games() -> None:
    for name, (game_name, _, side) in SUITES.items():
        game = make_game(game_name)
        sets = suite_sets(name, game, "ppo")
        assert len({slug(text) for text in sets}) == len(sets)
        for text in sets:
            meeting = meetings.make_meeting("random", text.split(","), game, REQUEST.adapt, side)
            assert bool(meeting.learners) == ("ppo" in text)
            assert has_best_response(text.split(",")) == (
                "ppo" not in text and "switcher" not in text
            )
    with pytest.raises(UserError, match="has 3: name"):
        suite_sets("stag-hunt", make_game("stag-hunt", players=3), "ppo")


def test_an_interrupted_suite_goes_on_where_it_was(tmp_path: Path, monkeypatch: Any) -> None:
    wanted: list[str] = []
    drawn: list[str] = []

    def meet(request: Request, text: str, *rest: Any) -> Any:
        wanted.append(text)
        if len(wanted) == 2:
            raise KeyboardInterrupt
        return {"against": text, "score": len(wanted)}, []

    monkeypatch.setattr(meetings, "meet", meet)

    def go(request: Request) -> list[dict[str, Any]]:
        out = tmp_path / "out"
        finished = lambda kept, result: drawn.append(result["against"])  # noqa: E731
        return meet_all(request, GAME, out, tmp_path / "best", Watcher(), finished)

    with pytest.raises(KeyboardInterrupt):
        go(REQUEST)
    results = go(REQUEST)
    assert wanted == ["ns,ns,ns", "nh,ns,random", "nh,ns,random"]
    assert [result["score"] for result in results] == [1, 3]
    assert drawn == ["ns,ns,ns", "nh,ns,random"]
    with pytest.raises(UserError, match="other settings"):
        go(replace(REQUEST, focal="nh"))


def test_errors_in_a_later_set_come_before_anything_is_written(tmp_path: Path) -> None:
    request = replace(REQUEST, sets=("ns,ns,ns", "ns,ns,nz"))
    with pytest.raises(UserError, match="unknown player"):
        meet_all(request, GAME, tmp_path / "out", tmp_path / "best", Watcher(), lambda *_: None)
    assert not list(tmp_path.iterdir())


OPPOSITION = Opposition("stag-hunt", StagHuntConfig(), ("ns", "nh", "random"))


def test_stages_end_when_one_improves_too_little(tmp_path: Path, monkeypatch: Any) -> None:
    rewards = [1.0, 2.0, 2.5, 2.51, 9.0]
    trained: list[int] = []

    def stage(opposition: Any, run: Any, steps: int, *rest: Any) -> dict[str, Any]:
        trained.append(steps)
        reward = rewards[len(trained) - 1]
        return {"steps": steps, "reward": reward, "stderr": 0.0, "greedy": True, "seed": 0}

    monkeypatch.setattr(best, "_stage", stage)
    config = BestResponseConfig(stage=10, most=1000)
    found = best_response(OPPOSITION, tmp_path, config, Watcher())
    assert trained == [10, 20, 30, 40] and found["reward"] == 2.51
    assert best_response(OPPOSITION, tmp_path, config, Watcher()) == found and len(trained) == 4
    other = replace(OPPOSITION, game=StagHuntConfig(height=5))
    assert other.folder(tmp_path, config) != OPPOSITION.folder(tmp_path, config)
    windowed = replace(OPPOSITION, game=StagHuntConfig(view=1))
    assert (OPPOSITION.network(config), windowed.network(config)) == ("centred", "mlp")
    plain = replace(config, network="mlp")
    assert OPPOSITION.folder(tmp_path, plain) != OPPOSITION.folder(tmp_path, config)
    trained.clear()
    capped = best_response(other, tmp_path, replace(config, most=20), Watcher())
    assert trained == [10, 20] and capped["reward"] == 2.0


@pytest.mark.slow
def test_a_best_response_is_trained_in_stages_and_leaves_its_curve(tmp_path: Path) -> None:
    config = BestResponseConfig(stage=256, most=512, margin=0, seeds=1, copies=8, episodes=20)
    with ProgressLine() as watcher:  # which draws
        found = best_response(OPPOSITION, tmp_path, config, watcher)
    folder = OPPOSITION.folder(tmp_path, config)
    assert json.loads((folder / best.RESULT).read_text()) == found
    assert found["finished"] and [stage["steps"] for stage in found["stages"]] == [256, 512]
    rows = read_rows(folder / "run" / "metrics.jsonl")
    assert rows[-1]["step"] == 512 and (folder / "run" / "learning_curve.png").exists()


def test_the_best_response_of_a_side_sits_in_all_of_its_seats(tmp_path: Path) -> None:
    config, game = BestResponseConfig(), PredatorPreyConfig()
    predators = Opposition("predator-prey", game, ("evader",), "predators")
    prey = Opposition("predator-prey", game, ("chaser", "corner", "random"), "prey")
    alone = Opposition("predator-prey", game, ("chaser", "chaser", "evader"), "predators")
    assert predators.seated("mappo") == ["mappo", "mappo", "mappo", "evader"]
    assert prey.seated("ppo") == ["chaser", "corner", "random", "ppo"]
    assert alone.seated("ppo") == ["ppo", "chaser", "chaser", "evader"]
    assert (predators.team, prey.team, alone.team) == ((0, 1, 2), (3,), (0,))
    folders = {one.folder(tmp_path, config) for one in (predators, prey, alone)}
    assert len(folders) == 3


@pytest.mark.slow
def test_a_team_is_normalised_by_the_best_response_of_its_side(tmp_path: Path) -> None:
    best_config = BestResponseConfig(stage=256, most=256, seeds=1, copies=8, episodes=20)
    adapt = AdaptConfig(steps=100, last=100, seeds=2)
    game = PredatorPreyConfig(height=5, width=5)
    request = replace(
        REQUEST, focal="chaser", sets=("evader",), game_name="predator-prey", game=game,
        adapt=adapt, normalise=True, best=best_config, side="predators",
    )  # fmt: skip
    made = make_game("predator-prey", height=5, width=5)
    out, references = tmp_path / "out", tmp_path / "best"
    (found,) = meet_all(request, made, out, references, Watcher(), lambda *_: None)
    assert (found["side"], found["team"], found["seats"]) == ("predators", 3, 1)
    assert len(found["scores"]) == 2 and found["best_response"] is not None
    rows = (out / "sets" / "1-evader.csv").read_text().splitlines()
    assert {row.split(",")[0] for row in rows[1:]} == {"0"}
    # 0 is what three random predators get, each: less than three chasers.
    assert found["random"] < found["score"]
