"""What the partners of a pack are like: how each was made, and what it gets among its own kind."""

from typing import Any

import jax
import jax.numpy as jnp

from coplay.core.game import Game
from coplay.core.group import Group
from coplay.matches.match import play_match
from coplay.training.partner_packs import Pack


def describe_pack(pack: Pack, episodes: int, seed: int) -> dict[str, Any]:
    """A JSON object: the pack, and for each partner its reward and its steps in the game per
    episode, in games in which all seats are this partner."""
    game = pack.made_game
    return {
        "pack": str(pack.folder),
        "game_name": pack.game_name,
        "seed": pack.seed,
        "episodes": episodes,
        "partners": [
            {"number": number, "name": partner.name, "family": partner.family}
            | _among_its_kind(pack, partner.name, game, episodes, seed)
            | {"how": dict(partner.how)}
            for number, partner in enumerate(pack.partners)
        ],
    }


def _among_its_kind(pack: Pack, name: str, game: Game, episodes: int, seed: int) -> dict[str, Any]:
    # The player's numbers are an argument of the compiled match, so a family compiles once.
    player = jax.tree.map(jnp.asarray, pack.player(name, game))
    group = Group(player, tuple(range(game.seats)), True)
    record = play_match(game, (group,), episodes, seed).record(game.name, [name] * game.seats)
    steps = sum(seat["steps"] for seat in record["seats"]) / game.seats
    return {"reward": record["team_mean"], "steps": steps}
