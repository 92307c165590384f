"""What the partners of a pack are like: how each was made, how it behaves, and who answers whom."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coplay.core.game import Game
from coplay.core.group import Group
from coplay.core.player import Player
from coplay.core.progress import Told, untold
from coplay.core.reading import read_json
from coplay.evaluation.partners.behaviour import behaviour_of, feature_names
from coplay.evaluation.partners.make import read_times
from coplay.evaluation.partners.responses import company_of
from coplay.evaluation.partners.select import SELECTION
from coplay.matches.match import play_match
from coplay.training.partner_packs import Pack
from coplay.training.partner_responses import read_responses

MOST_CROSSED = 32
"""Partners of a pack whose matrix is played; it has a cell for every pair."""
CROSS_EPISODES = 64
SLOW = "planners"
"""The family that is left out of the matrix, because its games take long."""


def describe_pack(
    pack: Pack, episodes: int, seed: int, whole: bool = False, told: Told = untold
) -> dict[str, Any]:
    """A JSON object: the pack, and for each partner its reward and its steps in the game per
    episode, in games in which all seats are this partner.

    whole: also how each behaves, what each gets among each other, how the pack was selected from,
    and what is known of the best responses.
    """
    game = pack.made_game
    players = {one.name: _as_data(pack.player(one.name, game)) for one in pack.partners}
    found = {
        "pack": str(pack.folder),
        "game_name": pack.game_name,
        "seed": pack.seed,
        "episodes": episodes,
        "seconds": read_times(pack.folder),
        "partners": [
            {"number": number, "name": partner.name, "family": partner.family}
            | _among_its_kind(players[partner.name], game, episodes, seed)
            | {"how": dict(partner.how)}
            for number, partner in enumerate(pack.partners)
        ],
    }
    if not whole:
        return found
    seats = tuple(range(game.seats))
    features = [
        behaviour_of(game, (Group(player, seats, True),), jax.random.key(seed)).mean(0).tolist()
        for player in players.values()
    ]
    chosen = [one.name for one in pack.partners if one.family != SLOW]
    found |= {"feature_names": list(feature_names(game)), "features": features, "matrix": None}
    if len(chosen) <= MOST_CROSSED:
        rewards = cross(game, [players[name] for name in chosen], seed, told)
        found["matrix"] = {"partners": chosen, "reward": rewards.tolist()}
    path = pack.folder / SELECTION
    responses = read_responses(pack)
    return found | {
        "selection": read_json(path) if path.is_file() else None,
        "responses": {name: one._asdict() for name, one in responses.items()},
    }


def _as_data(player: Player) -> Player:
    # The player's numbers are an argument of the compiled match, so a family compiles once.
    return jax.tree.map(jnp.asarray, player)


def _among_its_kind(player: Player, game: Game, episodes: int, seed: int) -> dict[str, Any]:
    group = Group(player, tuple(range(game.seats)), True)
    match = play_match(game, (group,), episodes, seed)
    return {"reward": float(match.reward.mean()), "steps": float(match.steps.mean())}


def cross(game: Game, players: Sequence[Player], seed: int, told: Told = untold) -> np.ndarray:
    """[one, others]: what a player gets per episode among others that are all the same."""
    found = np.zeros((len(players), len(players)))
    for row, column in np.ndindex(found.shape):
        told("pairs of partners", row * len(players) + column, found.size)
        groups = (Group(players[row], (0,), True), *company_of(game, players[column]))
        found[row, column] = play_match(game, groups, CROSS_EPISODES, seed).reward[:, 0].mean()
    return found
