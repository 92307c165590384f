"""`check_game`: what every game must satisfy, whatever its rules.

Players, rollouts and planners rely on these properties alone, so a game that passes can be trained
on: it compiles, its state can be carried and restarted, no seat is preferred, and the ego views
show to each seat what they promise.
"""

import re
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from coplay.core.compilation import QUICK
from coplay.core.entities import entity_faults
from coplay.core.errors import wrong_signature
from coplay.core.game import Game, Observation, Outcome, State
from coplay.games.check_hidden import hidden_faults

Faults = dict[str, Bool[Array, "..."]]
"""What could be wrong, in words -> where it is: [] or [seat]; with [copy, step] before it."""

IMPURE = "differs between two calls with the same key; it may depend on nothing else"
EGO_VIEW = (
    "A seat sees itself first and the others in cyclic order. `seat_planes` and `seat_features` "
    "say how many planes or numbers of a view belong to each seat."
)


class GameCheckError(AssertionError):
    """A game breaks the protocol; the message names every property that does not hold."""


def check_game(
    game: Game, key: PRNGKeyArray | None = None, copies: int = 32, steps: int | None = None
) -> None:
    """Plays `copies` games for `steps` steps (128 unless said) and raises `GameCheckError` with all
    that is wrong. A finished episode is followed by a fresh one.

    Three of four actions are drawn among the legal ones, the others among all. What happens by
    chance in `step` must belong to the board and not to seat numbers: with the same key a situation
    and its renumbering have to go on alike. In a game of two seats an ego view that shows the other
    seat first cannot be told from a right one by symmetry, nor in one of three seats an ego view
    with the two others exchanged; they are not found. Of a game that says that it is not
    `symmetric`, nothing is asked that renumbers its seats.

        coplay.check_game(MyGame(MyConfig()))
    """
    key = jax.random.key(0) if key is None else key
    _check_types(game, key)
    _report(game, play_faults(game, key, copies, steps))


def play_faults(
    game: Game, key: PRNGKeyArray, copies: int = 32, steps: int | None = None
) -> list[str]:
    """All that `check_game` finds wrong by playing, in words."""
    # All that is drawn is drawn here: what does not depend on the game compiles once for all.
    shape, (for_keys, for_noise) = (copies, steps or 128), jax.random.split(key)
    keys = jax.random.split(for_keys, (*shape, 2))
    noise = jax.random.uniform(for_noise, (*shape, 5, game.seats, game.actions))
    arrays, rest = eqx.partition(game, eqx.is_array)
    play = jax.vmap(lambda *given: _play(eqx.combine(given[0], rest), *given[1:]), (None, 0, 0))
    faults = jax.jit(play, compiler_options=QUICK)(arrays, keys, noise)
    return [text + _place(found) for text, found in faults.items() if np.any(found)]


def _report(game: Game, faults: list[str]) -> None:
    if faults:
        words = "\n  - ".join([f"{game.name} breaks the game protocol:", *faults])
        of_views = any(re.match("(planes|features): does not follow", fault) for fault in faults)
        raise GameCheckError(f"{words}\n{EGO_VIEW}" if of_views else words)


def _place(found: Bool[Array, "copy step ..."]) -> str:
    """Where a fault was seen first."""
    names = ("copy", "step", "seat")
    where = np.argwhere(np.asarray(found))[0]
    return f" ({', '.join(f'{n} {i}' for n, i in zip(names, where, strict=False))})"


# --- types ------------------------------------------------------------------------------------


def _once(game: Game, key: PRNGKeyArray) -> tuple[State, Observation, State, Outcome, Observation]:
    """The first step of an episode, everybody taking the last action."""
    state = game.reset(key)
    seen = game.observe(state)
    given = jax.tree.leaves(state)
    following, outcome = game.step(key, state, jnp.full(game.seats, game.actions - 1, jnp.int32))
    kept = jax.tree.leaves(state)
    if len(given) != len(kept) or any(a is not b for a, b in zip(given, kept, strict=True)):
        _report(game, ["step changes the state it is given; it must return a new one"])
    return state, seen, following, outcome, game.observe(following)


METHODS = {
    "reset": ("key",),
    "step": ("key", "state", "actions"),
    "observe": ("state",),
    "alive": ("state",),
    "permute_seats": ("state", "order"),
}
"""Method of a game -> what it is called with."""


def _signature_faults(game: Game) -> list[str]:
    """Methods and scripted players that cannot be called as they will be."""
    faults = [wrong_signature(name, getattr(game, name), *given) for name, given in METHODS.items()]
    faults += [
        wrong_signature(f"scripted player '{name}'", policy, "game", "state")
        for name, policy in game.scripted.items()
    ]
    return list(filter(None, faults))


def _check_types(game: Game, key: PRNGKeyArray) -> None:
    """Signatures, then shapes and dtypes, from tracing alone."""
    _report(game, _signature_faults(game))
    state, seen, following, outcome, seen_after = eqx.filter_eval_shape(_once, game, key)
    seats, faults = game.seats, []
    for method, given, kind in (("observe", seen, Observation), ("step", outcome, Outcome)):
        if not isinstance(given, kind):
            _report(game, [f"{method} must give an {kind.__name__}, not {type(given).__name__}"])

    def expect(what: str, array: Any, kind: Any, *shape: int | None) -> None:
        sizes = zip(shape, array.shape, strict=False)
        fits = len(array.shape) == len(shape) and all(a in (None, b) for a, b in sizes)
        if not (fits and jnp.issubdtype(array.dtype, kind)):
            wanted = ", ".join("any" if size is None else str(size) for size in shape)
            faults.append(
                f"{what} must be {kind.__name__}[{wanted}], not {array.dtype}{[*array.shape]}"
            )

    for when, view in (("reset", seen), ("step", seen_after)):
        expect(f"planes after {when}", view.planes, np.generic, seats, None, None, None)
        expect(f"features after {when}", view.features, jnp.floating, seats, None)
        expect(f"legal after {when}", view.legal, jnp.bool_, seats, game.actions)
    expect("reward", outcome.reward, jnp.floating, seats)
    expect("terminated", outcome.terminated, jnp.bool_, seats)
    expect("truncated", outcome.truncated, jnp.bool_)
    expect("alive", eqx.filter_eval_shape(game.alive, state), jnp.bool_, seats)
    for name, policy in game.scripted.items():
        probs = eqx.filter_eval_shape(lambda g, s, p=policy: p(g, g.ego_state(s, 0)), game, state)
        expect(f"probabilities of scripted player '{name}'", probs, jnp.floating, game.actions)
    order = jnp.arange(seats)
    faults += _type_changes("step", state, following)
    if game.symmetric:
        permuted = eqx.filter_eval_shape(game.permute_seats, state, order)
        faults += _type_changes("permute_seats", state, permuted)
    faults += _type_changes("observe after a step", seen, seen_after)
    if not faults:
        for what, array, each in (
            ("planes", seen.planes, game.seat_planes),
            ("features", seen.features, game.seat_features),
        ):
            if array.shape[-1] < seats * each:
                faults.append(
                    f"seat_{what} is {each}: {seats} seats need {seats * each} {what}, "
                    f"but there are {array.shape[-1]}"
                )
        if len(game.plane_names) != seen.planes.shape[-1]:
            faults.append(
                f"plane_names has {len(game.plane_names)} names for {seen.planes.shape[-1]} planes"
            )
        faults += entity_faults(game.entities, seen.features.shape[-1])
        teams = game.teams
        if teams and (len(teams) != seats or sorted(set(teams)) != list(range(max(teams) + 1))):
            faults.append(
                f"teams must give the side of each of {seats} seats, numbered 0, 1, …; "
                f"it is {teams}"
            )
        elif len(set(game.side_names)) != len(game.sides):
            faults.append(
                f"side_names must give {len(game.sides)} different names; it is {game.side_names}"
            )
        if game.horizon is not None and game.horizon < 1:
            faults.append(f"horizon must be at least 1, or None; it is {game.horizon}")
    _report(game, faults)


def _type_changes(what: str, before: Any, after: Any) -> list[str]:
    """Leaves whose shape or dtype differ: such a state is no scan carry and cannot restart."""
    old: Any
    new: Any
    old, new = (jax.tree_util.tree_flatten_with_path(tree) for tree in (before, after))
    if old[1] != new[1]:
        return [f"{what} changes the structure from {old[1]} to {new[1]}"]
    return [
        f"{what} changes {jax.tree_util.keystr(path)} from {a.dtype}{[*a.shape]} "
        f"to {b.dtype}{[*b.shape]}"
        for (path, a), (_, b) in zip(old[0], new[0], strict=True)
        if a.shape != b.shape or a.dtype != b.dtype
    ]


# --- play --------------------------------------------------------------------------------------


def _play(
    game: Game,
    keys: Shaped[PRNGKeyArray, "step 2"],
    noise: Float[Array, "step 5 seat action"],
) -> Faults:
    """One copy, played on through finished episodes; each fault as [step] or [step, seat]."""

    def step(
        carry: tuple[State, Int[Array, ""]],
        given: tuple[PRNGKeyArray, State, Float[Array, "5 seat action"]],
    ) -> tuple[tuple[State, Int[Array, ""]], tuple[State, Bool[Array, ""]]]:
        (state, time), (key, fresh, noise) = carry, given
        actions = _choose(noise, game.observe(state).legal)
        following, outcome = game.step(key, state, actions)
        over = outcome.truncated | ~jnp.any(game.alive(following))
        late = jnp.bool_(False) if game.horizon is None else ~over & (time + 1 >= game.horizon)
        now = jax.tree.map(lambda a, b: jnp.where(over, a, b), fresh, following)
        return (now, jnp.where(over, 0, time + 1)), (state, late)

    fresh, again = (jax.vmap(game.reset)(keys[:, 0]) for _ in range(2))
    first = jax.tree.map(lambda leaf: leaf[0], fresh)
    states, late = jax.lax.scan(step, (first, jnp.int32(0)), (keys[:, 1], fresh, noise))[1]
    faults = jax.vmap(lambda *given: _step_faults(game, *given))(states, keys[:, 1], noise)
    actions = jax.vmap(_choose)(noise, jax.vmap(game.observe)(fresh).legal)
    faults |= jax.vmap(lambda *given: hidden_faults(game, *given))(keys[:, 1], fresh, actions)
    faults["an episode goes on beyond the horizon"] = late
    faults["a seat is not alive after reset"] = ~jax.vmap(game.alive)(fresh)
    faults[f"state after reset: {IMPURE}"] = jax.vmap(_differ)(fresh, again)
    return faults


def _step_faults(
    game: Game, state: State, key: PRNGKeyArray, noise: Float[Array, "5 seat action"]
) -> Faults:
    """Plays one step as it is and with the seats renumbered; `noise` in [0, 1) decides how."""
    seats = game.seats
    alive, seen = game.alive(state), game.observe(state)
    actions = _choose(noise, seen.legal)
    following, outcome = game.step(key, state, actions)
    alive_after = game.alive(following)
    left = alive & ~alive_after

    faults: Faults = {
        "no action is legal": ~jnp.any(seen.legal, axis=-1),
        "features are not finite": ~jnp.all(jnp.isfinite(seen.features), axis=-1),
        "reward is not finite": ~jnp.isfinite(outcome.reward),
        "a seat that had left got a reward": ~alive & (outcome.reward != 0),
        "a seat that had left is alive again": ~alive & alive_after,
        "a seat left but is not terminated": left & ~outcome.terminated,
        "a seat is terminated but did not leave": ~left & outcome.terminated,
        "truncated although nobody is alive": outcome.truncated & ~jnp.any(alive_after),
    }

    as_it_is, permutation = jnp.arange(seats), jnp.argsort(noise[3, :, 0])
    shift = (1 + (noise[4, 0, 0] * (seats - 1)).astype(jnp.int32)) % seats
    rotation = (as_it_is + shift) % seats

    def moved(state: State, order: Int[Array, " seat"]) -> State:
        return game.permute_seats(state, order) if game.symmetric else state

    def renumbered(order: Int[Array, " seat"], actions: Int[Array, " seat"]) -> Faults:
        """What does not come out as the same situation with the seats renumbered."""
        other = moved(state, order)
        after, result = game.step(key, other, actions[order])
        view = game.observe(other)
        return {
            "alive": _differ(game.alive(other), alive[order]),
            "legal": _differ(view.legal, seen.legal[order]),
            "planes": _differ(view.planes, _moved_views(seen.planes, order, game.seat_planes)),
            "features": _differ(
                view.features, _moved_views(seen.features, order, game.seat_features)
            ),
            "state after step": _differ(after, moved(following, order)),
            "reward": _differ(result.reward, outcome.reward[order]),
            "terminated": _differ(result.terminated, outcome.terminated[order]),
            "truncated": _differ(result.truncated, outcome.truncated),
            "undone": _differ(moved(other, jnp.argsort(order)), state),
        }

    ignored = jnp.where(alive, actions, jnp.argmax(noise[0], axis=-1))
    ways = 3 if game.symmetric else 1  # where seats cannot be renumbered, only as they are
    wrong = jax.vmap(renumbered)(
        jnp.stack([as_it_is, rotation, permutation][:ways]),
        jnp.stack([ignored, actions, actions][:ways]),
    )
    faults["permute_seats by an order and then by its inverse changes the state"] = jnp.any(
        wrong.pop("undone")
    )
    for what, found in wrong.items():
        # While all seats are alive, the first is just the same step, traced a second time.
        faults[f"{what}: {IMPURE}"] = found[0] & jnp.all(alive)
        faults[f"{what}: changes with the actions of seats that left"] = found[0] & ~jnp.all(alive)
        for way, how in list(enumerate(("", "rotated", "permuted")))[1:ways]:
            faults[f"{what}: does not follow when the seats are {how}"] = found[way]
    faults["ego_state does not put the seat first, the others in cyclic order"] = _differ(
        game.ego_state(state, shift),
        game.permute_seats(state, rotation) if game.can_renumber else state,
    )

    for name, policy in game.scripted.items():
        egos = jax.vmap(game.ego_state, (None, 0))(state, as_it_is)
        probs = jax.vmap(policy, (None, 0))(game, egos)  # [seat, action]
        amiss = ~jnp.isclose(jnp.sum(probs, axis=-1), 1, atol=1e-4) | jnp.any(probs < 0, axis=-1)
        outside = jnp.any(~seen.legal & (probs > 0), axis=-1)
        faults[f"scripted player '{name}': probabilities do not sum to 1"] = amiss
        faults[f"scripted player '{name}': an illegal action has a chance"] = outside
    return faults


def _choose(
    noise: Float[Array, "5 seat action"], legal: Bool[Array, "seat action"]
) -> Int[Array, " seat"]:
    """Three actions in four legal, the fourth any."""
    any_action = jnp.argmax(noise[0], axis=-1)
    legal_action = jnp.argmax(jnp.where(legal, noise[1], -1.0), axis=-1)
    return jnp.where(noise[2, :, 0] < 0.25, any_action, legal_action)


def _moved_views(
    views: Shaped[Array, "seat *space channel"], order: Int[Array, " seat"], each: int
) -> Shaped[Array, "seat *space channel"]:
    """Ego views as they must be once new seat i is old seat `order[i]`.

    The first seats * each channels are blocks of `each`, one per seat, ego-first; a viewer keeps
    the rest of its view, and sees the blocks in the order in which the seats now follow it.
    """
    seats, channels = len(order), views.shape[-1]
    follows = order[(jnp.arange(seats)[:, None] + jnp.arange(seats)) % seats]
    block = (follows - order[:, None]) % seats  # [viewer, place] where it was in the old view
    moved = (block[:, :, None] * each + jnp.arange(each)).reshape(seats, seats * each)
    rest = jnp.broadcast_to(jnp.arange(seats * each, channels), (seats, channels - seats * each))
    index = jnp.concatenate([moved, rest], axis=1).astype(jnp.int32)
    return jax.vmap(lambda view, channel: view[..., channel])(views[order], index)


def _differ(left: Any, right: Any) -> Bool[Array, ""]:
    """Whether any leaf of two pytrees differs; floats may by rounding, as sums over seats do."""

    def differ(a: Array, b: Array) -> Bool[Array, ""]:
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        if jnp.issubdtype(a.dtype, jnp.inexact):
            return jnp.any(~jnp.isclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True))
        return jnp.any(a != b)

    wrong = jax.tree.leaves(jax.tree.map(differ, left, right))
    return jnp.any(jnp.stack(wrong)) if wrong else jnp.bool_(False)
