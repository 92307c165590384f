"""The best responses to the partners of a pack, kept in its folder.

responses.npz    actor and critic of PPO among each partner, [partner, ...]
responses.json   what each gets among three of its partner, its learning curve, and checksums

An entry of a seating names one by its partner: `packs/sh4/held-out@response=3`.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from coplay.algorithms.ppo.player import PPOPlayer
from coplay.core.errors import UserError
from coplay.core.files import write_json
from coplay.core.game import Game
from coplay.core.manifest import listing
from coplay.core.player import Player
from coplay.core.reading import check_folder, read_field, read_json
from coplay.nn.config import NetworkConfig
from coplay.nn.networks import make_network, view_shape
from coplay.training import checkpoints
from coplay.training.partner_packs import Pack, checksum, is_pack, pack_checksum, read_pack

ARRAYS, FIGURES = "responses.npz", "responses.json"
RESPONSES_FORM = 1


class Response(NamedTuple):
    """What the best response to a partner gets per episode, and how that is known.

    by: PPO alone, or search with the partner's true policy on top of it. evidence: rewards of both,
    the learning curve, and how long was trained.
    """

    reward: float
    stderr: float
    by: str
    evidence: Mapping[str, Any]


def response_network(game: Game) -> NetworkConfig:
    """How a best response sees a game: a board from its own cell, if it sees all of it."""
    kind: Literal["centred", "mlp"] = "centred" if game.full_view and game.seat_planes else "mlp"
    return NetworkConfig(kind=kind)


def write_responses(pack: Pack, found: Mapping[str, Response], networks: Any) -> None:
    """Keep the responses to all partners of a pack, by their names, with their networks (actor,
    critic), [partner, ...]."""
    with listing(pack.folder):
        checkpoints.save(pack.folder / ARRAYS, networks, {})
        about = {
            "kind": "responses",
            "form": RESPONSES_FORM,
            "pack": pack_checksum(pack.folder),
            "checksum": checksum(pack.folder / ARRAYS),
            "responses": {one.name: found[one.name]._asdict() for one in pack.partners},
        }
        write_json(pack.folder / FIGURES, about)


def has_responses(pack: Pack) -> bool:
    return (pack.folder / FIGURES).is_file()


def read_responses(pack: Pack) -> dict[str, Response]:
    """The responses that a pack holds, by the names of its partners; empty: it holds none."""
    path = pack.folder / FIGURES
    if not path.is_file():
        return {}
    check_folder(pack.folder)
    about, where = read_json(path), str(path)
    if about.get("kind") != "responses" or about.get("form") != RESPONSES_FORM:
        raise UserError(f"{where} holds no best responses that this version reads")
    if about.get("pack") != pack_checksum(pack.folder):
        raise UserError(f"{where} belongs to other partners than those of {pack.folder}")
    stated = read_field(about, "responses", dict, where)
    return {one.name: _response(stated.get(one.name), where, one.name) for one in pack.partners}


def _response(data: Any, where: str, name: str) -> Response:
    if not isinstance(data, dict):
        raise UserError(f"{where}: the response to '{name}' is missing")
    reward, stderr = (
        float(read_field(data, field, float, where)) for field in ("reward", "stderr")
    )
    if not (math.isfinite(reward) and math.isfinite(stderr)):
        raise UserError(f"{where}: reward and stderr of '{name}' must be finite")
    by, evidence = (
        read_field(data, field, kind, where) for field, kind in (("by", str), ("evidence", dict))
    )
    return Response(reward, stderr, by, evidence)


def response_player(pack: Pack, name: str, game: Game, greedy: bool = False) -> Player:
    """The player that PPO found among a partner, which sits in any seat."""
    partner = pack.partner(name)
    if not read_responses(pack):
        raise UserError(
            f"{pack.folder} holds no best responses; coplay partners select trains them"
        )
    path = pack.folder / ARRAYS
    if not path.is_file() or checksum(path) != read_json(pack.folder / FIGURES).get("checksum"):
        raise UserError(f"{path} is missing or not the file that {FIGURES} describes")
    try:
        (actor, _), _ = checkpoints.load(path, _like(pack, game))
    except checkpoints.DamagedCheckpoint as error:
        raise UserError(f"damaged best responses: {error}; remove {FIGURES}") from error
    row = pack.partners.index(partner)
    return PPOPlayer(jax.tree.map(lambda x: x[row], actor), jnp.zeros(0), greedy)


def _like(pack: Pack, game: Game) -> Any:
    config, shape, count = response_network(game), view_shape(game), len(pack.partners)

    def one(key: Any) -> Any:
        outputs = (game.actions, 1)
        return tuple(make_network(config, shape, number, key, 1.0) for number in outputs)

    made = jax.eval_shape(one, jax.random.key(0))
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((count, *x.shape), x.dtype), made)


def is_response(entry: str) -> bool:
    """Whether an entry of a seating names a best response that a pack holds."""
    return "@response=" in entry and is_pack(entry)


def load_response(entry: str, game: Game, greedy: bool = False) -> Player:
    """The player of an entry like `packs/sh4/held-out@response=3`."""
    path, *options = entry.split("@")
    if len(options) != 1:
        raise UserError(f"'{entry}': a best response is named by its partner alone, @response=3")
    return response_player(read_pack(Path(path)), options[0].partition("=")[2], game, greedy)
