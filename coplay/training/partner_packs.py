"""Packs of partners: folders of data from which co-players are made.

pack.json    the game, and for each partner its name, its family and how it was made
FAMILY.npz   the numbers of the partners of a family, [partner, ...]

A pack can be copied and shared. Loading it executes nothing: what a family's numbers mean stands
in this program (`FAMILIES`). An entry of a seating names a partner by its number or its name:
`packs/sh4@partner=3`, `packs/sh4@partner=rules-3`. `packs/sh4@partner=any` is one of them that is
drawn, the same in all seats with this entry; with `@partner=each` every seat draws its own.
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
from coplay.algorithms.registry import LEARNERS
from coplay.algorithms.rules import RuleParameters, make_rule_partner
from coplay.core.config import from_json, leaves, to_json
from coplay.core.errors import UserError, unknown
from coplay.core.files import write_json
from coplay.core.game import Game
from coplay.core.learner import Learner
from coplay.core.manifest import listing
from coplay.core.player import Player
from coplay.core.reading import check_folder, open_file, read_field, read_json
from coplay.core.version import VERSION
from coplay.games.registry import game_parts
from coplay.matches.population import population
from coplay.nn.config import NetworkConfig
from coplay.nn.networks import make_network, view_shape
from coplay.training import checkpoints
from coplay.training.upgrade import without_gone

ABOUT = "pack.json"
DRAWN = ("any", "each")
FORM = 1  # of the folder; grows when what is written changes


class Partner(NamedTuple):
    """A partner of a pack. row: of its family's arrays. how: how it was made, in words and
    numbers."""

    name: str
    family: str
    row: int
    how: Mapping[str, Any]


class FamilyData(NamedTuple):
    """The partners of one family: a pytree of arrays [partner, ...], how each was made, and their
    names; none: the family and a number."""

    arrays: Any
    hows: list[dict[str, Any]]
    names: tuple[str, ...] = ()


NETWORK = NetworkConfig()
"""The networks of partners that learned."""
PLANNERS = ("hop",)
"""Learners whose players a pack may hold as planners."""


def _rules_like(game: Game, how: Mapping[str, Any]) -> RuleParameters:
    one = jax.ShapeDtypeStruct((), jnp.float32)
    blocks = jax.ShapeDtypeStruct((len(game.blocks),), jnp.float32)
    return RuleParameters(blocks, *[one] * (len(RuleParameters._fields) - 1))


def _networks_like(game: Game, how: Mapping[str, Any]) -> Any:
    def one(key: Any) -> Any:
        return make_network(NETWORK, view_shape(game), game.actions, key, 0.01)

    return jax.eval_shape(one, jax.random.key(0))


def _networks_player(game: Game, actor: Any) -> Player:
    return PPOPlayer(actor, jnp.zeros(0))


def _planner_like(game: Game, how: Mapping[str, Any]) -> Any:
    """The player of a learner that stands in this program, by the configuration in the pack."""
    where = "a planner of a pack"
    name = read_field(how, "learner", str, where)
    if name not in PLANNERS:
        raise unknown(f"learner of {where}", name, PLANNERS)
    kind, make = LEARNERS[name]
    given = read_field(how, "config", dict, where)
    given, _ = without_gone(given, {leaf.path for leaf in leaves(kind())})
    config: Any = from_json(kind, given, f"{where}: config")
    return jax.eval_shape(lambda key: new_planner(game, config, make, key), jax.random.key(0))


def new_planner(game: Game, config: Any, make: Callable[..., Learner], key: Any) -> Player:
    """A planner before learning: its form, to be filled with arrays."""
    seats = tuple(range(game.seats))
    learner = make(
        config=config, shape=view_shape(game), game_seats=game.seats, seats=seats, active=seats
    )
    return learner.player(learner.init(key, jnp.arange(game.seats)), 0)


def _planner_player(game: Game, player: Player) -> Player:
    return player


class Family(NamedTuple):
    """like: (game, how a partner was made) -> the shapes of its arrays. player: (game, arrays of
    one partner) -> the partner."""

    like: Callable[[Game, Mapping[str, Any]], Any]
    player: Callable[[Game, Any], Player]


FAMILIES: dict[str, Family] = {
    "rules": Family(_rules_like, make_rule_partner),
    "selfplay": Family(_networks_like, _networks_player),
    "rewards": Family(_networks_like, _networks_player),
    "diverse": Family(_networks_like, _networks_player),
    "planners": Family(_planner_like, _planner_player),
    "people": Family(_networks_like, _networks_player),
}
"""What the numbers of each family mean."""
TRAINING_FAMILIES = ("rules", "selfplay")
"""Families that players may be trained with; all others are held out."""


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
        arrays = self.family_arrays(partner.family, game)
        return FAMILIES[partner.family].player(game, jax.tree.map(lambda x: x[partner.row], arrays))

    def family_arrays(self, family: str, game: Game) -> Any:
        """The arrays of all partners of a family, [partner, ...]."""
        members = [one for one in self.partners if one.family == family]
        one = FAMILIES[family].like(game, members[0].how)
        count = len(members)
        like = jax.tree.map(lambda x: jax.ShapeDtypeStruct((count, *x.shape), x.dtype), one)
        try:
            arrays, _ = checkpoints.load(self.folder / f"{family}.npz", like)
        except checkpoints.DamagedCheckpoint as error:
            raise UserError(f"damaged pack: {error}; make it anew") from error
        return arrays

    def digests(self) -> dict[str, str]:
        """Of each partner, by its name, a digest of the numbers it is made of."""
        game, found = self.made_game, {}
        arrays = {one.family: None for one in self.partners}
        arrays = {family: self.family_arrays(family, game) for family in arrays}
        for partner in self.partners:
            digest = hashlib.sha256(partner.family.encode())
            for leaf in jax.tree.leaves(arrays[partner.family]):
                digest.update(np.asarray(leaf[partner.row]).tobytes())
            found[partner.name] = digest.hexdigest()[:16]
        return found


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
    if names[0] in DRAWN:
        players = [pack.player(partner.name, game) for partner in pack.partners]
        return population(players, alike=names[0] == "any")
    return pack.player(names[0], game)


def write_pack(
    folder: Path, game_name: str, game: Any, seed: int, families: Mapping[str, FamilyData]
) -> Pack:
    """Write a new pack; the folder must not exist, or be empty."""
    with listing(folder):
        partners = _write_families(folder, families)
        about = {
            "kind": "partners",
            "form": FORM,
            "coplay": VERSION,
            "game_name": game_name,
            "game": to_json(game),
            "seed": seed,
            "partners": [partner._asdict() for partner in partners],
            "checksums": {
                f"{family}.npz": checksum(folder / f"{family}.npz") for family in families
            },
        }
        write_json(folder / ABOUT, about)
    return Pack(folder, game_name, game, seed, tuple(partners))


def _write_families(folder: Path, families: Mapping[str, FamilyData]) -> list[Partner]:
    """Write the arrays of all families; their partners."""
    partners: list[Partner] = []
    for family, data in families.items():
        names = data.names or tuple(f"{family}-{row}" for row in range(len(data.hows)))
        partners += [
            Partner(name, family, row, how)
            for row, (name, how) in enumerate(zip(names, data.hows, strict=True))
        ]
        checkpoints.save(folder / f"{family}.npz", data.arrays, {})
    return partners


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
        if not (folder / name).is_file() or checksum(folder / name) != checksums.get(name):
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


def pack_checksum(folder: Path) -> str:
    """The checksum of a pack: of its description, which states those of its other files."""
    return checksum(folder / ABOUT)


def checksum(path: Path) -> str:
    """Of a file's bytes."""
    with open_file(path) as file:
        return hashlib.sha256(file.read()).hexdigest()


def stack(trees: list[Any]) -> Any:
    """Partners' arrays as one tree, [partner, ...]."""
    return jax.tree.map(lambda *x: np.stack([np.asarray(one) for one in x]), *trees)


def refuse_full(folder: Path) -> None:
    """An error unless a folder is new or empty."""
    if folder.exists() and (not folder.is_dir() or any(os.scandir(folder))):
        raise UserError(f"{folder} is there already; choose another --out")
