"""Partners that act as people did."""

import itertools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.core.errors import UserError
from coplay.core.group import Group
from coplay.evaluation.partners.config import PartnersConfig
from coplay.evaluation.partners.make import make_partners
from coplay.games.stag_hunt import StagHuntConfig
from coplay.matches.match import play_match
from coplay.matches.played_dataset import GrowingDataset
from coplay.training.partner_packs import Pack
from coplay.training.trainer import Watcher

CONFIG = StagHuntConfig(height=3, width=3, players=2, hares=2, horizon=6)
GAME = coplay.make_game("stag-hunt", height=3, width=3, players=2, hares=2, horizon=6)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A "person" who hunts hares, beside a player that acts at random."""
    out = tmp_path_factory.mktemp("people") / "human"
    data = GrowingDataset(out, "stag-hunt", CONFIG, ["human", "random"], 0)
    steps = coplay.episodes(GAME, ["nh", "random"], episodes=40, seed=3)
    for _, episode in itertools.groupby(steps, key=lambda step: step.episode):
        data.add(GAME, list(episode))
    return out


def made(folder: Path, *people: Path, config: StagHuntConfig = CONFIG) -> Pack:
    asked = PartnersConfig(people=tuple(map(str, people)), people_epochs=30)
    return make_partners("stag-hunt", config, ("people",), asked, folder, Watcher())


@pytest.mark.slow
def test_a_partner_acts_as_the_person_did(recorded: Path, tmp_path: Path) -> None:
    pack = made(tmp_path / "pack", recorded)
    (partner,) = pack.partners
    assert partner.how["held_out_loss"] < 0.7 * partner.how["chance_loss"]
    player = jax.tree.map(jnp.asarray, pack.player("people-0", GAME))
    random = coplay.make_player("random", GAME)

    def reward(one: coplay.Player) -> float:
        groups = (Group(one, (0,), True), Group(random, (1,), True))
        return float(play_match(GAME, groups, 400).reward[:, 0].mean())

    # A hare is worth 1. The person always got one; of so few games a clone is coarse.
    assert reward(player) > reward(random) + 0.15
    again = made(tmp_path / "again", recorded)
    assert pack.digests() == again.digests()


def test_without_recorded_games_there_are_no_people(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs recorded games: give --people"):
        made(tmp_path / "pack")
    assert not (tmp_path / "pack").exists()


@pytest.mark.slow
def test_what_cannot_be_learned_from_is_said_first(recorded: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the pack of stag-hunt"):
        made(tmp_path / "pack", recorded, config=StagHuntConfig())
    asked = PartnersConfig(people=(str(recorded),), people_kind="me")
    with pytest.raises(UserError, match=r"player in .*human"):
        make_partners("stag-hunt", CONFIG, ("people",), asked, tmp_path / "pack", Watcher())
    assert not (tmp_path / "pack").exists()


@pytest.mark.slow
def test_the_best_epoch_counts(recorded: Path, tmp_path: Path) -> None:
    short = PartnersConfig(people=(str(recorded),), people_epochs=1)
    pack = make_partners("stag-hunt", CONFIG, ("people",), short, tmp_path / "s", Watcher())
    assert pack.partners[0].how["epochs"] == 1
    longer = made(tmp_path / "long", recorded).partners[0].how
    assert longer["held_out_loss"] < pack.partners[0].how["held_out_loss"]
    assert np.isfinite(longer["chance_loss"])
