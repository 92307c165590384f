"""Best responses in a pack are read back as they were written, and nothing else is accepted."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import coplay
from coplay.algorithms.rules import RuleParameters, draw_rules
from coplay.core.errors import UserError
from coplay.evaluation.adaptation.best_response import (
    BestResponseConfig,
    Opposition,
    best_response,
    in_pack,
)
from coplay.games.stag_hunt import StagHuntConfig
from coplay.nn.networks import make_network, view_shape
from coplay.training.partner_packs import FamilyData, Pack, stack, write_pack
from coplay.training.partner_responses import (
    FIGURES,
    Response,
    read_responses,
    response_network,
    write_responses,
)
from coplay.training.players import make_player
from coplay.training.trainer import Watcher

CONFIG = StagHuntConfig(height=3, width=3, players=2, hares=2)


def networks(game: Any, number: int) -> Any:
    def one(outputs: int) -> Any:
        config = response_network(game)
        key = jax.random.key(number)
        shapes = jax.eval_shape(lambda: make_network(config, view_shape(game), outputs, key, 1.0))
        return jax.tree.map(lambda x: np.full(x.shape, number, x.dtype), shapes)

    return one(game.actions), one(1)


@pytest.fixture(scope="module")
def written(tmp_path_factory: Any) -> Pack:
    drawn = draw_rules(coplay.make_game("stag-hunt"), 2, 0)
    arrays = RuleParameters(*(np.asarray(x, np.float32) for x in drawn))
    data = {"rules": FamilyData(arrays, [{}, {}])}
    folder = tmp_path_factory.mktemp("packs") / "pack"
    made = write_pack(folder, "stag-hunt", CONFIG, 5, data)
    found = {f"rules-{n}": Response(2.0 + n, 0.1, "search", {"curve": [1.0]}) for n in range(2)}
    write_responses(made, found, stack([networks(made.made_game, n) for n in range(2)]))
    return made


@pytest.fixture
def pack(written: Pack, tmp_path: Path) -> Pack:
    """A copy, which a test may spoil."""
    shutil.copytree(written.folder, tmp_path / "pack")
    return replace(written, folder=tmp_path / "pack")


def test_responses_are_read_as_they_were_written(pack: Pack) -> None:
    found = read_responses(pack)
    assert found["rules-1"] == Response(3.0, 0.1, "search", {"curve": [1.0]})
    player: Any = make_player(f"{pack.folder}@response=rules-1", pack.made_game, greedy=True)
    assert player.greedy and float(player.actor.head.weight[0, 0]) == 1.0
    with pytest.raises(UserError, match="by its partner alone"):
        make_player(f"{pack.folder}@best@response=0", pack.made_game)


def test_an_adaptation_takes_what_the_pack_holds(pack: Pack, tmp_path: Path) -> None:
    game = StagHuntConfig(height=3, width=3, players=3, hares=2)
    alike = Opposition("stag-hunt", game, (pack.entry(1),) * 2)
    found = best_response(alike, tmp_path / "none", BestResponseConfig(), Watcher())
    assert (found["reward"], found["stderr"], found["by"]) == (3.0, 0.1, "search")
    assert not (tmp_path / "none").exists()
    assert in_pack((pack.entry(0), pack.entry(1))) is None and in_pack(("ns", "ns")) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"form": 99}, "no best responses"),
        ({"pack": "0"}, "other partners"),
        ({"responses": {}}, "'rules-0' is missing"),
        ({"responses": {"rules-0": {"reward": "2"}}}, "'reward' must be float"),
        (
            {"responses": {"rules-0": {"reward": float("nan"), "stderr": 1.0}}},
            "must be finite",
        ),
        ({"checksum": "0"}, "not the file"),
    ],
)
def test_what_a_stranger_may_not_say(pack: Pack, change: dict[str, Any], words: str) -> None:
    path = pack.folder / FIGURES
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(UserError, match=words):
        make_player(f"{pack.folder}@response=0", pack.made_game)


def test_a_pack_without_responses(pack: Pack) -> None:
    (pack.folder / FIGURES).unlink()
    assert read_responses(pack) == {} and in_pack((pack.entry(0),)) is None
    with pytest.raises(UserError, match="coplay partners select"):
        make_player(f"{pack.folder}@response=0", pack.made_game)
