"""A shared player decides as the original does, and a bent or damaged file makes no folder."""

import io
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.algorithms.registry import LEARNERS, new_learner
from coplay.cli.main import run as command
from coplay.core.errors import UserError
from coplay.nn.networks import view_shape
from coplay.training import checkpoints, shared_players
from coplay.training.run import load_run
from coplay.training.shared_players import _without_folders, read_player, write_player
from tests.trust.strangers import changed, make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("original") / "run")


@pytest.fixture(scope="module")
def file(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("file") / "hunter.player.npz"
    write_player(str(run), path)
    return path


@pytest.fixture(scope="module")
def imported(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imported") / "hunter"
    read_player(file, folder)
    return folder


def bits(tree: Any) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in jax.tree.leaves(tree)]


@pytest.mark.slow
def test_it_decides_bit_for_bit_as_the_original(run: Path, imported: Path) -> None:
    first, second = load_run(run), load_run(imported)
    assert first.game.config == second.game.config  # type: ignore[attr-defined]
    seen = first.game.observe(first.game.reset(jax.random.key(0)))
    mine = jax.tree.map(lambda x: x[1], seen)
    players = [one.player(1, random_seed=3) for one in (first, second)]
    actions = [player.act(mine) for player in players]
    assert actions[0] == actions[1]
    assert bits(players[0].probabilities) == bits(players[1].probabilities)
    for seat in range(2):
        learned = [one.learner(seat) for one in (first, second)]
        arrays = [bits(learner.player(state, seat)) for learner, state in learned]
        assert arrays[0] == arrays[1]


def test_what_only_training_needs_stays_at_home(run: Path, file: Path, imported: Path) -> None:
    with np.load(file) as data:
        assert not [name for name in data.files if "optimiser" in name]
    (state,) = load_run(imported).states
    assert all(not np.asarray(x).any() for x in jax.tree.leaves(state.actor_optimiser))
    assert any(np.asarray(x).any() for x in jax.tree.leaves(state.actor))
    assert file.stat().st_size < next(run.glob("checkpoints/step-*.npz")).stat().st_size
    assert str(run.parent) not in file.read_bytes().decode("latin-1"), "no path goes along"


def test_it_is_listed_checked_and_not_resumed(imported: Path, capsys: Any) -> None:
    assert command(["list", str(imported.parent), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["kind"] == "player" and row["game"] == "stag-hunt" and "ppo, 64" in row["words"]
    (report,) = coplay.check(imported)
    assert report.kind == "player" and report.whole, report.findings
    assert command(["train", "ppo", "--resume", str(imported)]) == 2
    assert "cannot be resumed" in capsys.readouterr().err
    summary = load_run(imported).summary
    assert summary is not None and summary["steps"] == 64


def test_a_changed_folder_is_noticed(imported: Path, tmp_path: Path) -> None:
    folder = tmp_path / "hunter"
    shutil.copytree(imported, folder)
    changed(folder / "card.json", lambda card: card.update(step=65))
    (report,) = coplay.check(folder)
    assert [one.name for one in report.bad] == ["card.json"]


def test_arrays_that_only_training_needs_are_not_made_beyond_measure(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small file may name a configuration with huge buffers."""
    monkeypatch.setattr(shared_players, "memory", lambda: 1000)
    with pytest.raises(UserError, match="arrays that only training needs"):
        read_player(file, tmp_path / "big")
    assert not (tmp_path / "big").exists()


def test_it_can_be_exported_again(imported: Path, file: Path, tmp_path: Path) -> None:
    write_player(str(imported), tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == file.read_bytes()


def test_what_cannot_be_exported(run: Path, file: Path, tmp_path: Path) -> None:
    for entry, words in {
        f"{run}@seat=1": "all seats it learned",
        f"{run}@seed=4": r"the seeds \[0\]",
        f"{run}@clip=0.1": "all seats it learned",
    }.items():
        with pytest.raises(UserError, match=words):
            write_player(entry, tmp_path / "new.npz")
    with pytest.raises(UserError, match="there already"):
        write_player(str(run), file)
    assert write_player(f"{run}@best", tmp_path / "best.npz")["summary"] is None


def test_other_runs_are_random_players_in_its_configuration() -> None:
    assert _without_folders("ppo,runs/a@best,ns,mix:nh:x/y") == "ppo,random,ns,mix:nh:random"
    assert _without_folders("200000:0=runs/hop@search.draws=5") == "200000:0=random"
    assert (
        _without_folders("switcher:ns:nh:step=8,ppo:clip=0.1")
        == "switcher:ns:nh:step=8,ppo:clip=0.1"
    )


# --- files of strangers ------------------------------------------------------------------------


def bent(file: Path, out: Path, change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> Path:
    """A file with another card or other arrays."""
    with np.load(file) as data:
        arrays = {name: data[name] for name in data.files}
    card = json.loads(arrays.pop(checkpoints.NOTE).tobytes())
    change(card, arrays)
    arrays[checkpoints.NOTE] = np.frombuffer(json.dumps(card).encode(), np.uint8)
    np.savez(out, **arrays)
    return out


def first_array(arrays: dict[str, Any]) -> str:
    return next(iter(arrays))


STRANGE: dict[str, tuple[Callable[[dict[str, Any], dict[str, Any]], Any], str]] = {
    "kind": (lambda card, _: card.update(kind="virus"), "no player that this version reads"),
    "form": (lambda card, _: card.update(form=2), "no player that this version reads"),
    "no config": (lambda card, _: card.pop("config"), "'config' must be dict"),
    "step": (lambda card, _: card.update(step=-1), "'step' must be"),
    "far step": (lambda card, _: card.update(step=10**30), "'step' must be"),
    "summary": (lambda card, _: card.update(summary={"game": 3}), "'game' must be str"),
    "model": (
        lambda card, _: card.update(models={"../../../x": {}}),
        "a model that is unknown here",
    ),
    "seeds": (lambda card, _: card["config"]["run"].update(seeds=2), "one seed, not 2"),
    "code": (
        lambda card, _: card["config"].update(
            game_name="pettingzoo:os:system", game={"options": ["command=true"]}
        ),
        "os",
    ),
    "folder": (
        lambda card, _: card["config"]["run"].update(seating="ppo,/etc/passwd/x"),
        "which is neither below the current folder",
    ),
    "terabytes": (
        lambda card, _: card["config"]["learner"]["network"].update(hidden=[10**6, 10**6]),
        "does not fit this program",
    ),
    "shape": (
        lambda _, arrays: arrays.update({first_array(arrays): np.zeros((3, 3), np.float32)}),
        "expected",
    ),
    "missing": (lambda _, arrays: arrays.pop(first_array(arrays)), "1 arrays differ"),
    "more": (lambda _, arrays: arrays.update({"../../../evil": np.ones(3)}), "1 arrays differ"),
    "text": (
        lambda _, arrays: arrays.update({first_array(arrays): np.array(["a"])}),
        "holds no plain numbers",
    ),
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_bent_file_makes_no_folder(name: str, file: Path, tmp_path: Path) -> None:
    change, words = STRANGE[name]
    path = bent(file, tmp_path / "bent.npz", change)
    with pytest.raises(UserError, match=words) as raised:
        read_player(path, tmp_path / "out")
    assert ".tmp" not in str(raised.value)
    assert [one.name for one in tmp_path.iterdir()] == ["bent.npz"]


def bomb(path: Path) -> None:
    """An archive of a few kilobytes that says it holds gigabytes of zeros."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (1 << 28,)}
    )
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("note.json.npy", "w", force_zip64=True) as entry,
    ):
        entry.write(header.getvalue())
        for _ in range(96):
            entry.write(bytes(1 << 20))


def test_damaged_files_and_bombs_are_refused(file: Path, tmp_path: Path) -> None:
    half, noise, packed = (tmp_path / name for name in ("half.npz", "noise.npz", "bomb.npz"))
    half.write_bytes(file.read_bytes()[:-300])
    noise.write_bytes(b"\x80\x04pickle")
    bomb(packed)
    assert packed.stat().st_size < 200_000
    for path in (half, noise, packed, tmp_path):
        with pytest.raises(UserError, match="this is no exported player"):
            read_player(path, tmp_path / "out")
    with pytest.raises(UserError, match=r"^cannot read .*missing\.npz: there is no such file$"):
        read_player(tmp_path / "missing.npz", tmp_path / "out")
    flipped = bytearray(file.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    half.write_bytes(flipped)
    with pytest.raises(UserError, match=r"damaged player|no exported player"):
        read_player(half, tmp_path / "out")
    link = tmp_path / "link.npz"
    link.symlink_to(file)
    with pytest.raises(UserError, match="a link that leads out"):
        read_player(link, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_taken_stays_as_it_is(file: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="there already"):
        read_player(file, tmp_path / "mine")
    with pytest.raises(UserError, match="its own meaning in seatings"):
        read_player(file, tmp_path / "a,b")
    assert [one.name for one in (tmp_path / "mine").iterdir()] == ["notes.txt"]


# --- what learners declare ---------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_no_player_needs_training_only_fields(name: str) -> None:
    game = coplay.make_game("stag-hunt", height=3, width=3, players=2, hares=2)
    kind, make = LEARNERS[name]
    seats = (0, 1)
    learner = new_learner(
        make, config=kind(), shape=view_shape(game), game_seats=2, seats=seats, active=seats
    )
    state = learner.init(jax.random.key(0), jnp.arange(2))

    def mark(path: Any, x: Any) -> Any:
        if any(getattr(place, "name", None) in learner.training_only for place in path):
            return jnp.zeros_like(x) + 2 if x.dtype != bool else ~x
        return x

    other = jax.tree_util.tree_map_with_path(mark, state)
    assert bits(state) != bits(other), "an optimiser at least"
    assert bits(learner.player(state, 0)) == bits(learner.player(other, 0))
