"""Settings by name: every one can be built, and options override it."""

from pathlib import Path

import pytest

from coplay.algorithms.registry import learner_parts, new_learner
from coplay.api.training import make_config
from coplay.cli.train import configured
from coplay.core.config import inert_fields
from coplay.core.errors import UserError
from coplay.games.stag_hunt import StagHuntConfig
from coplay.nn.networks import ViewShape
from coplay.training.config_file import as_toml, read_toml
from coplay.training.presets import from_preset, presets

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


@pytest.mark.slow
@pytest.mark.parametrize("name", presets())
def test_every_preset_has_a_game(name: str) -> None:
    """JaxMARL is imported for some of them, which takes seconds."""
    pytest.importorskip("jaxmarl")
    config = from_preset(name, presets()[name].players[0])
    assert config.game_name == presets()[name].game and not inert_fields(config.game)


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
    assert read_toml(path) == config
    path.write_text(as_toml(config))
    assert read_toml(path) == config


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
