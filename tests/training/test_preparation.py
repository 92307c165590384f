"""Goals that a run learns from recordings of its own before its first step."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.algorithms.hop_plus.config import RecordingsConfig
from coplay.algorithms.rules import draw_rules
from coplay.api.training import make_config
from coplay.core.errors import UserError
from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.matches.population import Population
from coplay.training.partner_packs import FamilyData, write_pack
from coplay.training.phases import plan_phases
from coplay.training.preparation import check_taught, population, records
from coplay.training.run import load_run

GAME = {"height": 2, "width": 3, "players": 2, "stags": 1, "hares": 1, "horizon": 5}
SMALL: dict[str, Any] = {
    **{"copies": 4, "rollout": 8, "block": 1, "steps": 64, "episodes": 4},
    **{"checkpoint_every": 32, "minibatches": 2, "epochs": 1},
    "network.hidden": (8,),
    "goals.dim": 2,
    "goals.opponent_hidden": (8,),
    "goals.prototypes": 3,
    "models.chunk_length": 4,
    "models.buffer_chunks": 8,
    "models.batch_chunks": 4,
}


def config(**fields: Any) -> Any:
    return make_config("hop-plus", "stag-hunt", GAME, SMALL | fields)


def test_an_opponent_model_that_learns_from_nothing_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    game = coplay.make_game("stag-hunt", **GAME)
    check_taught(config(), game)
    check_taught(config(**{"recordings.samples": 0, "models.learn_opponents": True}), game)
    with pytest.raises(UserError, match="learn from nothing"):
        check_taught(config(**{"recordings.samples": 0}), game)
    monkeypatch.setattr(StagHunt, "scripted", {})
    with pytest.raises(UserError, match="no scripted players"):
        check_taught(config(), game)
    assert records(config().learner) and not records(config(**{"goals.from": "x"}).learner)


def test_who_is_recorded() -> None:
    game = coplay.make_game("stag-hunt", **GAME)
    mix, kinds = population(game, RecordingsConfig(partners=5, habits=4), 0)
    assert kinds == ("ns", "nh", "random", "rules", "habits")
    shares = np.array(mix.weights) / sum(mix.weights)
    np.testing.assert_allclose(shares, [2 / 15] * 3 + [6 / 15, 3 / 15])
    assert population(game, RecordingsConfig(partners=0, habits=0), 0)[1] == ("ns", "nh", "random")
    habits = mix.players[-1]
    assert isinstance(habits, Population) and (habits.size, habits.alike) == (4, False)
    (kind,) = habits.kinds
    np.testing.assert_array_equal(jnp.argmax(kind.logits, axis=1), [0, 1, 2, 3])  # type: ignore[attr-defined]


@pytest.fixture
def pack(tmp_path: Path) -> str:
    game = coplay.make_game("stag-hunt", **GAME)
    arrays = jax.tree.map(lambda x: np.asarray(x, np.float32), draw_rules(game, 3, 7))
    data = FamilyData(arrays, [{"number": row} for row in range(3)])
    write_pack(tmp_path / "pack", "stag-hunt", StagHuntConfig(**GAME), 7, {"rules": data})
    return str(tmp_path / "pack")


def test_of_a_pack_only_its_partners_are_recorded(pack: str) -> None:
    """Everybody learns in the run; the partners sit in the recordings, one drawn for each seat and
    episode."""
    game = coplay.make_game("stag-hunt", **GAME)
    asked = config(partners=pack)
    check_taught(asked, game)
    mix, kinds = population(game, RecordingsConfig(), 0, pack)
    (drawn,) = mix.players
    assert kinds == ("partners",) and isinstance(drawn, Population)
    assert (drawn.size, drawn.meeting, drawn.alike) == (3, 1, False)
    (phase,) = plan_phases(config(partners=pack, **{"models.learn_opponents": True}), game)
    assert phase.meeting == 0 and phase.entries == ("hop-plus",) * 2 and not phase.others
    for fields, words in {
        "goals": ({"goals.from": "x"}, "leave out --goals.from"),
        "samples": ({"recordings.samples": 0}, "above 0"),
        "company": ({"company": "mixed"}, "leave out --company"),
    }.values():
        with pytest.raises(UserError, match=words):
            check_taught(config(partners=pack, **fields), game)


@pytest.mark.slow
def test_the_plain_command_records_learns_and_resumes_to_the_bit(tmp_path: Path) -> None:
    fields = SMALL | {"recordings.samples": 300, "recordings.partners": 4, "recordings.epochs": 1}
    whole, cut = (str(tmp_path / name) for name in ("whole", "cut"))
    coplay.train("hop-plus", "stag-hunt", whole, game_fields=GAME, quiet=True, **fields)
    fields |= {"steps": 32}
    coplay.train("hop-plus", "stag-hunt", cut, game_fields=GAME, quiet=True, **fields)
    coplay.train("hop-plus", "stag-hunt", cut, resume=True, steps=64, quiet=True)
    (of_whole,), (of_cut,) = (load_run(path).states for path in (whole, cut))
    for one, other in zip(*map(jax.tree.leaves, (of_whole, of_cut)), strict=True):
        np.testing.assert_array_equal(one, other)
    kept = json.loads((tmp_path / "whole/began_with/goals/config.json").read_text())
    assert kept["kinds"] == ["ns", "nh", "random", "rules", "habits"]
    # What it begins with is what it was taught, and self-play leaves that alone.
    taught = coplay.load_run(whole).learner(0)[1].goals
    assert taught.memory_size == 3
    assert all(report.whole for report in coplay.check(whole))
