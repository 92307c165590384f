"""Episodes as films: what frames say, and GIFs read back."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from coplay.core.errors import UserError
from coplay.core.files import replacing
from coplay.core.game import Game
from coplay.games.stag_hunt import (
    HUNT_HARE,
    HUNT_STAG,
    STAY,
    StagHunt,
    StagHuntConfig,
    StagHuntState,
)
from coplay.reports.episode import frames, terminal, write_gif, write_mp4

LABELS = ["ns", "ppo", "nh", "random"]


@pytest.fixture(scope="module")
def game() -> StagHunt:
    return StagHunt()


@pytest.fixture(scope="module")
def episode(game: StagHunt) -> tuple[list[StagHuntState], np.ndarray, np.ndarray]:
    """Seats 0 and 1 hunt the stag at once, then seat 2 hunts a hare; seat 3 stays."""
    state = game.reset(jax.random.key(0))._replace(
        cell=jnp.array([0, 0, 5, 9], jnp.int16), prey=jnp.array([0, 5, 6, 7, 8], jnp.int16)
    )
    actions = jnp.array([[HUNT_STAG, HUNT_STAG, STAY, 2], [STAY, STAY, HUNT_HARE, 3]])
    states, rewards = [state], []
    for joint in actions:
        state, outcome = game.step(jax.random.key(1), state, joint)
        states.append(state)
        rewards.append(np.asarray(outcome.reward))
    return states, np.stack(rewards), np.asarray(actions)


def test_frames_have_one_size_and_the_board_at_the_left(game, episode) -> None:
    states, rewards, actions = episode
    shown = frames(game, states, rewards, LABELS, cell=32)
    assert len(shown) == 3
    assert len({frame.shape for frame in shown}) == 1
    for frame, state in zip(shown, states, strict=True):
        board = game.draw(state, 32)
        assert frame.dtype == np.uint8
        assert np.array_equal(frame[: board.shape[0], : board.shape[1]], board)
    beside = board.shape[1]
    assert not np.array_equal(shown[0][:, beside:], shown[1][:, beside:])
    given = frames(game, states, rewards, LABELS, cell=32, actions=actions)
    assert all(np.array_equal(a, b) for a, b in zip(shown, given, strict=True))


def test_frames_with_many_seats_are_as_high_as_their_lines() -> None:
    game = StagHunt(StagHuntConfig(players=10, hares=1))
    state = game.reset(jax.random.key(0))
    (frame,) = frames(game, [state], np.zeros((0, 10)), ["a name that never ends"] * 10, cell=16)
    assert frame.shape[0] > game.draw(state, 16).shape[0]


def test_terminal_says_actions_and_sums_of_rewards(game, episode) -> None:
    states, rewards, actions = episode
    shown = terminal(game, states, rewards, actions, LABELS)
    table = [[line.split(maxsplit=2) for line in text.splitlines()[-4:]] for text in shown]
    words = [[" ".join(line[2].split()) for line in lines] for lines in table]
    assert words[0] == ["- 0.00"] * 4
    assert words[1] == ["hunt stag 5.00", "hunt stag 5.00", "stay 0.00", "left 0.00"]
    assert words[2] == ["gone 5.00", "gone 5.00", "hunt hare 1.00", "right 0.00"]
    assert [line[:2] for line in table[0]] == [[str(i), name] for i, name in enumerate(LABELS)]
    assert all(text.startswith(game.text(s)) for text, s in zip(shown, states, strict=True))


def test_terminal_without_actions_takes_them_as_executed(game, episode) -> None:
    states, rewards, actions = episode
    assert terminal(game, states, rewards, None, LABELS) == terminal(
        game, states, rewards, actions, LABELS
    )


def test_wrong_shapes_are_named(game, episode) -> None:
    states, rewards, actions = episode
    with pytest.raises(UserError, match=r"rewards have the shape \[1, 4\]"):
        frames(game, states, rewards[:1], LABELS)
    with pytest.raises(UserError, match="actions"):
        terminal(game, states, rewards, actions.T, LABELS)
    with pytest.raises(UserError, match="3 labels for 4 seats"):
        frames(game, states, rewards, LABELS[:3])


def test_a_game_that_cannot_be_drawn_is_named(episode) -> None:
    class Bare(Game):
        name = "bare"
        action_names = ("stay",)

    with pytest.raises(UserError, match="'bare' cannot be drawn"):
        frames(Bare(), [None], np.zeros((0, 4)), LABELS)
    with pytest.raises(UserError, match="'bare' cannot be shown"):
        terminal(Bare(), [None], np.zeros((0, 4)), None, LABELS)


def test_gif_read_back(game, episode, tmp_path: Path) -> None:
    states, rewards, _ = episode
    shown = frames(game, states, rewards, LABELS, cell=32)
    path = tmp_path / "new" / "episode.gif"
    write_gif(path, shown, fps=4)
    with Image.open(path) as film:
        assert getattr(film, "n_frames", 1) == 3
        assert film.size == (shown[0].shape[1], shown[0].shape[0])
        assert film.info["loop"] == 0
        durations = []
        for t in range(3):
            film.seek(t)
            durations.append(film.info["duration"])
            error = np.abs(np.asarray(film.convert("RGB"), int) - shown[t])
            assert error.mean() < 0.5
            assert error.max() < 60
    assert durations == [250, 250, 2000]
    assert [entry.name for entry in path.parent.iterdir()] == ["episode.gif"]


def test_gif_keeps_few_colours_exactly(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    colours = rng.integers(256, size=(200, 3), dtype=np.uint8)
    shown = [colours[rng.integers(200, size=(30, 40))] for _ in range(4)]
    write_gif(tmp_path / "few.gif", shown)
    with Image.open(tmp_path / "few.gif") as film:
        for t, frame in enumerate(shown):
            film.seek(t)
            assert np.array_equal(np.asarray(film.convert("RGB")), frame)


def test_gif_errors_are_clear(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no frames"):
        write_gif(tmp_path / "a.gif", [])
    frame = np.zeros((4, 4, 3), np.uint8)
    with pytest.raises(UserError, match="fps"):
        write_gif(tmp_path / "a.gif", [frame], fps=0)
    with pytest.raises(UserError, match="one size"):
        write_gif(tmp_path / "a.gif", [frame, frame[:2]])
    assert not list(tmp_path.iterdir())


def test_replacing_keeps_the_old_file_if_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing(path) as partial:
        partial.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    with replacing(path) as partial:
        partial.write_text("new")
    assert path.read_text() == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_mp4_is_written_by_ffmpeg_or_said_to_need_it(tmp_path: Path, monkeypatch: Any) -> None:
    shown = [np.full((3, 5, 3), value, np.uint8) for value in (7, 9)]
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="ffmpeg, which is not installed"):
        write_mp4(tmp_path / "film.mp4", shown)
    program = tmp_path / "ffmpeg"
    program.write_text('#!/bin/sh\nfor last; do :; done\n/bin/cat > "$last"\n')
    program.chmod(0o755)
    write_mp4(tmp_path / "film.mp4", shown)
    raw = np.frombuffer((tmp_path / "film.mp4").read_bytes(), np.uint8).reshape(2, 4, 6, 3)
    np.testing.assert_array_equal(raw[:, :3, :5], shown)  # padded to even sizes
    program.write_text("#!/bin/sh\necho no such codec >&2\nexit 1\n")
    with pytest.raises(UserError, match="ffmpeg failed: no such codec"):
        write_mp4(tmp_path / "other.mp4", shown)
    assert not (tmp_path / "other.mp4").exists()
