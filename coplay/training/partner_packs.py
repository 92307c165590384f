"""Packs of partners: folders of data from which co-players are made.

pack.json    the game, and for each partner its name, its family and how it was made
FAMILY.npz   the numbers of the partners of a family, [partner, ...]

A pack can be copied and shared. Loading it executes nothing: what a family's numbers mean stands
in this program (`FAMILIES`). An entry of a seating names a partner by its number or its name:
`packs/sh4@partner=3`, `packs/sh4@partner=rules-3`.
"""

import dataclasses
import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coplay.algorithms.ppo.player import PPOPlayer
from coplay.algorithms.rules import RuleParameters, make_rule_partner
from coplay.core.config import from_json, to_json
from coplay.core.errors import UserError, unknown
from coplay.core.files import write_json
from coplay.core.game import Game
from coplay.core.player import Player
from coplay.core.reading import check_folder, open_file, read_field, read_json
from coplay.core.version import VERSION
from coplay.games.registry import game_parts
from coplay.nn.config import NetworkConfig
from coplay.nn.networks import make_network, view_shape
from coplay.training import checkpoints

ABOUT = "pack.json"
FORM = 1  # of the folder; grows when what is written changes


class Partner(NamedTuple):
    """A partner of a pack. row: of its family's arrays. how: how it was made, in words and
    numbers."""

    name: str
    family: str
    row: int
    how: Mapping[str, Any]


class FamilyData(NamedTuple):
    """The partners of one family: a pytree of arrays [partner, ...], and how each was made."""

    arrays: Any
    hows: list[dict[str, Any]]


NETWORK = NetworkConfig()
"""The networks of partners that learned."""


def _rules_like(game: Game, count: int) -> RuleParameters:
    one = jax.ShapeDtypeStruct((count,), jnp.float32)
    blocks = jax.ShapeDtypeStruct((count, len(game.blocks)), jnp.float32)
    return RuleParameters(blocks, *[one] * (len(RuleParameters._fields) - 1))


def _networks_like(game: Game, count: int) -> Any:
    def one(key: Any) -> Any:
        return make_network(NETWORK, view_shape(game), game.actions, key, 0.01)

    made = jax.eval_shape(one, jax.random.key(0))
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((count, *x.shape), x.dtype), made)


def _networks_player(game: Game, actor: Any) -> Player:
    return PPOPlayer(actor, jnp.zeros(0))


class Family(NamedTuple):
    """like: (game, number of partners) -> the shapes of its arrays. player: (game, arrays of one
    partner) -> the partner."""

    like: Callable[[Game, int], Any]
    player: Callable[[Game, Any], Player]


FAMILIES: dict[str, Family] = {
    "rules": Family(_rules_like, make_rule_partner),
    "selfplay": Family(_networks_like, _networks_player),
}
"""What the numbers of each family mean."""


@dataclasses.dataclass(frozen=True)
class Pack:
    """A pack in a folder. game: the configuration of its game."""

    folder: Path
    game_name: str
    game: Any
    seed: int
    partners: tuple[Partner, ...]

    @property
    def made_game(self) -> Game:
        return game_parts(self.game_name)[1](self.game)

    def entry(self, number: int) -> str:
        """A partner as an entry of a seating."""
        return f"{self.folder}@partner={number}"

    def partner(self, name: str) -> Partner:
        """A partner by its number or its name."""
        if name.isdigit() and int(name) < len(self.partners):
            return self.partners[int(name)]
        by_name = {partner.name: partner for partner in self.partners}
        if name not in by_name:
            last = f"0 to {len(self.partners) - 1}"
            raise unknown(f"partner of {self.folder} ({last})", name, by_name)
        return by_name[name]

    def player(self, name: str, game: Game) -> Player:
        """A partner as a player of a game, which must be the pack's."""
        own = self.made_game
        if (game.name, view_shape(game)) != (own.name, view_shape(own)):
            raise UserError(
                f"{self.folder} holds partners for {own.name} with other views or actions than "
                f"this {game.name}: its game is {to_json(self.game)}"
            )
        partner = self.partner(name)
        family = FAMILIES[partner.family]
        count = sum(one.family == partner.family for one in self.partners)
        try:
            path = self.folder / f"{partner.family}.npz"
            arrays, _ = checkpoints.load(path, family.like(game, count))
        except checkpoints.DamagedCheckpoint as error:
            raise UserError(f"damaged pack: {error}; make it anew") from error
        return family.player(game, jax.tree.map(lambda x: x[partner.row], arrays))


def is_pack(entry: str) -> bool:
    """Whether an entry of a seating names a pack."""
    return (Path(entry.split("@")[0]) / ABOUT).is_file()


def load_partner(entry: str, game: Game) -> Player:
    """The player of an entry like `packs/sh4@partner=3`."""
    path, *options = entry.split("@")
    pack = read_pack(Path(path))
    names = [option.removeprefix("partner=") for option in options]
    if len(options) != 1 or not options[0].startswith("partner="):
        raise UserError(
            f"'{entry}' names a pack of {len(pack.partners)} partners: choose one, as in "
            f"{pack.entry(0)}"
        )
    return pack.player(names[0], game)


def write_pack(
    folder: Path, game_name: str, game: Any, seed: int, families: Mapping[str, FamilyData]
) -> Pack:
    """Write a new pack; the folder must not exist, or be empty."""
    partners = []
    for family, data in families.items():
        partners += [
            Partner(f"{family}-{row}", family, row, how) for row, how in enumerate(data.hows)
        ]
        checkpoints.save(folder / f"{family}.npz", data.arrays, {})
    about = {
        "kind": "partners",
        "form": FORM,
        "coplay": VERSION,
        "game_name": game_name,
        "game": to_json(game),
        "seed": seed,
        "partners": [partner._asdict() for partner in partners],
        "checksums": {f"{family}.npz": _checksum(folder / f"{family}.npz") for family in families},
    }
    write_json(folder / ABOUT, about)
    return Pack(folder, game_name, game, seed, tuple(partners))


def read_pack(folder: Path) -> Pack:
    """The pack in a folder; everything it says is checked, and its files by their checksums."""
    path = folder / ABOUT
    if not path.is_file():
        raise UserError(f"{folder} holds no partners; make some with coplay partners make")
    check_folder(folder)
    about = read_json(path)
    where = str(path)
    if about.get("kind") != "partners" or about.get("form") != FORM:
        raise UserError(f"{where} is no pack of partners that this version reads")
    game_name = read_field(about, "game_name", str, where)
    # What a file names is looked up among games of this program, never imported.
    game: Any = from_json(game_parts(game_name)[0], about.get("game"), f"{where}: game")
    partners = [_partner(one, where) for one in read_field(about, "partners", list, where)]
    if not partners:
        raise UserError(f"{where} lists no partners")
    checksums = read_field(about, "checksums", dict, where)
    for family in {partner.family for partner in partners}:
        name = f"{family}.npz"
        if not (folder / name).is_file() or _checksum(folder / name) != checksums.get(name):
            raise UserError(
                f"{folder / name} is missing or not the file that {ABOUT} describes; copy or make "
                "the pack anew"
            )
        rows = sorted(one.row for one in partners if one.family == family)
        if rows != list(range(len(rows))):
            raise UserError(f"{where}: the partners of the family '{family}' are not numbered")
    seed = read_field(about, "seed", int, where)
    return Pack(folder, game_name, game, seed, tuple(partners))


def _partner(data: Any, where: str) -> Partner:
    if not isinstance(data, dict):
        raise UserError(f"{where}: a partner must be an object with fields")
    kinds = {"name": str, "family": str, "row": int, "how": dict}
    partner = Partner(**{name: read_field(data, name, kind, where) for name, kind in kinds.items()})
    if partner.family not in FAMILIES:
        raise unknown(f"family in {where}", partner.family, FAMILIES)
    return partner


def _checksum(path: Path) -> str:
    with open_file(path) as file:
        return hashlib.sha256(file.read()).hexdigest()


def stack(trees: list[Any]) -> Any:
    """Partners' arrays as one tree, [partner, ...]."""
    return jax.tree.map(lambda *x: np.stack([np.asarray(one) for one in x]), *trees)


def refuse_full(folder: Path) -> None:
    """An error unless a folder is new or empty."""
    if folder.exists() and (not folder.is_dir() or any(os.scandir(folder))):
        raise UserError(f"{folder} is there already; choose another --out")
