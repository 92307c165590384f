"""Settings by name: every one can be built, and options override it."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coplay.algorithms.registry import learner_parts, new_learner
from coplay.api.training import make_config, train
from coplay.cli.train import configured
from coplay.core.config import inert_fields
from coplay.core.errors import UserError
from coplay.games.stag_hunt import StagHuntConfig
from coplay.nn.networks import ViewShape
from coplay.training.config import TrainConfig
from coplay.training.config_file import as_toml, read_settings
from coplay.training.presets import from_preset, presets
from coplay.training.records import read_rows

PUBLISHED = tomllib.loads((Path(__file__).parent / "published.toml").read_text())
PAIRS = [(name, player) for name, preset in presets().items() for player in preset.players]


@pytest.mark.parametrize("name, player", PAIRS)
def test_every_preset_is_a_configuration_in_which_every_field_acts(name: str, player: str) -> None:
    config = from_preset(name, player, "stag-hunt")
    assert config.run.preset == name and config.game == StagHuntConfig()
    assert not inert_fields(config.learner) and not inert_fields(config.run)
    make = learner_parts(player)[1]
    seats = (0, 1, 2)
    shape = ViewShape((0, 0, 0), 4, 5)
    learner = new_learner(
        make, config=config.learner, shape=shape, game_seats=3, seats=seats, active=seats
    )
    learner.check_rollout(config.run.rollout)
    assert config.run.copies % getattr(config.learner, "minibatches", 1) == 0


def field(config: TrainConfig, path: str) -> Any:
    """The value of a field by its path, as in `learner.optimiser.epsilon`."""
    value: Any = config
    for part in path.split("."):
        value = getattr(value, part)
    return value


def test_the_numbers_of_others_are_known_for_every_preset_of_theirs() -> None:
    published = {name for name in PUBLISHED if name != "fields"}
    assert published == {name for name, preset in presets().items() if preset.commit}


@pytest.mark.parametrize(
    "name, player", [(name, player) for name, player in PAIRS if name in PUBLISHED]
)
def test_a_preset_has_the_numbers_of_the_files_it_names(name: str, player: str) -> None:
    library, theirs = presets()[name].source.split("/")[1], PUBLISHED[name]
    paths = PUBLISHED["fields"][library]
    config = from_preset(name, player, "stag-hunt")
    unequal = {}
    for their_name, value in theirs.items():
        for path in paths[their_name]:
            ours = field(config, path)
            ours = list(ours) if isinstance(ours, tuple) else "none" if ours is None else ours
            if ours != value:
                unequal[their_name] = (path, ours, value)
    assert not unequal


def test_a_preset_of_this_project_names_a_file_of_results() -> None:
    for preset in presets().values():
        if not preset.commit:
            assert all(Path(name).is_file() for name in preset.files), preset.name


@pytest.mark.slow
@pytest.mark.parametrize("name", presets())
def test_every_preset_has_a_game(name: str) -> None:
    """JaxMARL is imported for some of them, which takes seconds."""
    pytest.importorskip("jaxmarl")
    config = from_preset(name, presets()[name].players[0])
    assert config.game_name == presets()[name].game and not inert_fields(config.game)


HERE = {"smac:3m": "smax:3m", "smac:corridor": "smax:6z_vs_24zg_flat"}
"""What stands for StarCraft II: the same units in JaxMARL's own battles, as `differs` says."""


@pytest.mark.slow
@pytest.mark.parametrize("name, player", PAIRS)
def test_every_preset_trains(name: str, player: str, tmp_path: Path) -> None:
    """Two iterations with its own copies, rollout and networks. Less is recorded and evaluated."""
    preset = presets()[name]
    game = HERE.get(preset.game, preset.game)
    if game.startswith(("smax:", "jaxmarl:")):
        pytest.importorskip("jaxmarl")
    begun = from_preset(name, player, game).run
    fields: dict[str, Any] = {"steps": 2 * begun.copies * begun.rollout, "block": 1, "episodes": 32}
    if player == "hop-plus":
        fields |= {"recordings.samples": 2000, "recordings.partners": 2}
    summary = train(
        player, game, tmp_path / "run", preset=name, seeds=1, evaluate_every=0, pictures=False,
        quiet=True, **fields,
    )  # fmt: skip
    assert summary["steps"] >= fields["steps"] and np.isfinite(summary["team_mean"])
    rows = read_rows(tmp_path / "run" / "metrics.jsonl")
    assert rows and all(np.isfinite(value) for name, value in rows[-1].items() if "loss" in name)


def test_options_override_a_preset() -> None:
    words = "mappo --preset on-policy-smac --game stag-hunt --epochs 3 --game.height 6"
    _, config, _ = configured(words.split())
    assert (config.learner.epochs, config.run.copies, config.run.rollout) == (3, 8, 400)
    assert config.game == StagHuntConfig(height=6) and config.run.preset == "on-policy-smac"


def test_python_and_files_know_presets(tmp_path: Path) -> None:
    config = make_config("ppo", "stag-hunt", {}, {"preset": "cleanrl-ppo", "epochs": 3})
    assert (config.run.copies, config.learner.epochs, config.learner.value_clip) == (4, 3, 0.2)
    path = tmp_path / "mine.toml"
    path.write_text('player = "ppo"\n[run]\npreset = "cleanrl-ppo"\n[learner]\nepochs = 3\n')
    assert read_settings(path) == config
    path.write_text(as_toml(config))
    assert read_settings(path) == config


@pytest.mark.parametrize(
    "words, said",
    {
        "ppo --preset cleanrl-pp": "did you mean 'cleanrl-ppo'",
        "ppo --preset on-policy-smac": "is for mappo and hyper-mappo; for 'ppo' there are:",
        "ppo --preset stag-hunt --config my.toml": "leave one of them out",
    }.items(),
)
def test_wrong_presets(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.toml").write_text('player = "ppo"\n')
    with pytest.raises(UserError, match=said):
        configured(words.split())
