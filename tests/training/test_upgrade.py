"""Files of version 0.1 are read: every field is where it belongs, what is gone is named."""

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import coplay
from coplay.algorithms.registry import learner_parts
from coplay.core.config import get_field, leaves, to_json
from coplay.games.stag_hunt import StagHuntConfig
from coplay.training import upgrade
from coplay.training.config import TrainConfig
from coplay.training.pretrained import PretrainedGoalsConfig, read_pretrained
from coplay.training.run import RunFolder, read_config
from coplay.training.upgrade import LEARNERS, as_of_today, upgraded, upgraded_learner

OLD = Path(__file__).parents[1] / "data" / "v0.1"
RUNS = sorted(path.parent.name for path in OLD.glob("*/config.json"))
RUNS = [name for name in RUNS if name not in ("goals", "world")]


@pytest.mark.parametrize("name", RUNS)
def test_configurations_of_all_learners(name: str) -> None:
    data = json.loads((OLD / name / "config.json").read_text())
    config = read_config(OLD / name / "config.json")
    player, dropped = data["player"], set(config.dropped)
    for field, value in data["learner"].items():
        if field in dropped:
            continue
        paths = LEARNERS[player].get(field, field)
        value = upgrade.VALUES.get((player, field), lambda value: value)(value)
        for path in (paths,) if isinstance(paths, str) else paths or ():
            assert to_json(get_field(config.learner, path)) == value, f"{field} -> {path}"
    for field, value in data["run"].items():
        assert to_json(getattr(config.run, field)) == value
    for field, value in data["game"].items():
        assert to_json(getattr(config.game, field)) == value


@pytest.mark.parametrize("player", LEARNERS)
def test_the_map_leads_to_fields_that_exist(player: str) -> None:
    kind = learner_parts(player)[0]
    paths = {leaf.path for leaf in leaves(kind())}
    for name, new in LEARNERS[player].items():
        for path in (new,) if isinstance(new, str) else new or ():
            assert path in paths, f"{name} -> {path}"


def test_fields_that_are_gone_are_named() -> None:
    renamed: upgrade.Renamed = {"old": "part.new", "gone": None, "both": ("a", "part.a")}
    found = upgraded(renamed, {"old": 1, "gone": 2, "both": 3, "same": 4})
    assert found == ({"part": {"new": 1, "a": 3}, "a": 3, "same": 4}, ["gone"])
    assert upgraded_learner("hop", {"planner": "off"})[0] == {"planner": "none"}


EARLY = {
    "optimiser.weight_decay": ("ppo", 1e-4),
    "search.min_q_range": ("hop", 0.05),
    "goals.units": ("hop-plus", 64),
}
"""Field that early files of version 0.2.0 hold -> a learner that had it, and its value."""


def file_of(player: str) -> dict[str, Any]:
    """A configuration file of today."""
    learner = learner_parts(player)[0]()
    return copy.deepcopy(TrainConfig(player, "stag-hunt", learner, StagHuntConfig()).as_json())


@pytest.mark.parametrize("path", EARLY)
def test_fields_of_early_files_of_this_version_are_dropped_and_named(path: str) -> None:
    player, value = EARLY[path]
    part, _, name = path.partition(".")
    data = file_of(player)
    today = TrainConfig.from_json(data, "a file of today")
    data["learner"][part][name] = value
    config = TrainConfig.from_json(data, "an early file")
    assert config.dropped == (path,) and not today.dropped and config.learner == today.learner


def test_normalisation_of_values_had_a_part_of_its_own() -> None:
    data = file_of("mappo")
    data["learner"]["value_norm"] = {"enabled": False, "decay": 0.999}
    config = TrainConfig.from_json(data, "an early file")
    assert config.dropped == ("value_norm.decay",) and config.learner.value_norm is False


@pytest.mark.parametrize(("direct", "source"), [(True, "none"), (False, "auto")])
def test_models_without_goals_are_a_source_of_goals(direct: bool, source: str) -> None:
    data = file_of("hop")
    del data["learner"]["goals"]
    data["learner"]["direct_om"] = direct
    config = TrainConfig.from_json(data, "an early file")
    assert config.learner.goals.source == source and not config.dropped


def test_a_field_of_today_is_never_dropped() -> None:
    data = {"optimiser": {"weight_decay": 1.0}, "units": 3}
    assert as_of_today(data, {"optimiser.weight_decay", "units"}) == (data, [])
    assert as_of_today(data, set()) == ({"optimiser": {}}, ["optimiser.weight_decay", "units"])


def test_pretrained_models() -> None:
    goals = read_pretrained(OLD / "goals", "goals", PretrainedGoalsConfig)
    assert (goals.model.dim, goals.model.width, goals.model.horizon) == (16, 32, 5)
    assert goals.fit.optimiser.learning_rate == 0.004 and goals.fit.epochs == 1


@pytest.mark.slow
def test_a_run_of_version_0_1_plays_and_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(OLD / "ppo-checkpoint", folder)
    config = read_config(folder / "config.json")
    fields: dict[str, Any] = {
        leaf.path: leaf.value for leaf in leaves(config.game) if leaf.value != leaf.default
    }
    game = coplay.make_game(config.game_name, **fields)
    result = coplay.play(game, f"{folder},{folder}", episodes=4)
    assert result["episodes"] == 4
    summary = coplay.train(out=folder, resume=True, steps=config.run.steps + 64)
    assert summary["steps"] > config.run.steps
    assert RunFolder(folder).read_config().learner == config.learner


def test_fields_that_earlier_files_lack_say_what_was_done_then() -> None:
    found = set()
    for player in ("hop", "hop-plus"):
        data = file_of(player)
        mine = {}
        for path, value in upgrade.ADDED.items():
            part, _, name = path.partition(".")
            if name in data["learner"].get(part, {}):
                assert data["learner"][part].pop(name) != value  # the default of today is another
                mine[path] = value
        earlier = TrainConfig.from_json(data, "an earlier file").learner
        assert all(get_field(earlier, path) == value for path, value in mine.items())
        found |= set(mine)
    assert found == set(upgrade.ADDED)
