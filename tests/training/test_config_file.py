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
from coplay.training.config_file import as_toml, as_yaml, read_settings

PLAIN = 'player = "ppo"\n'


WRITERS = {"run.toml": as_toml, "run.yaml": as_yaml, "run.yml": as_yaml}


@pytest.mark.parametrize("file", WRITERS)
@pytest.mark.parametrize("name", LEARNERS)
def test_what_is_written_is_read(name: str, file: str, tmp_path: Path) -> None:
    kind = LEARNERS[name][0]
    game = StagHuntConfig(height=5, width=6)
    run = replace(run_defaults(kind), partners="a: 'b' #\x85\ufeff\u2028\x7f\n\"🦌\\")
    config = TrainConfig(name, "stag-hunt", kind(), game, run)
    path = tmp_path / file
    path.write_text(WRITERS[file](config))
    assert read_settings(path) == config


@pytest.mark.parametrize("file", WRITERS)
def test_a_file_can_say_that_there_is_no_limit(file: str, tmp_path: Path) -> None:
    """Where the default is one, leaving the field out would bring it back."""
    kind, path = LEARNERS["mappo"][0], tmp_path / file
    learner = replace(kind(), huber=None, value_clip=None)
    config = TrainConfig("mappo", "stag-hunt", learner, StagHuntConfig(), run_defaults(kind))
    path.write_text(WRITERS[file](config))
    assert read_settings(path) == config


def test_yaml_that_people_write(tmp_path: Path) -> None:
    """The exponent without a point, the empty table, and words that older readers turn into others:
    each is another thing in PyYAML by itself."""
    path = tmp_path / "run.yaml"
    path.write_text(
        "player: mappo\nrun:\n  steps: 600_000  # a comment\n  seating: mappo,ns,ns,ns\n"
        "learner:\n  huber: null\n  optimiser:\n  network: {hidden: [32, 16]}\n"
        "  critic_learning_rate: 1e-3\ngame:\n"
    )
    found, kind = read_settings(path), LEARNERS["mappo"][0]
    assert found.run.steps == 600_000 and found.run.seating == "mappo,ns,ns,ns"
    assert found.learner.huber is None and found.learner.critic_learning_rate == 1e-3
    assert found.learner.network.hidden == (32, 16)
    assert found.learner.optimiser == kind().optimiser and found.game == StagHuntConfig()


def test_the_rest_is_as_by_default(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(
        'player = "hop-plus"\n[run]\nseeds = 3\n[learner.optimiser]\nlearning_rate = 1e-4\n'
    )
    found = read_settings(path)
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
        read_settings(path)


@pytest.mark.parametrize(
    "text, words",
    {
        "player: ppo\nrun:\n  steps: 3\n  steps: 4\n": "'steps' is there twice .line 4.",
        "player: ppo\nrun: &a\n  steps: 3\ngame: *a\n": "references .* are not read .line 4.",
        "player: !!python/object/apply:os.system [ls]\n": "is no YAML file",
        "player: ppo\nlearner:\n  clip: yes\n": "clip",
        "player: ppo\nlearner:\n  ? [clip]\n  : 3\n": "the name of a field is a word .line 3.",
        "player: ppo\nrun:\n  step: 3\n": "did you mean 'steps'",
        "player: ppo\n1: 2\n": "unknown field",
        "player: [\n": "is no YAML file",
        "- ppo\n": "holds no fields",
        "": "holds no fields",
        "a: " + "[" * 5000: "is no YAML file",
        f"player: ppo\nrun: {{steps: {'9' * 5000}}}": "is no YAML file",
    }.items(),
)
def test_errors_of_yaml_name_the_line_or_the_field(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=words) as found:
        read_settings(path)
    assert "\n" not in str(found.value)


def test_every_field_stands_below_its_meaning() -> None:
    kind = LEARNERS["ppo"][0]
    config = TrainConfig("ppo", "stag-hunt", kind(), StagHuntConfig(), run_defaults(kind))
    assert tomllib.loads(as_toml(config))["run"]["seeds"] == 1
    for text, line in ((as_toml(config), "seeds = 1"), (as_yaml(config), "  seeds: 1")):
        lines = text.splitlines()
        assert lines[lines.index(line) - 1].strip().startswith("# ")


@pytest.mark.parametrize("file", ["run.toml", "run.yaml"])
def test_the_command_writes_what_train_takes(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / file
    assert run(["config", "ppo", "--steps", "777", "--out", str(out)]) == 0
    assert capsys.readouterr().out.strip() == f"coplay train ppo --config {out}"
    assert read_settings(out).run.steps == 777
    assert run(["config", "ppo", "--out", str(out)]) == 2, "it is there already"
    assert run(["config", "ppo", "--out", str(tmp_path / "run.ini")]) == 2
    capsys.readouterr()
    assert run(["config", "ppo", "--config", str(out), "--seeds", "2"]) == 0
    said = tomllib.loads(capsys.readouterr().out)["run"]
    assert (said["steps"], said["seeds"]) == (777, 2)


def test_both_files_of_the_page_say_the_same(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/settings-in-a-file.md").read_text()
    for kind in ("toml", "yaml"):
        (tmp_path / f"my.{kind}").write_text(page.partition(f"```{kind}\n")[2].partition("```")[0])
    found = read_settings(tmp_path / "my.yaml")
    assert found == read_settings(tmp_path / "my.toml") and found.game == StagHuntConfig(8, 8)
