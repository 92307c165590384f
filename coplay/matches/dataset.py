"""Datasets of played episodes: a folder with `about.json` and `episodes.npz`.

States are kept, in compact types, and not views: views of every seat are made from them when they
are needed (`Samples`), so a dataset is small and serves every learner. A *sample* is a step of one
seat while it is in the game, labelled with the kind of player that sat there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coplay.core.archive import DamagedArchive, check_forms, forms_of, open_archive
from coplay.core.config import from_json, to_json
from coplay.core.errors import UserError
from coplay.core.files import replacing, write_json
from coplay.core.game import Game, Observation, State, require_horizon
from coplay.core.manifest import whole_folder
from coplay.core.reading import check_folder, read_field, read_json, short
from coplay.core.version import VERSION
from coplay.games.registry import game_parts

ABOUT, ARRAYS = "about.json", "episodes.npz"
Rows = Any  # arrays of NumPy, or of JAX inside compiled functions

FORM = 1  # of the folder; grows when what is written changes


class Episodes(NamedTuple):
    """Whole episodes as NumPy arrays, [episode, time, ...]; T = the game's horizon.

    state: [episode, T + 1, ...] game states before each step and after the last; once an episode is
        over its last state is repeated.
    action: [episode, T, seat] as executed. reward: of the step.
    terminated: the seat left in this step. truncated: [episode, T] the episode was cut here.
    sample: [episode, T, seat] the seat was in the game, and the step is one of those asked for.
    kind: [episode, seat] which player of the mix sat there.
    goal: [episode, T, seat] what the seat turned out to be after, -1 if it never showed; see
        `coplay.core.goals`.
    length: [episode] steps played.
    """

    state: State
    action: Rows
    reward: Rows
    terminated: Rows
    truncated: Rows
    sample: Rows
    kind: Rows
    goal: Rows
    length: Rows


@dataclass(frozen=True)
class Dataset:
    """Episodes of one game among players of a mix. kinds: the players of the mix, by name."""

    game_name: str
    game_config: Any
    kinds: tuple[str, ...]
    seed: int
    episodes: Episodes

    @property
    def game(self) -> Game:
        return game_parts(self.game_name)[1](self.game_config)

    @property
    def samples(self) -> int:
        return int(self.episodes.sample.sum())

    def part(self, which: slice | np.ndarray) -> "Dataset":
        """Some of the episodes."""
        picked = jax.tree.map(lambda x: x[which], self.episodes)
        return Dataset(self.game_name, self.game_config, self.kinds, self.seed, picked)

    def split(self, share: float) -> tuple["Dataset", "Dataset"]:
        """Episodes to learn from and, the last `share` of them, to be held out."""
        count = len(self.episodes.length)
        held = max(1, round(share * count))
        if held >= count:
            raise UserError(f"{count} episodes cannot be split: collect more samples")
        return self.part(slice(0, count - held)), self.part(slice(count - held, count))

    def about(self) -> dict[str, Any]:
        """What `about.json` says."""
        found = self.episodes
        taken = np.moveaxis(found.sample, 2, 1)  # [episode, seat, time]
        gained = found.reward.sum(1)
        names = self.game.action_names
        action = np.moveaxis(found.action, 2, 1)
        return {
            "form": FORM,
            "coplay": VERSION,
            "game_name": self.game_name,
            "game": to_json(self.game_config),
            "mix": list(self.kinds),
            "seed": self.seed,
            "samples": self.samples,
            "episodes": len(found.length),
            "mean_length": float(found.length.mean()),
            "kinds": {
                name: {
                    "samples": int(taken[found.kind == index].sum()),
                    "seats": int((found.kind == index).sum()),
                    "reward": float(gained[found.kind == index].mean())
                    if (found.kind == index).any()
                    else None,
                    "actions": dict(
                        zip(
                            names,
                            np.bincount(
                                action[found.kind == index][taken[found.kind == index]],
                                minlength=len(names),
                            ).tolist(),
                            strict=True,
                        )
                    ),
                }
                for index, name in enumerate(self.kinds)
            },
        }


def save_dataset(out: Path, dataset: Dataset) -> None:
    """Write the folder, whole or not at all."""
    refuse_if_taken(out)
    with whole_folder(out) as unfinished:
        with replacing(unfinished / ARRAYS) as path, open(path, "wb") as file:
            np.savez_compressed(file, **_named(dataset.episodes))
        write_json(unfinished / ABOUT, dataset.about())


def refuse_if_taken(out: Path) -> None:
    """A folder that exists is an error: nothing is written over."""
    if out.exists():
        raise UserError(f"{out} exists already: choose another --out, or remove it first")


def load_dataset(folder: Path) -> Dataset:
    """A dataset from its folder; errors say what is wrong with it."""
    where = str(folder / ABOUT)
    if not (folder / ABOUT).exists():
        raise UserError(
            f"{folder} is no dataset: it has no {ABOUT}; make one with coplay collect --out"
        )
    check_folder(folder)
    about = read_json(folder / ABOUT)
    if about.get("form") != FORM:
        raise UserError(
            f"{folder} is of form {short(about.get('form'))}, this program reads form {FORM}: "
            "collect anew"
        )
    game_name = read_field(about, "game_name", str, where)
    kinds = tuple(str(name) for name in read_field(about, "mix", list, where))
    count, seed = (read_field(about, name, int, where) for name in ("episodes", "seed"))
    if count < 1 or not kinds:
        raise UserError(f"{where} says {count} episodes of {len(kinds)} kinds of players")
    kind, maker = game_parts(game_name)
    config: Any = from_json(kind, about.get("game"), f"{where}: game")
    like = _shapes(maker(config), count)
    try:
        with open_archive(folder / ARRAYS) as archive:
            check_forms(archive, forms_of(_named(like)))
            arrays = [archive.read(name) for name in _named(like)]
    except DamagedArchive as error:
        raise UserError(f"{error}; collect anew") from error
    episodes: Episodes = jax.tree.unflatten(jax.tree.structure(like), arrays)
    _check_values(episodes, len(kinds), folder)
    return Dataset(game_name, config, kinds, seed, episodes)


def _check_values(episodes: Episodes, kinds: int, folder: Path) -> None:
    """Numbers that are used as places in other arrays must be such places."""
    for name, values, least, most in (
        ("kind", episodes.kind, 0, kinds - 1),
        ("length", episodes.length, 1, episodes.action.shape[1]),
    ):
        if values.min() < least or values.max() > most:
            raise UserError(
                f"{folder / ARRAYS}: {name} must be from {least} to {most}; collect anew"
            )


def _named(episodes: Any) -> dict[str, Any]:
    """The arrays by name."""
    leaves = jax.tree_util.tree_leaves_with_path(episodes)
    return {jax.tree_util.keystr(path).lstrip("."): leaf for path, leaf in leaves}


def _shapes(game: Game, episodes: int) -> Episodes:
    """The shapes of so many episodes of a game."""
    time, seats = require_horizon(game), game.seats
    state = jax.eval_shape(game.reset, jax.random.key(0))

    def array(kind: Any, *shape: int) -> Any:
        return jax.ShapeDtypeStruct((episodes, *shape), kind)

    return Episodes(
        state=jax.tree.map(lambda x: array(x.dtype, time + 1, *x.shape), state),
        action=array(np.int8, time, seats),
        reward=array(np.float32, time, seats),
        terminated=array(bool, time, seats),
        truncated=array(bool, time),
        sample=array(bool, time, seats),
        kind=array(np.int8, seats),
        goal=array(np.int8, time, seats),
        length=array(np.int16),
    )


# --- samples -----------------------------------------------------------------------------------


class Samples(NamedTuple):
    """All samples of a dataset as rows, those of one seat's episode together and in order.

    planes, features, legal: [row, ...] the seat's ego views before the step.
    next_planes, next_features, next_legal: after it, before any reset.
    action: [row, seat] as executed, ego-first: column 0 is the seat's own.
    others: [row, seat] ego-first, who was in the game.
    reward, terminated: [row] of the seat. team: [row] discounted sum, from this step to the end of
        the episode, of the mean reward of the other seats.
    time, kind, goal: [row]. segment: [row] the number of the seat's episode; the rows of a segment
        follow each other. episode, seat: [row] where a row comes from.
    """

    planes: Rows
    features: Rows
    legal: Rows
    next_planes: Rows
    next_features: Rows
    next_legal: Rows
    action: Rows
    others: Rows
    reward: Rows
    terminated: Rows
    team: Rows
    time: Rows
    kind: Rows
    goal: Rows
    segment: Rows
    episode: Rows
    seat: Rows

    @property
    def view(self) -> Observation:
        """The ego views before the steps."""
        return Observation(self.planes, self.features, self.legal)


BATCH = 256  # episodes looked at in one go


def batches(dataset: Dataset) -> Iterator[Episodes]:
    """The episodes in parts of `BATCH`, the last one filled up with episodes without samples."""
    count = len(dataset.episodes.length)
    for first in range(0, count, BATCH):
        index = np.arange(first, first + BATCH)
        part: Episodes = jax.tree.map(
            lambda x, i=index: x[np.minimum(i, count - 1)], dataset.episodes
        )
        inside = (index < count)[:, None, None]
        yield part._replace(sample=part.sample & inside)


@jax.jit
def _views(game: Game, state: State) -> tuple[Observation, Any]:
    """Ego views [episode, time, seat, ...] of all seats, and who is in the game."""
    return (
        jax.vmap(jax.vmap(game.observe))(state),
        jax.vmap(jax.vmap(game.alive))(state),
    )


def by_segment(x: np.ndarray) -> np.ndarray:
    """[episode, time, seat, ...] as [episode, seat, time, ...], the order of `Samples`."""
    return np.swapaxes(x, 1, 2)


def samples_of(dataset: Dataset, discount: float = 0.95) -> Samples:
    """All samples of a dataset; `discount` of `Samples.team`."""
    game = dataset.game
    seats = game.seats
    order = (np.arange(seats)[:, None] + np.arange(seats)) % seats  # [seat, ego order]
    parts: list[Samples] = []
    segments = 0
    for number, part in enumerate(batches(dataset)):
        views, alive = jax.tree.map(np.asarray, _views(game, jax.tree.map(jnp.asarray, part.state)))
        mask = by_segment(part.sample)
        now = jax.tree.map(lambda x, m=mask: by_segment(x[:, :-1])[m], views)
        after = jax.tree.map(lambda x, m=mask: by_segment(x[:, 1:])[m], views)
        shape = part.sample.shape
        episode = np.broadcast_to(np.arange(shape[0])[:, None, None] + number * BATCH, shape)
        seat = np.broadcast_to(np.arange(seats), shape)
        time = np.broadcast_to(np.arange(shape[1])[:, None], shape)
        total = part.reward.sum(-1, keepdims=True)
        rows = {
            "action": part.action[:, :, order],
            "others": alive[:, :-1][:, :, order],
            "reward": part.reward,
            "terminated": part.terminated,
            "team": _returns((total - part.reward) / max(seats - 1, 1), discount),
            "time": time.astype(np.int16),
            "kind": np.broadcast_to(part.kind[:, None], shape),
            "goal": part.goal,
            "episode": episode.astype(np.int32),
            "seat": seat.astype(np.int8),
        }
        flat = {name: by_segment(x)[mask] for name, x in rows.items()}
        one = flat["episode"].astype(np.int64) * seats + flat["seat"]
        segment = np.concatenate([[0], np.cumsum(np.diff(one) != 0)]) if len(one) else one
        parts.append(
            Samples(
                planes=now.planes,
                features=now.features,
                legal=now.legal,
                next_planes=after.planes,
                next_features=after.features,
                next_legal=after.legal,
                segment=(segment + segments).astype(np.int32),
                **flat,
            )
        )
        segments += int(segment[-1]) + 1 if len(segment) else 0
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)


def _returns(reward: np.ndarray, discount: float) -> np.ndarray:
    """Discounted sums from each step on, [episode, time, ...]."""
    sums = np.array(reward)
    for step in range(sums.shape[1] - 2, -1, -1):
        sums[:, step] += discount * sums[:, step + 1]
    return sums


def packed(segment: np.ndarray, length: int) -> np.ndarray:
    """Whole segments put one after the other into chunks of `length`: [chunk, slot] row numbers,
    -1 where a slot is empty. No segment is cut.

    Recurrent networks then run over few empty slots, although most segments are short.
    """
    starts = np.flatnonzero(np.diff(segment, prepend=-1))
    sizes = np.diff(np.append(starts, len(segment)))
    if (sizes > length).any():
        raise ValueError(f"a segment has {sizes.max()} steps, chunks have {length}")
    chunks: list[list[int]] = []
    room: dict[int, list[int]] = {}  # free slots -> chunks that have so many
    for which in np.argsort(-sizes, kind="stable"):
        size = int(sizes[which])
        fits = min((free for free, some in room.items() if some and free >= size), default=None)
        if fits is None:
            chunk, free = len(chunks), length
            chunks.append([])
        else:
            chunk, free = room[fits].pop(), fits
        chunks[chunk].extend(range(starts[which], starts[which] + size))
        room.setdefault(free - size, []).append(chunk)
    slots = np.full((len(chunks), length), -1, np.int32)
    for number, rows in enumerate(chunks):
        slots[number, : len(rows)] = rows
    return slots
