"""A run that is taken up must be the run that was left."""

import json
from dataclasses import replace
from typing import Any

import pytest

from coplay.api.training import make_config
from coplay.core.errors import UserError
from coplay.core.version import VERSION
from coplay.training.config import TrainConfig
from coplay.training.continuity import differences, require_same, stated_files, statement


@pytest.fixture(scope="module")
def config() -> TrainConfig:
    return make_config("ppo", "stag-hunt", {}, {"steps": 100})


def note_of(config: TrainConfig) -> dict[str, Any]:
    """As it comes back from a file."""
    return {"coplay": VERSION} | json.loads(json.dumps(statement(config, {})))


def test_only_steps_may_change(config: TrainConfig) -> None:
    note = note_of(config)
    require_same(note, replace(config, run=replace(config.run, steps=9)), False)
    other = make_config("ppo", "stag-hunt", {}, {"steps": 100, "optimiser.learning_rate": 0.5})
    with pytest.raises(UserError, match=r"learner\.optimiser\.learning_rate: .* 0\.5 in config"):
        require_same(note, other, False)
    require_same(note, other, True)
    assert len(differences(note, other)) == 1
    with pytest.raises(UserError, match=r"run\.rollout: 32 at the checkpoint, 16 in config"):
        require_same(note, replace(config, run=replace(config.run, rollout=16)), False)


def test_another_version_is_refused(config: TrainConfig) -> None:
    with pytest.raises(UserError, match=rf"coplay: 9\.9 at the checkpoint, {VERSION} is installed"):
        require_same(note_of(config) | {"coplay": "9.9"}, config, False)


def test_a_field_that_is_new_in_this_version_is_no_difference(config: TrainConfig) -> None:
    note = note_of(config)
    del note["config"]["run"]["keep"]
    assert differences(note | {"config_sha256": "of the shorter one"}, config) == []


def test_version_0_1_states_a_length_only(config: TrainConfig) -> None:
    assert stated_files({"metrics_bytes": 7}) == {"metrics.jsonl": {"bytes": 7}}
    assert differences({"versions": {"coplay": "0.1.0"}}, config) == []
