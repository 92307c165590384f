"""Planners are kept as numbers and a configuration; what searches stands in the program."""

import json
from pathlib import Path

import pytest

import coplay
from coplay.core.errors import UserError
from coplay.evaluation.partners.config import PartnersConfig
from coplay.evaluation.partners.make import make_partners
from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.training.partner_packs import ABOUT, Pack, read_pack
from coplay.training.trainer import Watcher

CONFIG = StagHuntConfig(height=3, width=3, players=2, hares=2, horizon=6)


def made(folder: Path) -> Pack:
    config = PartnersConfig(planners=2, planners_steps=64, copies=2)
    return make_partners("stag-hunt", CONFIG, ("planners",), config, folder, Watcher())


def test_a_game_without_goals_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StagHunt, "goals", None)
    with pytest.raises(UserError, match="leave out the family 'planners'"):
        made(tmp_path / "pack")
    assert not (tmp_path / "pack").exists()


@pytest.mark.slow
def test_planners_play_from_a_pack_and_are_the_same_again(tmp_path: Path) -> None:
    pack, again = made(tmp_path / "one"), made(tmp_path / "two")
    for name in ("planners.npz", ABOUT):
        assert (pack.folder / name).read_bytes() == (again.folder / name).read_bytes()
    game = coplay.make_game("stag-hunt", height=3, width=3, players=2, hares=2, horizon=6)
    coplay.play(game, f"{pack.entry(1)},ns", episodes=2)
    about = json.loads((pack.folder / ABOUT).read_text())
    for partner in about["partners"]:
        partner["how"]["learner"] = "os"
    (pack.folder / ABOUT).write_text(json.dumps(about))
    with pytest.raises(UserError, match="unknown learner of a planner"):
        read_pack(pack.folder).player("0", game)
