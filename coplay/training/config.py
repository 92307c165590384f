"""The configuration of a training run, whatever is trained on whatever game."""

from dataclasses import dataclass, field
from typing import Any

from coplay.algorithms.registry import learner_parts
from coplay.core.config import from_json, to_json
from coplay.core.errors import UserError, unknown
from coplay.games.registry import game_parts


@dataclass(frozen=True)
class RunConfig:
    """One training run, apart from its game and its learner."""

    seating: str = ""
    """Who sits where, one player per seat, as in ppo,ns,ns,ns; empty: the learner in every seat."""
    switch: tuple[str, ...] = ()
    """Changes of a seat's player during the run, as STEP:SEAT=PLAYER, e.g. 200000:0=ppo."""
    steps: int = 1_000_000
    """Game steps in total, over all game copies (of each seed)."""
    seed: int = 0
    """Seed of all randomness; with several seeds, the first of them."""
    seeds: int = 1
    """Independent seeds trained side by side in one compiled program."""
    copies: int = 256
    """Game copies played at once."""
    rollout: int = 32
    """Steps every copy plays between two updates."""
    block: int = 4
    """Updates compiled into one block; progress, logs and checkpoints come between blocks."""
    checkpoint_every: int = 100_000
    """Game steps between checkpoints (rounded up to blocks)."""
    keep: int = 3
    """How many of the last checkpoints are kept, beside the best."""
    episodes: int = 10_000
    """Episodes of the final evaluation."""
    evaluate_every: int = 0
    """Game steps between evaluations during the run (evaluations.jsonl), the first before any
    learning; 0: none."""
    evaluate_episodes: int = 32
    """Episodes of each of these evaluations, for each seed."""

    def __post_init__(self) -> None:
        for name in ("steps", "seeds", "copies", "rollout", "block", "checkpoint_every", "keep"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.episodes < 2:
            raise UserError(f"episodes must be at least 2, not {self.episodes}")
        if self.evaluate_every < 0:
            raise UserError(f"evaluate_every must be at least 0, not {self.evaluate_every}")
        if self.evaluate_episodes < 1:
            raise UserError(f"evaluate_episodes must be at least 1, not {self.evaluate_episodes}")
        if not 0 <= self.seed < 2**31:
            raise UserError(f"seed must be between 0 and 2147483647, not {self.seed}")


def run_defaults(learner: type) -> RunConfig:
    """The run's fields where nothing is said; a learner's configuration may have its own."""
    return RunConfig(**getattr(learner, "run_defaults", {}))


@dataclass(frozen=True)
class TrainConfig:
    """Everything that determines a training run.

    player, game_name: the learner and the game by name. learner, game: their configurations.
    """

    player: str
    game_name: str
    learner: Any
    game: Any
    run: RunConfig = field(default_factory=RunConfig)

    def as_json(self) -> dict[str, Any]:
        return to_json(self)

    @staticmethod
    def from_json(data: Any, where: str) -> "TrainConfig":
        """A configuration from what `as_json` gave; errors say which field is wrong."""
        names = ("player", "game_name", "game", "learner", "run")
        for name in names:
            if not isinstance(data, dict) or name not in data:
                raise UserError(f"{where} is not a run's configuration: it lacks '{name}'")
        for name in data:
            if name not in (*names, "coplay"):
                raise unknown(f"field in {where}", name, names)
        return TrainConfig(
            player=data["player"],
            game_name=data["game_name"],
            learner=from_json(
                learner_parts(data["player"])[0], data["learner"], f"{where}: learner"
            ),
            game=from_json(game_parts(data["game_name"])[0], data["game"], f"{where}: game"),
            run=from_json(RunConfig, data["run"], f"{where}: run"),
        )
