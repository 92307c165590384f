"""Planners are kept as numbers and a configuration; what searches stands in the program."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import coplay
from coplay.algorithms.hop.config import HOPConfig
from coplay.algorithms.hop.learner import HOP
from coplay.core.config import leaves, to_json, with_fields
from coplay.core.errors import UserError
from coplay.evaluation.partners.config import PartnersConfig
from coplay.evaluation.partners.make import make_partners
from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.nn.networks import view_shape
from coplay.training.partner_packs import (
    ABOUT,
    FamilyData,
    Pack,
    new_planner,
    read_pack,
    stack,
    write_pack,
)
from coplay.training.trainer import Watcher
from coplay.training.upgrade import ADDED

CONFIG = StagHuntConfig(height=3, width=3, players=2, hares=2, horizon=6)


def made(folder: Path) -> Pack:
    config = PartnersConfig(planners=2, planners_steps=64, copies=2)
    return make_partners("stag-hunt", CONFIG, ("planners",), config, folder, Watcher())


def pack_game() -> Any:
    return coplay.make_game("stag-hunt", height=3, width=3, players=2, hares=2, horizon=6)


def filled(folder: Path, config: HOPConfig, how: dict[str, Any]) -> tuple[Pack, Any]:
    """A pack of two planners, all numbers of which are 0 and 1, and the form of such a planner."""
    game = pack_game()
    like = jax.eval_shape(lambda key: new_planner(game, config, HOP, key), jax.random.key(0))
    players = [jax.tree.map(lambda x, n=n: np.full(x.shape, n, x.dtype), like) for n in range(2)]
    data = {"planners": FamilyData(stack(players), [how, how])}
    return write_pack(folder, "stag-hunt", CONFIG, 0, data), like


def test_a_game_without_goals_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StagHunt, "goals", None)
    with pytest.raises(UserError, match="leave out the family 'planners'"):
        made(tmp_path / "pack")
    assert not (tmp_path / "pack").exists()


def test_a_planner_is_numbers_and_a_configuration(tmp_path: Path) -> None:
    config = HOPConfig()
    how = {"learner": "hop", "config": to_json(config)}
    pack, like = filled(tmp_path / "pack", config, how)
    game = pack_game()
    player = read_pack(pack.folder).player("1", game)
    same: Any = jax.tree.structure(player)
    assert same == jax.tree.structure(like)
    assert all(np.all(np.asarray(leaf) == 1) for leaf in jax.tree.leaves(player))
    about = json.loads((pack.folder / ABOUT).read_text())
    for partner in about["partners"]:
        partner["how"] = how | {"learner": "os"}
    (pack.folder / ABOUT).write_text(json.dumps(about))
    with pytest.raises(UserError, match="unknown learner of a planner"):
        read_pack(pack.folder).player("0", game)


def test_planners_of_earlier_packs_are_as_they_were(tmp_path: Path) -> None:
    config = HOPConfig()
    mine = {leaf.path for leaf in leaves(config)}
    earlier = {path: value for path, value in ADDED.items() if path in mine}
    config = with_fields(config, earlier)
    stated = to_json(config)
    for path in earlier:
        part, _, name = path.partition(".")
        del stated[part][name]
    pack, _ = filled(tmp_path / "pack", config, {"learner": "hop", "config": stated})
    player: Any = read_pack(pack.folder).player("0", pack_game())
    assert player.config == config.resolved(view_shape(pack_game()))


@pytest.mark.slow
def test_planners_play_from_a_pack_and_are_the_same_again(tmp_path: Path) -> None:
    pack, again = made(tmp_path / "one"), made(tmp_path / "two")
    for name in ("planners.npz", ABOUT):
        assert (pack.folder / name).read_bytes() == (again.folder / name).read_bytes()
    coplay.play(pack_game(), f"{pack.entry(1)},ns", episodes=2)
