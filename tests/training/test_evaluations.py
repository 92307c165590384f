"""Evaluations during a run."""

from pathlib import Path

import numpy as np

from coplay.matches.match import Match
from coplay.training.evaluations import Evaluations
from coplay.training.records import read_rows


def match(reward: float) -> Match:
    return Match(np.full((4, 2), reward), np.array([[3, 5]] * 4), {"won": np.array([1.0, 0, 0, 0])})


def test_one_is_due_at_the_start_and_once_per_interval(tmp_path: Path) -> None:
    one = Evaluations(tmp_path / "evaluations.jsonl", every=100)
    assert one.due(0)
    one.write(0, 1.0, [0], [match(1.0)])
    assert not one.due(64) and one.due(128)
    one.write(128, 2.0, [0], [match(2.0)])
    assert not one.due(192) and one.due(200)
    assert not Evaluations(tmp_path / "none.jsonl", every=0).due(0)


def test_rows_say_reward_length_and_scores_of_every_seed(tmp_path: Path) -> None:
    path = tmp_path / "evaluations.jsonl"
    Evaluations(path, every=1).write(7, 1.0, [3, 4], [match(1.0), match(2.0)])
    rows = read_rows(path)
    assert [row["seed"] for row in rows] == [3, 4]
    assert rows[1]["team_mean"] == 2.0 and rows[1]["length"] == 5.0 and rows[1]["won"] == 0.25


def test_a_resumed_run_forgets_what_came_later(tmp_path: Path) -> None:
    path = tmp_path / "evaluations.jsonl"
    one = Evaluations(path, every=10)
    one.write(0, 0.0, [0], [match(0.0)])
    stated = {path.name: one.record.state()}
    one.write(10, 0.0, [0], [match(0.0)])
    again = Evaluations(path, every=10)
    assert again.go_on(stated, 0) == [] and again.done == 0
    again.begin()
    for step in (0, 10, 20):
        again.write(step, 0.0, [0], [match(0.0)])
    again = Evaluations(path, every=10)
    assert again.go_on({}, 10) == []  # as with a checkpoint of version 0.1
    assert [row["step"] for row in read_rows(path)] == [0, 10] and again.done == 10
    assert again.due(20)
