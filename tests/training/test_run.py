"""A run opened once: its parts, its players, and own things by name."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import coplay
from coplay.cli.main import run as cli
from coplay.core import loading
from coplay.games.registry import GAMES
from coplay.reports.results import print_summary
from coplay.training.run import Run, RunFolder, load_players, load_seat, open_entry

OWN = """
from dataclasses import dataclass
import jax.numpy as jnp
import coplay
from coplay.games.diagnostic import Identity, IdentityConfig

@dataclass(frozen=True)
class OwnConfig(IdentityConfig):
    '''Mine.'''

class Own(Identity):
    name = "own-of-test"

def first(game, state):
    return jnp.eye(game.actions)[0]

coplay.register_game(OwnConfig, Own)
coplay.register_player("first-of-test", first)
"""
SMALL = (
    "--copies 4 --rollout 4 --block 1 --network.hidden 4 --minibatches 1 --epochs 1 --episodes 4"
)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.py").write_text(OWN)
    return folder / "own.py"


@pytest.fixture(scope="module")
def trained(own: Path) -> Path:
    """A run on an own game, with an own player in a seat, made by the command line."""
    out = own.parent / "run"
    words = f"train ppo --load {own} --game own-of-test --game.players 2 --steps 32 {SMALL}"
    assert cli([*words.split(), "--seating", "ppo,first-of-test", "--out", str(out)]) == 0
    return out


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process: nothing is loaded."""
    monkeypatch.setattr(loading, "_LOADED", [])
    monkeypatch.delitem(GAMES, "own-of-test")


@pytest.mark.slow
def test_a_run_is_one_object(trained: Path) -> None:
    run = coplay.load_run(trained)
    assert run.config.player == "ppo" and run.game.name == "own-of-test" and run.seeds == [0]
    assert run.learned == [0] and run.entries == [str(trained), "first-of-test"]
    assert run.summary is not None and run.summary["steps"] == 32
    assert [row["step"] for row in run.metrics] == [16, 32]
    with pytest.raises(coplay.UserError, match="nobody learned in seat 1"):
        run.player(1)
    with pytest.raises(coplay.UserError, match=r"the seeds \[0\]"):
        run.player(0, seed=4)


def test_a_metric_is_a_curve(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = coplay.load_run(trained)
    steps, values = run.curve("entropy/seat_0")
    assert steps.tolist() == [16, 32]
    assert values.tolist() == [[row["entropy/seat_0"] for row in run.metrics]]
    with pytest.raises(coplay.UserError, match="did you mean 'entropy/seat_0'"):
        run.curve("entropy/seat0")
    rows = [{"step": 8, "seed": 0, "x": None}, {"step": 4, "seed": 0, "x": 2.0}]
    monkeypatch.setattr("coplay.training.run.read_rows", lambda path: rows)
    steps, values = run.curve("x")
    assert steps.tolist() == [4, 8] and values[0, 0] == 2 and np.isnan(values[0, 1])


def test_its_player_is_asked_for_one_observation(trained: Path) -> None:
    run = coplay.load_run(trained)
    player = run.player(seat=0)
    seen = run.game.observe(run.game.reset(jax.random.key(0)))
    action = player.act(jax.tree.map(lambda x: x[0], seen))
    (step,) = (s for s in coplay.episodes(run.game, run.entries) if s.time == 0)
    np.testing.assert_allclose(player.probabilities, step.probabilities[0], rtol=1e-5)
    assert 0 <= action < run.game.actions


def test_several_seats_open_a_run_once(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    begin = Run.__init__

    def counted(self: Run, *given: Any) -> None:
        opened.append(given)
        begin(self, *given)

    monkeypatch.setattr(Run, "__init__", counted)
    entry = f"{trained}@seat=0"
    first, second = open_entry(entry), open_entry(entry)
    assert first.run is second.run and len(opened) <= 1
    load_players(entry, first.run.game)
    assert len(opened) <= 1
    path = next(trained.glob("checkpoints/*.npz"))
    path.touch()
    assert open_entry(entry).run is not first.run, "a new checkpoint is read"


def test_own_things_by_name_everywhere(trained: Path, own: Path, capsys: Any) -> None:
    load = ["--load", str(own)]
    data = json.loads((trained / "config.json").read_text())
    assert data["loads"] == [str(own)]
    assert cli(["list", str(trained.parent), "--json", *load]) == 0
    assert json.loads(capsys.readouterr().out)[0]["game"] == "own-of-test"
    entries = f"{trained},first-of-test"
    assert cli(["play", *load, "--seating", entries, "--episodes", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["seats"][1]["player"] == "first-of-test"
    print_summary(json.loads((trained / "summary.json").read_text()), False, RunFolder(trained))
    said = capsys.readouterr().out.partition("what to try next:")[2]
    assert said.count(f" --load {own}\n") == 3, "all but TensorBoard need the file"


def test_a_run_is_no_reason_to_import_something(
    trained: Path, own: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    forget(monkeypatch)
    for command in (["watch"], ["train", "ppo", "--resume"], ["adapt"]):
        assert cli([*command, str(trained)]) == 2
        assert f"add --load {own}" in capsys.readouterr().err
    assert "own-of-test" not in GAMES
    assert cli(["list", str(trained.parent), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["game"] == "own-of-test"


@pytest.mark.slow
def test_a_player_sits_in_a_team_of_another_size(tmp_path: Path) -> None:
    """Views of a fixed size are enough; what MAPPO's critic saw of its own team is not needed."""
    out = tmp_path / "four"
    words = f"train mappo --game dispersion --game.nearest 2 --steps 32 {SMALL} --no-pictures"
    assert cli([*words.split(), "--memory.chunk-length", "4", "--out", str(out)]) == 0
    for players in (2, 6):
        game = coplay.make_game("dispersion", nearest=2, players=players)
        seating = [f"{out}@seat={seat % 4}" for seat in range(players)]
        assert len(coplay.play(game, seating, episodes=4)["seats"]) == players
        assert len(list(coplay.episodes(game, seating))) > 1
    with pytest.raises(coplay.UserError, match="different game"):
        coplay.play(coplay.make_game("dispersion", nearest=3), [f"{out}@seat=0"] * 4, episodes=4)
    with pytest.raises(coplay.UserError, match="different game"):
        load_seat(f"{out}@seat=0", coplay.make_game("dispersion", nearest=2, players=2), 0)
