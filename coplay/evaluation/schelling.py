"""Schelling diagrams: what cooperating and defecting bring, by how many others cooperate.

A game in which defecting brings more whatever the others do, and in which everybody is better off
if all cooperate than if nobody does, is a social dilemma (Hughes et al. 2018 draw it for `cleanup`
and `harvest`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.group import group_players
from coplay.core.progress import Told, untold
from coplay.matches.match import play_match
from coplay.training.players import make_player


class Schelling(NamedTuple):
    """What the two kinds of player get per episode, [number of other players that cooperate].

    cooperator, defector: their entries. episodes: of each number of cooperators.
    cooperate, defect: mean reward of a player that does so; the others with their standard errors.
    """

    game: str
    cooperator: str
    defector: str
    episodes: int
    cooperate: np.ndarray
    cooperate_stderr: np.ndarray
    defect: np.ndarray
    defect_stderr: np.ndarray

    def as_json(self) -> dict[str, Any]:
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in self._asdict().items()
        }


def schelling(
    game: Game,
    cooperator: str = "",
    defector: str = "",
    episodes: int = 1000,
    seed: int = 0,
    copies: int | None = None,
    say: Callable[[str], None] = lambda text: None,
    told: Told = untold,
) -> Schelling:
    """Play with every number of cooperators. cooperator, defector: entries of a seating; unless
    said, the game's first scripted player cooperates and its second one defects.
    """
    if game.teams or not game.symmetric or game.seats < 2:
        raise UserError(
            "a Schelling diagram needs at least two seats that are all alike; those of "
            f"{game.name} are not: try cleanup, harvest, snowdrift or matrix:public-goods"
        )
    if episodes < 2:
        raise UserError(f"episodes must be at least 2, not {episodes}")
    names = list(game.scripted)
    if (not cooperator or not defector) and len(names) < 2:
        raise UserError(
            f"{game.name} has no two scripted players: name them by --cooperator and --defector"
        )
    cooperator, defector = cooperator or names[0], defector or names[1]
    kind, greedy = make_player(cooperator, game), make_player(defector, game)
    seats = game.seats
    means, errors = np.full((2, 2, seats), np.nan)
    for number in range(seats + 1):
        say(f"{number} x {cooperator}, {seats - number} x {defector}")
        told("numbers of cooperators", number, seats + 1)
        groups = group_players([kind] * number + [greedy] * (seats - number))
        reward = play_match(game, groups, episodes, seed + number, copies).reward
        # Seen by one of the cooperators, one other less cooperates.
        parts = (reward[:, :number], number - 1), (reward[:, number:], number)
        for row, (part, others) in enumerate(parts):
            if part.shape[1]:
                each = part.mean(axis=1)
                means[row, others] = each.mean()
                errors[row, others] = each.std(ddof=1) / len(each) ** 0.5
    return Schelling(
        game.name, cooperator, defector, episodes, means[0], errors[0], means[1], errors[1]
    )
