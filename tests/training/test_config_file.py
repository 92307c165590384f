"""Configurations that people write, and that coplay writes for them."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from coplay.algorithms.registry import LEARNERS
from coplay.cli.main import run
from coplay.core.errors import UserError
from coplay.games.stag_hunt import StagHuntConfig
from coplay.training.config import TrainConfig, run_defaults
from coplay.training.config_file import as_toml, read_toml

PLAIN = 'player = "ppo"\n'


@pytest.mark.parametrize("name", LEARNERS)
def test_what_is_written_is_read(name: str, tmp_path: Path) -> None:
    kind = LEARNERS[name][0]
    game = StagHuntConfig(height=5, width=6)
    config = TrainConfig(name, "stag-hunt", kind(), game, run_defaults(kind))
    path = tmp_path / "run.toml"
    path.write_text(as_toml(config))
    assert read_toml(path) == config


def test_a_file_can_say_that_there_is_no_limit(tmp_path: Path) -> None:
    """Where the default is one, leaving the field out would bring it back."""
    kind, path = LEARNERS["mappo"][0], tmp_path / "run.toml"
    learner = replace(kind(), huber=None, value_clip=None)
    config = TrainConfig("mappo", "stag-hunt", learner, StagHuntConfig(), run_defaults(kind))
    path.write_text(as_toml(config))
    assert read_toml(path) == config


def test_the_rest_is_as_by_default(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(
        'player = "hop-plus"\n[run]\nseeds = 3\n[learner.optimiser]\nlearning_rate = 1e-4\n'
    )
    found = read_toml(path)
    kind = LEARNERS["hop-plus"][0]
    assert found.run.seeds == 3 and found.run.steps == run_defaults(kind).steps
    assert found.learner.optimiser.learning_rate == 1e-4
    assert found.learner.search == kind().search, "a learner's own defaults of a part"


@pytest.mark.parametrize(
    "text, words",
    {
        PLAIN + '[learner]\nclip = "none"\n': "clip",
        "player = ": "is no TOML file",
        "steps = 3\n": "unknown field",
        "[run]\nsteps = 3\n": "lacks 'player'",
        PLAIN + "[run]\nstep = 3\n": "did you mean 'steps'",
        PLAIN + "[run]\nsteps = -3\n": "steps",
        PLAIN + "run = 3\n": "run",
        PLAIN + "[learner]\nclip = nan\n": "clip",
    }.items(),
)
def test_errors_name_the_field(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=words):
        read_toml(path)


def test_every_field_stands_below_its_meaning() -> None:
    kind = LEARNERS["ppo"][0]
    text = as_toml(TrainConfig("ppo", "stag-hunt", kind(), StagHuntConfig(), run_defaults(kind)))
    assert tomllib.loads(text)["run"]["seeds"] == 1
    lines = text.splitlines()
    assert lines[lines.index("seeds = 1") - 1].startswith("# ")


def test_the_command_writes_what_train_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.toml"
    assert run(["config", "ppo", "--steps", "777", "--out", str(out)]) == 0
    assert capsys.readouterr().out.strip() == f"coplay train ppo --config {out}"
    assert read_toml(out).run.steps == 777
    assert run(["config", "ppo", "--out", str(out)]) == 2, "it is there already"
    assert run(["config", "ppo", "--config", str(out), "--seeds", "2"]) == 0
    said = tomllib.loads(capsys.readouterr().out)["run"]
    assert (said["steps"], said["seeds"]) == (777, 2)
