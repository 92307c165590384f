"""Own players, own games and runs are told apart by what they are, not by their names."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest

import coplay
from coplay.algorithms import registry
from coplay.core.loading import _import_file
from coplay.evaluation.adaptation.best_response import BestResponseConfig, Opposition
from coplay.evaluation.adaptation.identity import identities
from coplay.games.stag_hunt import StagHuntConfig

POLICY = """
import jax.numpy as jnp, coplay
def stay(game, state):
    return jnp.eye(game.actions)[helper()]
def helper():
    return 4
coplay.register_player("keeper", stay)
"""


@pytest.fixture(autouse=True)
def players_are_forgotten() -> Iterator[None]:
    before = dict(registry.PLAYERS)
    yield
    registry.PLAYERS.clear()
    registry.PLAYERS.update(before)


def opposition(*against: str) -> Opposition:
    return Opposition("stag-hunt", StagHuntConfig(), against)


def test_an_edited_policy_is_another_player(tmp_path: Path) -> None:
    file, found = tmp_path / "own.py", []
    for text in (POLICY, POLICY, POLICY.replace("return 4", "return 3")):
        file.write_text(text)
        _import_file(file)
        met = opposition("keeper", "ns", "mix:ns:keeper")
        found.append(met.folder(tmp_path, BestResponseConfig()))
    assert found[0] == found[1] != found[2]


class Leaning(coplay.Player):
    towards: Any
    often: int = 3


def test_a_player_of_other_values_is_another(tmp_path: Path) -> None:
    found = set()
    for player in (Leaning(jnp.zeros(2)), Leaning(jnp.ones(2)), Leaning(jnp.ones(2), 4)):
        registry.PLAYERS["leaning"] = player
        found.add(identities("stag-hunt", ("leaning",))[0])
    assert len(found) == 3


def test_a_run_is_its_checkpoint(tmp_path: Path) -> None:
    saved = tmp_path / "run" / "checkpoints"
    saved.mkdir(parents=True)
    (tmp_path / "run" / "config.json").write_text("{}")
    found = []
    for content in (b"a", b"b", b"a"):
        (saved / "step-000000000000100.npz").write_bytes(content)
        found.append(identities("stag-hunt", (f"{tmp_path}/run@seat=1",)))
    assert found[0] == found[2] != found[1]
    (saved / "best.npz").write_bytes(b"c")
    assert identities("stag-hunt", (f"{tmp_path}/run@best",)) != found[0]


def test_every_setting_of_best_responses_counts(tmp_path: Path) -> None:
    config = BestResponseConfig()
    others = [replace(config, seeds=1), replace(config, episodes=100), replace(config, stage=1000)]
    folders = {opposition("ns", "nh", "ns").folder(tmp_path, one) for one in (config, *others)}
    assert len(folders) == 4
