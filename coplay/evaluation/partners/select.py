"""Selecting partners by the diversity of their best responses, and splitting them by family.

Partners matter as far as they call for different answers. Each candidate gets a short best
response. Its behaviour is a vector of features. A kernel says how alike two of them are, and
partners are taken one after the other so that the determinant of the kernel of those taken grows
most (BR-Div of ZSC-Eval, greedily).

PACK/train, PACK/held-out   packs of their own, with the best responses of their partners
PACK/selection.json         features of all candidates, who was taken and in which order
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from coplay.algorithms.ppo.player import PPOPlayer
from coplay.core.config import Config, PositiveInt, to_json
from coplay.core.errors import UserError
from coplay.core.files import write_json
from coplay.core.group import Group
from coplay.core.manifest import listing
from coplay.core.reading import read_json
from coplay.evaluation.partners.behaviour import behaviour_of, feature_names
from coplay.evaluation.partners.make import TIMES, read_times
from coplay.evaluation.partners.practice import Trained
from coplay.evaluation.partners.responses import (
    Responder,
    ResponsesConfig,
    as_data,
    company_of,
    respond,
    responder,
    short_responses,
)
from coplay.training.partner_packs import (
    TRAINING_FAMILIES,
    FamilyData,
    Pack,
    is_pack,
    read_pack,
    write_pack,
)
from coplay.training.partner_responses import has_responses
from coplay.training.trainer import Watcher

MOST_CANDIDATES = 60
SELECTION, ASKED_SELECTION = "selection.json", "selecting.json"
JITTER = 1e-6
"""Added to the kernel's diagonal: partners with the very same answer have a determinant of 0."""


@dataclass(frozen=True)
class SelectConfig(Config):
    """Which partners are kept."""

    keep: PositiveInt = 24
    """Partners kept in each part, at most."""
    split: Literal["families", "none"] = "families"
    """families: PACK/train has the families rules and selfplay, PACK/held-out all others. none: one
    part, PACK/kept, of all families."""
    responses: Literal["all", "held-out", "none"] = "all"
    """The parts whose partners get best responses of full length."""
    best: ResponsesConfig = field(default_factory=ResponsesConfig)
    """How best responses are found."""


def select_partners(pack: Pack, config: SelectConfig, watcher: Watcher) -> dict[str, Pack]:
    """The parts of a pack by their names, in folders below it. A selection that was interrupted
    goes on; what is there already stays."""
    if len(pack.partners) > MOST_CANDIDATES:
        raise UserError(
            f"{pack.folder} has {len(pack.partners)} candidates; at most {MOST_CANDIDATES} can be "
            "selected from: make a pack of fewer"
        )
    parts = split_families([one.family for one in pack.partners], config.split)
    asked = {"config": to_json(config), "pack": pack.digests()}
    place = pack.folder / ASKED_SELECTION
    if place.is_file() and read_json(place) != asked:
        raise UserError(
            f"{pack.folder} was selected from with other settings: copy it without "
            f"{ASKED_SELECTION} and the folders {', '.join(parts)}"
        )
    with listing(pack.folder):
        write_json(place, asked)
    found = responder(pack, config.best, pack.folder / "runs")
    times = read_times(pack.folder)
    began = time.monotonic()
    trained = short_responses(pack, found, watcher)
    features = response_features(pack, found, trained)
    report: dict[str, Any] = {"features": feature_names(found.game), "parts": {}}
    made = {}
    for name, rows in parts.items():
        order, gains = most_diverse(kernel(features[rows]), config.keep)
        kept = [rows[index] for index in order]
        made[name] = write_part(pack, pack.folder / name, kept)
        names = [pack.partners[row].name for row in kept]
        report["parts"][name] = {"partners": names, "gains": [round(x, 6) for x in gains]}
        watcher.say(f"{name}: {len(kept)} of {len(rows)} partners")
    report["candidates"] = [
        {"name": one.name, "family": one.family, "features": [round(float(x), 5) for x in row]}
        for one, row in zip(pack.partners, features, strict=True)
    ]
    with listing(pack.folder):
        write_json(pack.folder / SELECTION, report)
    times = _spent(pack.folder, times, "selection", began)
    for name, part in made.items():
        wanted = config.responses == "all" or (config.responses == name)
        if wanted and not has_responses(part):
            began = time.monotonic()
            respond(part, found, watcher)
            times = _spent(pack.folder, times, f"best responses, {name}", began)
    return made


def _spent(folder: Path, times: dict[str, float], name: str, began: float) -> dict[str, float]:
    """Times with the seconds since `began` added, kept in the folder."""
    spent = times.get(name, 0.0) + time.monotonic() - began
    times = times | {name: round(spent, 1)}
    with listing(folder):
        write_json(folder / TIMES, times)
    return times


def split_families(families: Sequence[str], split: str) -> dict[str, list[int]]:
    """Part -> the rows of its candidates."""
    if split == "none":
        return {"kept": list(range(len(families)))}
    parts: dict[str, list[int]] = {"train": [], "held-out": []}
    for row, family in enumerate(families):
        parts["train" if family in TRAINING_FAMILIES else "held-out"].append(row)
    if empty := [name for name, rows in parts.items() if not rows]:
        raise UserError(
            f"nothing would be in {empty[0]}: a split by families needs one of "
            f"{', '.join(TRAINING_FAMILIES)} and another family; or give --split none"
        )
    return parts


def response_features(pack: Pack, found: Responder, trained: Mapping[str, Trained]) -> np.ndarray:
    """[partner, feature]: how the response to each partner behaves among three of it."""
    rows = []
    for partner in pack.partners:
        answer = as_data(PPOPlayer(trained[partner.name].actor, jnp.zeros(0)))
        player = as_data(pack.player(partner.name, found.game))
        groups = (Group(answer, (0,), True), *company_of(found.game, player))
        rows.append(np.asarray(behaviour_of(found.game, groups, jax.random.key(pack.seed)))[0])
    return np.stack(rows)


def kernel(features: np.ndarray) -> np.ndarray:
    """[candidate, candidate] likeness, from 0 to 1: Gaussian, of features scaled to a standard
    deviation of 1; its width is the median distance."""
    spread = features.std(0)
    scaled = (features - features.mean(0)) / np.where(spread > 1e-9, spread, 1.0)
    square = ((scaled[:, None] - scaled[None]) ** 2).sum(-1)
    apart = square[~np.eye(len(square), dtype=bool)]
    width = float(np.median(apart)) if apart.size else 1.0
    return np.asarray(np.exp(-square / max(width, 1e-9)))


def most_diverse(likeness: np.ndarray, keep: int) -> tuple[list[int], list[float]]:
    """Rows one after the other, each the one by which the determinant of the kernel of those taken
    shrinks least; and by what factor it shrinks: 1 is unlike all before, 0 is a copy of one."""
    size = len(likeness)
    rest = np.diag(likeness).astype(float) + JITTER  # variance that those taken leave unexplained
    known = np.zeros((0, size))
    order: list[int] = []
    gains: list[float] = []
    for _ in range(min(keep, size)):
        left = np.where(np.isin(np.arange(size), order), -np.inf, rest)
        best = int(np.argmax(left))
        order.append(best)
        gains.append(float(max(rest[best], 0.0)))
        scale = np.sqrt(max(rest[best], JITTER))
        row = (likeness[best] + JITTER * np.eye(size)[best] - known[:, best] @ known) / scale
        known = np.vstack([known, row])
        rest = rest - row**2
    return order, gains


def write_part(pack: Pack, folder: Path, rows: Sequence[int]) -> Pack:
    """A pack of some partners of another, in their order there; the one that is there already if
    it is the same."""
    game = pack.made_game
    chosen = [pack.partners[row] for row in sorted(rows)]
    families = {}
    for family in dict.fromkeys(one.family for one in chosen):
        members = [one for one in chosen if one.family == family]
        places = np.array([one.row for one in members])
        arrays = jax.tree.map(
            lambda x, places=places: np.asarray(x)[places], pack.family_arrays(family, game)
        )
        hows = [dict(one.how) for one in members]
        families[family] = FamilyData(arrays, hows, tuple(one.name for one in members))
    if is_pack(str(folder)):
        there = read_pack(folder)
        if [one.name for one in there.partners] == [one.name for one in chosen]:
            return there
        raise UserError(f"{folder} holds other partners: remove it")
    return write_pack(folder, pack.game_name, pack.game, pack.seed, families)
