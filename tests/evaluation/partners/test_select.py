"""Selection by the diversity of best responses, and parts that are packs of their own."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import coplay
from coplay.algorithms.rules import RuleParameters, draw_rules
from coplay.core.errors import UserError
from coplay.evaluation.partners import select
from coplay.evaluation.partners.config import PartnersConfig
from coplay.evaluation.partners.make import make_partners
from coplay.evaluation.partners.responses import settled
from coplay.evaluation.partners.select import SelectConfig
from coplay.games.stag_hunt import StagHuntConfig
from coplay.training.partner_packs import FamilyData, Pack, Partner, read_pack, write_pack
from coplay.training.trainer import Watcher

CONFIG = StagHuntConfig(height=3, width=3, players=2, hares=2, horizon=6)


def test_partners_are_taken_as_the_determinant_says() -> None:
    features = np.random.default_rng(0).normal(size=(9, 3))
    features[5] = features[2]  # a copy is taken last
    likeness = select.kernel(features)
    order, gains = select.most_diverse(likeness, 9)
    taken: list[int] = []
    before = 1.0
    for row, gain in zip(order, gains, strict=True):
        by = {
            one: float(np.linalg.det(likeness[np.ix_([*taken, one], [*taken, one])]))
            for one in range(9)
            if one not in taken
        }
        assert by[row] == pytest.approx(max(by.values()), rel=1e-3, abs=1e-5)
        if row not in (2, 5) or not {2, 5} & set(taken):
            assert gain == pytest.approx(by[row] / before, rel=1e-3, abs=1e-4)
        taken, before = [*taken, row], max(by[row], 1e-12)
    assert order[-1] in (2, 5) and gains[-1] < 1e-4
    assert select.most_diverse(likeness, 4)[0] == order[:4]


def test_features_without_differences_do_not_count() -> None:
    features = np.array([[0.0, 7.0], [1.0, 7.0], [2.0, 7.0]])
    assert np.allclose(select.kernel(features), select.kernel(features[:, :1] * 100))
    assert np.allclose(np.diag(select.kernel(features)), 1)


def test_families_are_apart() -> None:
    families = ["rules", "diverse", "selfplay", "planners", "rewards"]
    assert select.split_families(families, "families") == {"train": [0, 2], "held-out": [1, 3, 4]}
    assert select.split_families(families, "none") == {"kept": [0, 1, 2, 3, 4]}
    with pytest.raises(UserError, match="nothing would be in held-out"):
        select.split_families(["rules"], "families")


def rules(folder: Path) -> Pack:
    drawn = draw_rules(coplay.make_game("stag-hunt"), 5, 0)
    arrays = RuleParameters(*(np.asarray(x, np.float32) for x in drawn))
    data = FamilyData(arrays, [{"number": row} for row in range(5)])
    return write_pack(folder, "stag-hunt", CONFIG, 3, {"rules": data})


def test_a_part_is_a_pack_of_the_same_partners(tmp_path: Path) -> None:
    pack = rules(tmp_path / "pack")
    part = select.write_part(pack, tmp_path / "pack" / "train", [4, 1])
    assert [one.name for one in part.partners] == ["rules-1", "rules-4"]
    assert read_pack(part.folder) == part == select.write_part(pack, part.folder, [1, 4])
    whole = pack.digests()
    assert part.digests() == {name: whole[name] for name in ("rules-1", "rules-4")}
    one, same = (p.player("rules-4", p.made_game) for p in (pack, part))
    assert jax.tree.all(jax.tree.map(np.array_equal, one, same))
    with pytest.raises(UserError, match="other partners"):
        select.write_part(pack, part.folder, [0])


def test_too_many_candidates_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    many = tuple(Partner(f"rules-{n}", "rules", n, {}) for n in range(61))
    pack = Pack(tmp_path / "pack", "stag-hunt", CONFIG, 0, many)
    with pytest.raises(UserError, match="61 candidates"):
        select.select_partners(pack, SelectConfig(), Watcher())
    assert not list(tmp_path.iterdir())


def test_a_training_is_settled_if_its_end_is_flat() -> None:
    assert settled(np.array([0.0, 1.0, 2.0, 2.01])) and not settled(np.array([0.0, 1.0, 2.0, 3.0]))
    assert not settled(np.zeros(2))


@pytest.mark.slow
def test_a_selection_is_made_again_bit_for_bit_and_goes_on(tmp_path: Path) -> None:
    best = {"short": 512, "steps": 512, "seeds": 1, "copies": 16, "episodes": 16}
    best |= {"simulations": 4, "search_episodes": 4}
    files = []

    class Stop(Watcher):
        stop = False

        def say(self, text: str) -> None:
            if self.stop and text.startswith("best response 1"):
                raise KeyboardInterrupt

    for name in ("whole", "cut"):
        folder = tmp_path / name
        made = PartnersConfig(rules=3, rewards=3, rewards_steps=512, copies=16)
        make_partners("stag-hunt", CONFIG, ("rules", "rewards"), made, folder, Watcher())
        fields: dict[str, Any] = {"keep": 2, "best": best}
        watcher = Stop()
        watcher.stop = name == "cut"
        if watcher.stop:
            with pytest.raises(KeyboardInterrupt):
                coplay.select_partners(folder, watcher=watcher, **fields)
        found = coplay.select_partners(folder, quiet=True, **fields)
        written = sorted(path for path in folder.rglob("*") if path.is_file())
        same = [path for path in written if path.name not in ("times.json",)]
        files.append({str(path.relative_to(folder)): path.read_bytes() for path in same})
    assert files[0] == files[1]
    assert [len(found[name]["partners"]) for name in ("train", "held-out")] == [2, 2]
    assert "held-out/responses.npz" in files[0] and len(found["train"]["best_responses"]) == 2
    page = coplay.show_partners(folder, episodes=4, page=tmp_path / "page")
    text = (tmp_path / "page" / "index.html").read_text()
    assert page["page"].endswith("index.html") and "Selection" in text and "answers whom" in text
    entry = f"{folder}/held-out@response=0,{folder}/held-out@partner=0"
    game = coplay.make_game("stag-hunt", height=3, width=3, players=2, hares=2, horizon=6)
    coplay.play(game, entry, episodes=4)
    adapted = coplay.adapt(
        "ns",
        partners=f"{folder}/held-out,{folder}/train",
        game=game,
        out=tmp_path / "adapted",
        references=tmp_path / "references",
        steps=64,
        last=32,
        seeds=1,
        quiet=True,
    )
    first = adapted["companies"][0]
    assert first["best_response"] == next(iter(found["held-out"]["best_responses"].values()))
    assert not list((tmp_path / "references").rglob("best_response.json"))
    assert (tmp_path / "adapted" / "families.png").exists()
