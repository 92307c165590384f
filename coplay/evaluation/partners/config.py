"""How many partners are made, and how: the options of `coplay partners make`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from coplay.core.config import Config, NonNegativeFloat, PositiveInt, Range, Seed
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.training.trainer import Watcher


@dataclass(frozen=True)
class PartnersConfig(Config):
    """How many partners are made, and how."""

    rules: PositiveInt = 16
    """Partners made of rules with random parameters."""
    selfplay_seeds: PositiveInt = 4
    """Runs of PPO in self-play from which partners are taken."""
    selfplay_steps: tuple[PositiveInt, ...] = (20_000, 100_000, 600_000)
    """Game steps after which a partner is taken from each run: early, middle, late."""
    rewards: PositiveInt = 18
    """Partners trained for randomly weighted events of the game."""
    rewards_steps: PositiveInt = 200_000
    """Game steps of the training of each of them."""
    diverse: Annotated[int, Range(least=2)] = 8
    """Partners trained against each other to differ."""
    diverse_steps: PositiveInt = 400_000
    """Game steps of the training of each of them: half among its own kind, half with others."""
    diverse_weight: NonNegativeFloat = 1.0
    """Weight of the return in mixed company, which is made small, beside the return of a company
    of its own, which is made large."""
    planners: PositiveInt = 2
    """Seeds of HOP in self-play."""
    planners_steps: PositiveInt = 60_000
    """Game steps of the training of each of them."""
    people: tuple[str, ...] = ()
    """Datasets of games that people played (coplay serve RUN --seat 1); each becomes a partner."""
    people_kind: str = "human"
    """Who is to be learned from, by the name in the datasets."""
    people_epochs: PositiveInt = 60
    """Passes over a dataset, at most; the best one counts."""
    copies: PositiveInt = 256
    """Game copies played at once in all trainings."""
    seed: Seed = 0
    """Seed of all randomness."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if list(self.selfplay_steps) != sorted(set(self.selfplay_steps)):
            raise UserError("selfplay_steps must grow")


class Order(NamedTuple):
    """What the makers of families are given: a game by name, configuration and object, the options,
    the folder of the pack, and who is told."""

    game_name: str
    game: Any
    made: Game
    config: PartnersConfig
    folder: Path
    watcher: Watcher
