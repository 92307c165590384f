"""Cross-play: players of different runs and seeds meet at one table.

A cell of the matrix seats the row's player once in every seat, with the column's player in all the
others, and averages over the seats. On the diagonal a player meets itself, as in self-play.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.group import group_players
from coplay.core.player import Player
from coplay.core.progress import Told, untold
from coplay.matches.match import Match, play_match
from coplay.training.players import make_player
from coplay.training.run import RunFolder, load_players


class CrossPlay(NamedTuple):
    """Arrays are [focal, others]: the player in one seat, and the player in all the other seats.

    players: their names. episodes: of each cell, over all seats of the focal player.
    reward, stderr: of the focal player per episode. others, others_stderr: mean over the others.
    """

    game: str
    players: list[str]
    episodes: int
    reward: np.ndarray
    stderr: np.ndarray
    others: np.ndarray
    others_stderr: np.ndarray

    def as_json(self) -> dict[str, Any]:
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in self._asdict().items()
        }


def expand_seeds(entries: Sequence[str]) -> list[str]:
    """The entries, with a run of several seeds as one entry for each seed unless it names one."""
    expanded = []
    for entry in entries:
        path, *options = entry.split("@")
        folder = RunFolder(Path(path))
        if folder.exists() and not any(option.startswith("seed=") for option in options):
            run = folder.read_config().run
            if run.seeds > 1:
                expanded += [f"{entry}@seed={run.seed + index}" for index in range(run.seeds)]
                continue
        expanded.append(entry)
    if len(set(expanded)) < len(expanded):
        raise UserError(f"a player is named twice for cross-play: {', '.join(expanded)}")
    return expanded


def cross_play(
    game: Game,
    entries: Sequence[str],
    episodes: int = 1000,
    seed: int = 0,
    copies: int | None = None,
    greedy: bool = False,
    say: Callable[[str], None] = lambda text: None,
    told: Told = untold,
) -> CrossPlay:
    """Everyone with everyone; each cell has `episodes` episodes, rounded up to equally many for
    every seat of the focal player. `copies` as in `play_match`.

    Pairs of players of the same structure share one compiled program.
    """
    if game.seats < 2:
        raise UserError(f"cross-play needs at least two seats; {game.name} has one")
    if episodes < 2 * game.seats:
        raise UserError(f"episodes must be at least 2 for each seat: {2 * game.seats}")
    names = expand_seeds(entries)
    players = [players_by_seat(name, game, greedy) for name in names]
    each = -(-episodes // game.seats)
    size = (len(names), len(names))
    cells = np.zeros((4, *size))
    for row, column in np.ndindex(size):
        if column == 0:
            say(f"{names[row]}: meets {len(names)} players")
        told("pairs", row * len(names) + column, len(names) ** 2)
        matches = []
        for seat in range(game.seats):
            seating = [*players[column]]
            seating[seat] = players[row][seat]
            matches.append(play_match(game, group_players(seating), each, seed + seat, copies))
        cells[:, row, column] = _cell(matches)
    return CrossPlay(game.name, names, each * game.seats, *cells)


def players_by_seat(entry: str, game: Game, greedy: bool) -> list[Player]:
    """The player of an entry for every seat of the game; a run's player in each seat is the one
    that learned there, or the first that learned at all."""
    if RunFolder(Path(entry.split("@")[0])).exists():
        return load_players(entry, game, greedy)
    return [make_player(entry, game, seat, greedy) for seat in range(game.seats)]


def _cell(matches: Sequence[Match]) -> tuple[float, float, float, float]:
    """Mean and error of the focal player, and of the mean over the others; match i has the focal
    player in seat i."""
    focal = [match.reward[:, seat] for seat, match in enumerate(matches)]
    rest = [np.delete(match.reward, seat, axis=1).mean(1) for seat, match in enumerate(matches)]
    return *_mean_over_seats(focal), *_mean_over_seats(rest)


def _mean_over_seats(rewards: Sequence[np.ndarray]) -> tuple[float, float]:
    """The mean of the seats' means and its standard error: seats are fixed, episodes are chance."""
    means = [values.mean() for values in rewards]
    variances = [values.var(ddof=1) / len(values) for values in rewards]
    return float(np.mean(means)), float(np.sqrt(np.sum(variances)) / len(rewards))
