"""A run that does everything a run does with files, and computes next to nothing.

The state is a few numbers, and an iteration is a line of arithmetic in place of a compiled block.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from coplay.api.training import make_config
from coplay.core.files import replacing
from coplay.core.game import Game
from coplay.matches.match import Match
from coplay.training import trainer
from coplay.training.block import TrainState
from coplay.training.config import TrainConfig
from coplay.training.phases import Phase, plan_phases
from coplay.training.records import read_rows
from coplay.training.run import RunFolder, make_game_of
from coplay.training.trainer import Trainer, Watcher

SEATS, ACTIONS, SEEDS = 4, 7, 2


def tiny_config(iterations: int) -> TrainConfig:
    """4 steps in an iteration, 2 iterations in a block, a checkpoint after 4 iterations."""
    fields = {
        **{"copies": 2, "rollout": 2, "block": 2, "seeds": SEEDS, "episodes": 2, "keep": 2},
        **{"checkpoint_every": 16, "evaluate_every": 32, "evaluate_episodes": 2},
        **{"steps": 4 * iterations, "minibatches": 1},
    }
    return make_config("ppo", "stag-hunt", {}, fields)


def tiny_state() -> TrainState:
    learner = {
        "weight": np.arange(SEEDS * 6, dtype=np.float32).reshape(SEEDS, 6),
        "count": np.zeros(SEEDS, np.int32),
    }
    table: Any = {"seen": np.zeros((SEEDS, 3), np.uint32)}
    return TrainState((learner,), table)


def tiny_block(*given: Any) -> Any:
    """Some iterations of all seeds: the next state, and what was counted; see `make_block`."""
    _, _, state, _, first, count, *_ = given
    learner, seen = state.learners[0], np.asarray(state.table["seen"])
    weight, number = np.asarray(learner["weight"]), np.asarray(learner["count"])
    rewards = []
    for iteration in range(int(first), int(first) + int(count)):
        seen = seen * np.uint32(1_103_515_245) + np.uint32(12_345 + iteration)
        weight = weight * np.float32(0.99) + (seen % 1000)[:, :1].astype(np.float32) / 1000
        number = number + 1
        rewards.append(np.repeat(weight[:, :1], SEATS, axis=1))
    reward = np.stack(rewards)
    counts = {
        "episodes": np.ones(reward.shape[:2], np.int32),
        "reward": reward,
        "length": np.ones_like(reward),
        "actions": np.ones((*reward.shape, ACTIONS), np.int32),
        "entropy": reward / 2,
    }
    learners = ({"weight": weight, "count": number},)
    return TrainState(learners, {"seen": seen}), jax.tree.map(jax.numpy.asarray, counts)


class TinyTrainer(Trainer):
    """A trainer with these in place of a learner and a game."""

    def _start(self) -> TrainState:
        return tiny_state()

    def _compile(self, phase: Any, state: Any) -> Any:
        return tiny_block

    def _evaluate(self, phase: Any, index: int, episodes: int) -> Match:
        reward = np.asarray(self.state.learners[0]["weight"])[index, :SEATS]
        return Match(np.stack([reward, reward + 1]), np.ones((2, SEATS), np.int32))


class Listener(Watcher):
    """Keeps what a run says."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


@cache
def game_and_phases() -> tuple[Game, list[Phase]]:
    config = tiny_config(4)
    game = make_game_of(config)
    return game, plan_phases(config, game)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints hold the tiny state, and the game is made once."""
    shapes = jax.eval_shape(tiny_state)
    game, phases = game_and_phases()
    monkeypatch.setattr(trainer, "state_shapes", lambda *given: shapes)
    monkeypatch.setattr(trainer, "make_game_of", lambda config: game)
    monkeypatch.setattr(trainer, "plan_phases", lambda config, game: phases)


def train_tiny(folder: Path, iterations: int, resume: bool = False) -> list[str]:
    """Train to the end, with files in place of pictures and pages; what the run said."""
    watcher = Listener()
    run = TinyTrainer(tiny_config(iterations), folder, watcher, resume)

    def draw() -> None:
        with replacing(folder / "learning_curve.png") as temporary:
            temporary.write_bytes(b"a picture")

    def show() -> None:
        with replacing(folder / "index.html") as temporary:
            temporary.write_text(f"a page at step {run.step}")

    run.run(draw, show)
    return watcher.said


def outcome(folder: Path) -> dict[str, Any]:
    """All that must be the same however a run got to its end."""
    times = ("seconds", "compile_seconds", "steps_per_second")
    found: dict[str, Any] = {}
    saved = RunFolder(folder).checkpoints()
    for path in [saved.all()[-1], *([saved.best] if saved.best.exists() else [])]:
        with np.load(path) as data:
            for name in data.files:
                if name != "note.json":
                    found[f"{path.name}{name}"] = data[name].tobytes()
    for name in ("metrics.jsonl", "evaluations.jsonl"):
        rows = read_rows(folder / name)
        found[name] = [{k: v for k, v in row.items() if k not in times} for row in rows]
    return found


@contextmanager
def quick_folder() -> Iterator[Path]:
    """A folder in memory where there is one: states are written by the thousand."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)
