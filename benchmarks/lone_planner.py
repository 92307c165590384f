"""What search alone finds among co-players whose policies it knows: no learning, no values.

python benchmarks/lone_planner.py --others ns nh nh
python benchmarks/lone_planner.py --game snowdrift --size 6 --horizon 25 --others nd nd nd
"""

import json
import time
from dataclasses import dataclass
from typing import Any, Literal

import tyro

import coplay
from coplay.algorithms.known_planner import KnownPlanner
from coplay.games.board.board_game import uniform
from coplay.games.registry import make_game
from coplay.search.config import SearchConfig


@dataclass(frozen=True)
class Arguments:
    """A planner in seat 0 among scripted co-players."""

    others: tuple[str, ...]
    """The co-players in seats 1, 2, …."""
    game: str = "stag-hunt"
    """The game by name."""
    size: int = 4
    """Rows and columns of the board."""
    horizon: int = 35
    """Steps of an episode."""
    episodes: int = 64
    """How many episodes, played side by side."""
    guided: bool = True
    """Try first what the game's scripted players would do; else all actions evenly."""
    playouts: int = 0
    """Judge a position by playing so many steps from it as the best of the game's scripted players
    (only if guided); 0: positions are worth nothing."""
    simulations: int = 200
    """Simulations of each search."""
    draws: int = 4
    """Searches of each decision."""
    depth: int = 10
    """The longest future, in steps."""
    exploration: float = 4.0
    """c of PUCT."""
    discount: float = 0.95
    """Discount of future rewards."""
    resample: bool = False
    """Draw co-players' actions anew at each visit."""
    backup: Literal["mean", "best"] = "mean"
    """Q from the mean of the simulations, or from the best future found."""
    seed: int = 0
    """Seed of the episodes."""


def random_where(game: Any, ego: Any) -> Any:
    """The player `random`."""
    return uniform(game.observe(ego).legal[0])


def main(given: Arguments) -> None:
    game = make_game(given.game, height=given.size, width=given.size, horizon=given.horizon)
    policies = {"random": random_where} | dict(game.scripted)
    search = SearchConfig(
        simulations=given.simulations,
        draws=given.draws,
        depth=given.depth,
        discount=given.discount,
        exploration=given.exploration,
        resample=given.resample,
        backup=given.backup,
    )
    planner = KnownPlanner(
        tuple(policies[name] for name in given.others),
        search,
        tuple(game.scripted.values()) if given.guided else (),
        given.playouts,
    )
    begun = time.perf_counter()
    record = coplay.play(game, [planner, *given.others], given.episodes, given.seed)
    record["seconds"] = time.perf_counter() - begun
    print(json.dumps(record))


if __name__ == "__main__":
    main(tyro.cli(Arguments))
