"""Packs are read back as they were written, and nothing else is accepted."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.algorithms.rules import RuleParameters, draw_rules
from coplay.core.errors import UserError
from coplay.games.stag_hunt import StagHuntConfig
from coplay.training.partner_packs import ABOUT, FamilyData, Pack, is_pack, read_pack, write_pack
from coplay.training.players import make_player

CONFIG = StagHuntConfig(height=3, width=3, players=2, hares=2)


def rules(count: int = 3) -> FamilyData:
    drawn = draw_rules(coplay.make_game("stag-hunt"), count, 0)
    arrays = RuleParameters(*(np.asarray(x, np.float32) for x in drawn))
    return FamilyData(arrays, [{"number": row} for row in range(count)])


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    return write_pack(tmp_path / "pack", "stag-hunt", CONFIG, 5, {"rules": rules()})


def game() -> Any:
    return coplay.make_game("stag-hunt", height=3, width=3, players=2, hares=2)


def test_a_pack_is_read_as_it_was_written(pack: Pack) -> None:
    found = read_pack(pack.folder)
    assert found == pack and is_pack(f"{pack.folder}@partner=1")
    player = make_player(f"{pack.folder}@partner=rules-1", game())
    wanted = jax.tree.map(lambda x: x[1], rules().arrays)
    assert jax.tree.all(jax.tree.map(jnp.array_equal, player.parameters, wanted))  # type: ignore[attr-defined]


def test_entries_that_name_no_partner(pack: Pack) -> None:
    for entry, words in {
        f"{pack.folder}": "choose one",
        f"{pack.folder}@best": "choose one",
        f"{pack.folder}@partner=7": "unknown partner",
    }.items():
        with pytest.raises(UserError, match=words):
            make_player(entry, game())


def test_another_board_is_refused(pack: Pack) -> None:
    with pytest.raises(UserError, match="other views or actions"):
        make_player(f"{pack.folder}@partner=0", coplay.make_game("stag-hunt"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "run"}, "no pack of partners"),
        ({"partners": [{"name": "x", "family": "os", "row": 0, "how": {}}]}, "unknown family"),
        ({"partners": [{"name": "x", "family": "rules", "row": 2, "how": {}}]}, "not numbered"),
        ({"partners": [3]}, "object with fields"),
        ({"partners": []}, "no partners"),
        ({"checksums": {}}, "missing or not the file"),
        ({"seed": "one"}, "'seed' must be int"),
        ({"game_name": "pettingzoo:os:system", "game": {"options": ["command=true"]}}, "os"),
    ],
)
def test_what_a_stranger_may_not_say(pack: Pack, change: dict[str, Any], words: str) -> None:
    about = json.loads((pack.folder / ABOUT).read_text()) | change
    (pack.folder / ABOUT).write_text(json.dumps(about))
    with pytest.raises(UserError, match=words):
        read_pack(pack.folder).player("0", game())


def test_a_changed_file_is_noticed(pack: Pack) -> None:
    path = pack.folder / "rules.npz"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(UserError, match="not the file"):
        read_pack(pack.folder)


def test_check_finds_a_changed_word(pack: Pack) -> None:
    """Also in what no other file states a checksum of, and in packs below the pack."""
    write_pack(pack.folder / "train", "stag-hunt", CONFIG, 5, {"rules": rules()})
    assert [report.whole for report in coplay.check(pack.folder)] == [True, True]
    about = pack.folder / "train" / ABOUT
    about.write_text(about.read_text().replace('"number": 1', '"number": 2'))
    first, second = coplay.check(pack.folder)
    assert first.whole and [one.name for one in second.bad] == [ABOUT]
    assert second.usable == "it can be loaded, but was changed"
