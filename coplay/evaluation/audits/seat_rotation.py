"""Exact equivariance: everyone moves to another seat, and everything must move along.

New seat i is old seat `order[i]`, with its player, its randomness (its stream) and its place in
every layout. What is then seen, played and learned in seat i must be what was seen, played and
learned in seat `order[i]` before. Whatever a learner is made of, only the public protocol is used:
`init`, `group`, `training_data`, `update`, `player`, and `stages` where it is offered.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from coplay.core.compilation import QUICK
from coplay.core.game import Game
from coplay.core.learner import Learner, init_learner
from coplay.core.trajectory import Trajectory
from coplay.evaluation.audits.checks import Check
from coplay.games.check import play_faults
from coplay.matches.rollout import new_table, rollout
from coplay.nn import categorical

ROUNDING = 1e-5
"""Largest difference, relative to the largest number of its kind, that counts as rounding."""
DRIFT = 1e-3
"""The same for what several updates changed: rounding grows on its way through the optimiser."""
MOST_DRIFT = 0.1
"""And where the learner is shown to make that much of rounding: networks with kinks may."""
ROLLOUTS = 3
"""Rollouts played and learned from."""

GAME_STAGES = {"reward": "reward bookkeeping", "planes": "ego view", "features": "ego view"}
"""First word of a fault that `check_game` finds -> its stage; other faults are the game's."""

PLAYED = (
    ("alive", "game"),
    ("observation", "ego view"),
    ("log_policy", "acting"),
    ("action", "acting"),
    ("reward", "reward bookkeeping"),
    ("terminated", "game"),
    ("truncated", "game"),
    ("over", "game"),
    ("final", "ego view"),
    ("episode_reward", "reward bookkeeping"),
    ("episode_steps", "reward bookkeeping"),
    ("past", "reward bookkeeping"),
)
"""Parts of a trajectory in the order in which a step makes them -> the stage that makes them."""


LEARNING = ("batch", "advantages", "loss")
"""Stages of an update that a learner may show, in their order."""


class Learned(NamedTuple):
    """What a learner made of some trajectories. start, after: the players of all seats [seat], of
    `after` the last; stages, metrics: arrays [update, seat, ...]."""

    start: tuple[Any, ...]
    after: tuple[Any, ...]
    stages: dict[str, Any]
    metrics: dict[str, Array]


# --- the game alone ----------------------------------------------------------------------------


def game_checks(game: Game, seed: int) -> list[Check]:
    """Rules, rewards and ego views under renumbered seats, at random positions."""
    copies, steps = 32, 128
    faults = play_faults(game, jax.random.key(seed), copies, steps)
    checks = []
    for stage, what in (
        ("game", "rules, legal actions and who is alive, seats renumbered"),
        ("reward bookkeeping", "rewards, seats renumbered"),
        ("ego view", "ego views, seats renumbered"),
    ):
        mine = [f for f in faults if GAME_STAGES.get(f.split(":")[0].split()[0], "game") == stage]
        fine = f"exact at {copies * steps} positions"
        checks.append(Check(what, stage, not mine, "; ".join(mine) or fine))
    return checks


# --- the game played by the learner, and the learner alone --------------------------------------


def learner_checks(
    game: Game,
    learner: Learner,
    copies: int,
    steps: int,
    seed: int,
    parts: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[Check]:
    """Play and learning with everyone in another seat; the learner sits in all seats."""
    play, learn = _programs(game, learner, copies, steps, seed, parts)
    seats = game.seats
    orders = [np.roll(np.arange(seats), -turn) for turn in range(seats)]
    rotations = [play(game, jnp.asarray(order)) for order in orders]
    yield _start_check([players for players, _ in rotations], orders)
    yield _play_check(game, [played for _, played in rotations], orders)

    # From here on every learner is given the same games, renumbered: what went wrong above does
    # not cover what goes wrong below.
    played = rotations[0][1]
    first = learn(jnp.asarray(orders[0]), played)
    yield _after_leaving_check(first, learn, played)
    influence, moved = _influence(first, learn, played, seed)
    yield _own_trajectory_check(influence)
    turned = [first, *(learn(jnp.asarray(o), turn_seats(game, played, o)) for o in orders[1:])]
    for stage in sorted(first.stages, key=LEARNING.index):
        yield _stage_check(stage, turned, orders)
    yield _update_check(
        turned, orders, moved, lambda: _drift(first, learn, played, seed, len(orders) - 1)
    )
    yield _order_check(influence)


def _programs(
    game: Game, learner: Learner, copies: int, steps: int, seed: int, parts: Mapping[str, Any]
) -> tuple[Callable[..., Any], Callable[..., Learned]]:
    """Two compiled programs: play from the beginning, and learn from given trajectories."""
    init_key, table_key, play_key, learn_key = jax.random.split(jax.random.key(seed), 4)
    play_keys, learn_keys = (jax.random.split(key, ROLLOUTS) for key in (play_key, learn_key))

    def players(state: Any) -> tuple[Any, ...]:
        return tuple(eqx.filter(learner.player(state, s), eqx.is_array) for s in learner.active)

    @partial(jax.jit, compiler_options=QUICK)
    def play(game: Game, order: Int[Array, " seat"]) -> tuple[tuple[Any, ...], Trajectory]:
        state = init_learner(learner, init_key, order, parts)
        groups = (learner.group(state),)
        table = new_table(game, groups, table_key, copies, order)
        _, played = jax.lax.scan(
            lambda table, key: rollout(game, groups, table, key, steps, order, order),
            table,
            play_keys,
        )
        return players(state), played

    @partial(jax.jit, compiler_options=QUICK)
    def compiled(game: Game, order: Int[Array, " seat"], played: Trajectory) -> Learned:
        def once(state: Any, given: tuple) -> tuple[Any, tuple]:
            key, trajectory = given[0], learner.training_data(game, given[1])
            named = learner.stages(key, state, trajectory, jnp.float32(0))
            state, metrics = learner.update(key, state, trajectory, jnp.float32(0))
            return state, (named, metrics)

        start = init_learner(learner, init_key, order, parts)
        state, (named, metrics) = jax.lax.scan(once, start, (learn_keys, played))
        return Learned(players(start), players(state), named, metrics)

    return play, partial(compiled, game)


def turn_seats(game: Game, played: Trajectory, order: np.ndarray) -> Trajectory:
    """Trajectories [rollout, time, copy, seat, ...] of one group with the seats renumbered."""
    rest = played._replace(over=None, last=None)  # type: ignore[arg-type]
    rest = rest._replace(state=None, after=None, episode=None, memory=None, recorded=None)
    rest = jax.tree.map(lambda x: x[:, :, :, order], rest)
    last = jax.tree.map(lambda x: x[:, :, order], played.last)
    memory = jax.tree.map(lambda x: x[:, order], played.memory)
    recorded = jax.tree.map(lambda x: x[:, :, order], played.recorded)
    seats = jnp.asarray(order)
    renumber = jax.vmap(jax.vmap(jax.vmap(lambda state: game.permute_seats(state, seats))))
    return rest._replace(
        over=played.over,
        last=last,
        state=renumber(played.state),
        after=renumber(played.after),
        episode=played.episode,
        memory=memory,
        recorded=recorded,
    )


def _start_check(rotations: list[tuple[Any, ...]], orders: list[np.ndarray]) -> Check:
    largest = max(
        difference(players[seat], rotations[0][order[seat]])
        for players, order in zip(rotations, orders, strict=True)
        for seat in range(len(order))
    )
    advice = (
        " A learner's init must take what differs between seats from `streams` "
        "(seat_keys(key, streams)), not from their positions."
    )
    return Check(
        "players before learning, seats rotated",
        "initialisation",
        largest <= ROUNDING,
        _words(largest, ROUNDING) + (advice if largest > ROUNDING else ""),
        figures=_figures(largest, ROUNDING),
    )


def _play_check(game: Game, rotations: list[Trajectory], orders: list[np.ndarray]) -> Check:
    """The earliest step at which play differs, and what differs there first, name the stage."""
    name = "the same games played with everyone in another seat"
    found: list[tuple[int, int, int]] = []  # (step, part, turn)
    for turn, (played, order) in enumerate(zip(rotations, orders, strict=True)):
        expected = turn_seats(game, rotations[0], order)
        for part, (field, _) in enumerate(PLAYED):
            mine, theirs = getattr(played, field), getattr(expected, field)
            wrong = _differs_by_step(mine, theirs)
            if wrong.any():
                found.append((int(np.argmax(wrong)), part, turn))
    if not found:
        rollouts, steps, copies = rotations[0].over.shape
        count = rollouts * steps * copies
        return Check(name, "game", True, f"{count} steps in each of {len(orders)} rotations alike")
    step, part, turn = min(found)
    field, stage = PLAYED[part]
    detail = f"{field} differs first, at step {step}, with the seats rotated by {turn}"
    return Check(name, stage, False, detail)


def _differs_by_step(mine: Any, theirs: Any) -> np.ndarray:
    """[rollout * time] whether arrays [rollout, time, ...] differ by more than rounding."""
    wrong: Any = False
    for a, b in zip(jax.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
        a, b = (np.asarray(x).reshape(x.shape[0] * x.shape[1], -1) for x in (a, b))
        if np.issubdtype(a.dtype, np.inexact):
            here = ~np.isclose(a, b, rtol=ROUNDING, atol=ROUNDING, equal_nan=True)
        else:
            here = a != b
        wrong = wrong | here.any(axis=1)
    return np.asarray(wrong)


def _after_leaving_check(
    first: Learned, learn: Callable[..., Learned], played: Trajectory
) -> Check:
    """What stands in the rows of seats that left must not matter; only that their reward is 0 may
    be relied on."""
    name = "steps after a player left are not learned from"
    alive = played.alive
    rows = int(jnp.sum(~alive))
    if not rows:
        return Check(name, "batch", True, "nobody left before the end in what was played")

    def other(x: Array) -> Array:
        """The rows of seats that left, with what another game copy had there."""
        mask = alive.reshape(*alive.shape, *(1,) * (x.ndim - 4))
        return jnp.where(mask, x, jnp.flip(x, axis=2))

    legal = played.observation.legal
    changed = played._replace(
        observation=jax.tree.map(other, played.observation)._replace(legal=legal),
        action=jnp.where(alive, played.action, (played.action + 1) % legal.shape[-1]),
        log_policy=jnp.where(
            alive[..., None], played.log_policy, jnp.roll(played.log_policy, 1, axis=-1)
        ),
    )
    order = jnp.arange(alive.shape[-1])
    apart = _apart(learn(order, changed), first)
    seats = [seat for seat, share in enumerate(apart) if share > DRIFT]
    detail = (
        f"what stands in the rows of seats that had left changes what seats {seats} learn"
        if seats
        else f"{rows} rows of seats that had left were changed, and nothing else"
    )
    return Check(name, "batch", not seats, detail, figures=_figures(max(apart), DRIFT))


def _influence(
    first: Learned, learn: Callable[..., Learned], played: Trajectory, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """[seat i, seat j] how much what i learns changes when j's rewards are others, relative to all
    that i learned; and [seat] how much it learned."""
    seats = played.alive.shape[-1]
    noise = jax.random.normal(jax.random.key(seed + 1), played.reward.shape)
    noise = jnp.where(played.alive, noise, 0.0)
    order = jnp.arange(seats)
    columns = [
        _apart(learn(order, played._replace(reward=played.reward + noise * (order == j))), first)
        for j in range(seats)
    ]
    return np.array(columns).T, np.array([_largest(change) for change in _changes(first)])


def _own_trajectory_check(influence: np.ndarray) -> Check:
    deaf = [seat for seat in range(len(influence)) if influence[seat, seat] <= DRIFT]
    detail = "what every seat learns follows from its own rewards"
    if deaf:
        others = sorted({int(j) for i in deaf for j in np.flatnonzero(influence[i] > DRIFT)})
        detail = f"seats {deaf} learn nothing from their own trajectory, but from that of {others}"
    return Check(
        "every seat learns from its own trajectory",
        "batch",
        not deaf,
        detail,
        figures={"influence": influence.tolist()},
    )


def _order_check(influence: np.ndarray) -> Check:
    """Who learns from whom may depend on how far apart they sit, not on where."""
    seats = len(influence)
    learns = influence > DRIFT
    odd = [
        (i, j)
        for i in range(seats)
        for j in range(seats)
        if learns[i, j] and not all(learns[(i + k) % seats, (j + k) % seats] for k in range(seats))
    ]
    detail = "who learns from whom is the same seen from every seat"
    if odd:
        pairs = ", ".join(f"{i} from {j}" for i, j in odd[:6])
        detail = (
            f"some seats learn from others and not the other way round ({pairs}): their updates "
            "depend on each other's order"
        )
    return Check("no seat's update waits for another's", "update", not odd, detail)


def _stage_check(stage: str, turned: list[Learned], orders: list[np.ndarray]) -> Check:
    largest = 0.0
    for learned, order in zip(turned, orders, strict=True):
        expected = jax.tree.map(lambda x, order=order: x[:1, order], turned[0].stages[stage])
        mine = jax.tree.map(lambda x: x[:1], learned.stages[stage])
        largest = max(largest, difference(mine, expected))
    return Check(
        f"{stage}, seats rotated",
        stage,
        largest <= 10 * ROUNDING,
        _words(largest, 10 * ROUNDING),
        figures=_figures(largest, 10 * ROUNDING),
    )


def _drift(
    first: Learned, learn: Callable[..., Learned], played: Trajectory, seed: int, draws: int
) -> float:
    """How much what is learned changes when rewards change by their last digit, relative to all
    that was learned: what the learner makes of rounding. The most of so many draws, as many as
    there are rotations: where a network or a loss has kinks, rounding rarely matters, and then
    much."""

    def drawn(draw: int) -> float:
        key = jax.random.fold_in(jax.random.key(seed + 2), draw)
        signs = jax.random.rademacher(key, played.reward.shape, jnp.float32)
        rounded = played.reward * (1 + signs * jnp.finfo(jnp.float32).eps)
        order = jnp.arange(played.alive.shape[-1])
        return max(_apart(learn(order, played._replace(reward=rounded)), first))

    return max(drawn(draw) for draw in range(draws))


def _update_check(
    turned: list[Learned],
    orders: list[np.ndarray],
    moved: np.ndarray,
    drift: Callable[[], float],
) -> Check:
    name = "what is learned, seats rotated"
    if idle := [seat for seat, change in enumerate(moved) if change == 0]:
        return Check(name, "update", False, f"seats {idle} learn nothing")
    apart = np.zeros(len(moved))
    for learned, order in zip(turned, orders, strict=True):
        mine, theirs = _changes(learned), _changes(turned[0])
        for seat, old in enumerate(order):
            scale = moved[old]
            apart[old] = max(apart[old], difference(mine[seat], theirs[old], scale))
    largest, allowed, more = float(apart.max()), DRIFT, ""
    if largest > DRIFT:
        rounding = drift()
        allowed = max(DRIFT, min(MOST_DRIFT, 10 * rounding))
        more = f"; rewards changed by their last digit: {rounding:.2g}"
    if largest > allowed:
        each = ", ".join(f"{x:.2g}" for x in apart)
        more += f"; of the players that began in seats 0, 1, …: {each}"
    return Check(
        name,
        "update",
        largest <= allowed,
        _words(largest, allowed) + more,
        figures=_figures(largest, allowed),
    )


# --- differences --------------------------------------------------------------------------------


def _changes(learned: Learned) -> tuple[Any, ...]:
    """What learning changed in every seat's player. What stood for nothing before, such as a
    reward that had not occurred yet, changed from 0: beside 1e9 all else would be rounding."""

    def known(x: Any) -> np.ndarray:
        values = np.asarray(x, np.float64)
        return np.where(np.abs(values) < -categorical.NEVER, values, 0.0)

    return tuple(
        jax.tree.map(lambda new, old: known(new) - known(old), after, before)
        for after, before in zip(learned.after, learned.start, strict=True)
    )


def _apart(left: Learned, right: Learned) -> list[float]:
    """[seat] how far what was learned lies apart, relative to how much was learned."""
    pairs = zip(_changes(left), _changes(right), strict=True)
    return [difference(mine, theirs, _largest(theirs)) for mine, theirs in pairs]


def _largest(tree: Any) -> float:
    return max((_size(leaf) for leaf in jax.tree.leaves(tree)), default=0.0)


def difference(left: Any, right: Any, scale: float = 0.0) -> float:
    """The largest difference between two pytrees, relative to the largest number in its array (and
    to `scale`, where that is larger); infinite where one is not a number and the other is."""
    pairs = [
        (np.asarray(a, np.float64), np.asarray(b, np.float64))
        for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
        if a.size
    ]
    # Arrays of nearly nothing beside others of the same kind are rounding all through.
    floor = max([scale, 1e-30, *(1e-3 * _size(b) for _, b in pairs)])
    largest = 0.0
    for a, b in pairs:
        apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
        here = float(np.nan_to_num(apart, nan=np.inf).max())
        largest = max(largest, here / max(_size(b), floor))
    return largest


def _size(values: np.ndarray) -> float:
    """The largest number; those that stand for an illegal action are none."""
    sizes = np.abs(values)
    return float(sizes.max(initial=0.0, where=sizes < -categorical.NEVER))


def _words(largest: float, allowed: float) -> str:
    if largest == 0:
        return "bit for bit"
    return f"largest relative difference {largest:.2g} (allowed {allowed:g})"


def _figures(largest: float, allowed: float) -> dict[str, float]:
    return {"difference": largest, "allowed": allowed}
