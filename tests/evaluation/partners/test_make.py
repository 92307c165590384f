"""Packs are made from a seed, go on where they were interrupted, and refuse what they cannot do."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coplay
from coplay.core.errors import UserError
from coplay.evaluation.partners.config import PartnersConfig
from coplay.evaluation.partners.make import make_partners
from coplay.games.stag_hunt import StagHuntConfig
from coplay.training.partner_packs import Pack, read_pack
from coplay.training.trainer import Watcher

CONFIG = StagHuntConfig(height=3, width=3, players=2, hares=2, horizon=6)


def made(folder: Path, families: tuple[str, ...] = ("rules",), **fields: Any) -> Pack:
    config = PartnersConfig(**{"rules": 4} | fields)
    return make_partners("stag-hunt", CONFIG, families, config, folder, Watcher())


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    one, same, other = made(tmp_path / "a"), made(tmp_path / "b"), made(tmp_path / "c", seed=1)
    files = [(pack.folder / "rules.npz").read_bytes() for pack in (one, same, other)]
    assert files[0] == files[1] != files[2]
    assert [partner.name for partner in one.partners] == [f"rules-{n}" for n in range(4)]
    how = one.partners[0].how
    assert sum(how["preference"].values()) == pytest.approx(1, abs=0.01)
    assert set(how["preference"]) == set(coplay.make_game("stag-hunt").blocks)


def test_wrong_requests_leave_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "pack"
    with pytest.raises(UserError, match="unknown family 'rule'"):
        made(folder, ("rule",))
    with pytest.raises(UserError, match="one family at least"):
        made(folder, ())
    with pytest.raises(UserError, match="must grow"):
        made(folder, selfplay_steps=(5, 5))
    assert not folder.exists()
    made(folder)
    with pytest.raises(UserError, match="is there already"):
        made(folder)


@pytest.mark.slow
def test_selfplay_goes_on_where_it_was(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"selfplay_seeds": 2, "selfplay_steps": (256, 512), "copies": 16}
    whole = made(tmp_path / "whole", ("selfplay",), **fields)
    assert [one.how["steps"] for one in whole.partners] == [256, 256, 512, 512]
    folder = tmp_path / "pack"

    class Stop(Watcher):
        def say(self, text: str) -> None:
            if "final evaluation" in text and (folder / "runs" / "selfplay-512").exists():
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_partners(
            "stag-hunt", CONFIG, ("selfplay",), PartnersConfig(rules=4, **fields), folder, Stop()
        )
    again = made(folder, ("selfplay",), **fields)
    with np.load(whole.folder / "selfplay.npz") as a, np.load(folder / "selfplay.npz") as b:
        assert all(np.array_equal(a[name], b[name]) for name in a if name != "note.json")
    found = coplay.show_partners(again.folder, episodes=4)
    assert len(found["partners"]) == 4 and read_pack(folder) == again
