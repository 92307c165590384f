"""The wiring audit: does every declared part of a learner act?

A part that is never called leaves no trace in a learning curve but that the curve is the one of the
algorithm without it. So it is asked directly, of any learner, by its public protocol: does each
parameter move, does each declared input change what is done, does each coefficient change what is
learned, does each field of the configuration change the program, and does learning begin with the
policy that acted. See docs/explanation/audits.md.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Shaped

from coplay.core.compilation import QUICK, use_cache
from coplay.core.config import leaves
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.group import decide
from coplay.core.learner import Learner, LearnerState, init_learner
from coplay.core.player import View
from coplay.core.progress import Told, untold
from coplay.core.trajectory import seat_keys
from coplay.evaluation.audits.checks import Audit, Check
from coplay.evaluation.audits.wiring_fields import coefficient_check, field_check
from coplay.evaluation.audits.wiring_optimisers import gradient_arrived, only_decays
from coplay.games.adapters.worker_game import WorkerGame
from coplay.matches.rollout import Table, new_table, rollout, seat_views
from coplay.training.config import TrainConfig
from coplay.training.phases import plan_phases
from coplay.training.play_defaults import with_defaults
from coplay.training.run import make_game_of
from coplay.training.trainer import Watcher

STAGES = {
    "acting": "learning begins with the policy that acted",
    "input": "what a player is given changes what it does",
    "data": "what was played changes what is learned",
    "optimiser": "every parameter is optimised, gets a gradient and moves",
    "loss": "every coefficient of the loss changes what is learned",
    "configuration": "every field of the configuration changes the program",
}
RATIO = 1e-5
"""Largest |ratio - 1| that counts as rounding."""
UPDATES = 3
"""Updates after which every parameter has moved; what is zero at first has grown by then."""


class Course(NamedTuple):
    """Some updates. start, state: before and after. table: after. watched: of the last rollout."""

    start: LearnerState
    state: LearnerState
    table: Table
    watched: Any


CHECKS = 5
"""How many there are beside that of the configuration."""


def audit_wiring(
    config: TrainConfig, watcher: Watcher | None = None, configuration: bool = True
) -> Audit:
    """Audit the learner of a configuration, in all seats of its game; a few short updates.

    configuration: also look for fields without effect, which takes most of the time.
    """
    use_cache()
    watcher = watcher or Watcher()
    game = make_game_of(config)
    if isinstance(game, WorkerGame):
        raise UserError(
            f"{game.name} is stepped by worker processes: audit the wiring of {config.player} on a "
            "compiled game, e.g. stag-hunt or smax:3m; its parts are the same"
        )
    learns = with_defaults(config.learner, getattr(config.learner, "audit_defaults", {}))
    config = dataclasses.replace(config, learner=learns)
    checks: list[Check] = []
    watcher.work("checks", 0, CHECKS + configuration)
    for check in wiring_checks(config, game, configuration, watcher.work):
        watcher.say(f"{'passed' if check.passed else 'FAILED'}: {check.name}: {check.detail}")
        checks.append(check)
        watcher.work("checks", len(checks), CHECKS + configuration)
    return Audit(f"{config.player} on {config.game_name}", STAGES, tuple(checks))


def wiring_checks(
    config: TrainConfig, game: Game, configuration: bool = True, told: Told = untold
) -> Iterator[Check]:
    """All checks in turn; see `audit_wiring`."""
    phase = plan_phases(config, game)[0]
    learner, parts = phase.learners[0], phase.parts[0]
    copies, steps = audit_size(config)
    key = jax.random.key(config.run.seed)
    course = quick(
        lambda game, key: play_course(game, learner, key, copies, steps, parts), game, key
    )(game, key)
    yield ratio_check(learner, course)
    yield parameter_check(learner, course)
    yield input_check(game, learner, course)
    update = quick(lambda *given: learn_twice(learner, *given), course.state, course.watched)
    yield data_check(learner, course, update)
    yield coefficient_check(learner, course.state, course.watched, learn_twice, quick)
    if configuration:
        yield field_check(config, game, copies, steps, told)


def audit_size(config: TrainConfig) -> tuple[int, int]:
    """Game copies and steps that the learner's minibatches and chunks divide."""
    values = {leaf.path: leaf.value for leaf in leaves(config.learner)}
    minibatches = values.get("minibatches", 1) * values.get("library", 1)
    chunk = math.lcm(*(x for path, x in values.items() if path.endswith("chunk_length")))
    return -(-8 // minibatches) * minibatches, -(-16 // chunk) * chunk


def quick(function: Callable[..., Any], *like: Any) -> Callable[..., Any]:
    """The function compiled for arguments like these, without long optimisation."""
    options: Any = QUICK
    return jax.jit(function).lower(*like).compile(compiler_options=options)


def play_course(
    game: Game,
    learner: Learner,
    key: jax.Array,
    copies: int,
    steps: int,
    parts: Mapping[str, Any] = MappingProxyType({}),
) -> Course:
    """Play and learn `UPDATES` times from the beginning. parts: what the learner begins with."""
    streams = jnp.arange(game.seats)
    init_key, table_key, key = jax.random.split(key, 3)
    start = init_learner(learner, init_key, streams, parts)

    def one(carry: tuple, key: jax.Array) -> tuple[tuple, None]:
        state, table, _ = carry
        groups = (learner.group(state),)
        table, trajectory = rollout(game, groups, table, key, steps, streams)
        watched = learner.training_data(game, trajectory)
        state, _ = learner.update(key, state, watched, jnp.float32(0.0))
        return (state, table, watched), None

    table = new_table(game, (learner.group(start),), table_key, copies)
    groups = (learner.group(start),)
    shape = jax.eval_shape(
        lambda: learner.training_data(game, rollout(game, groups, table, key, steps, streams)[1])
    )
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shape)
    keys = jax.random.split(key, UPDATES)
    (state, table, _), _ = jax.lax.scan(one, (start, table, nothing), keys)
    # One more rollout that nothing was learned from yet.
    table, trajectory = rollout(game, (learner.group(state),), table, key, steps, streams)
    return Course(start, state, table, learner.training_data(game, trajectory))


def learn_twice(learner: Learner, state: LearnerState, watched: Any) -> LearnerState:
    """Two updates on the same data: what has no gradient at the old policy has one in the end."""
    for number in range(2):
        key = jax.random.key(number)
        state, _ = learner.update(key, state, watched, jnp.float32(0.0))
    return state


# --- the checks --------------------------------------------------------------------------------


def ratio_check(learner: Learner, course: Course) -> Check:
    """Learning begins with the policy that acted."""
    name = "the importance ratio starts at 1"
    if learner.first_ratio(course.state, course.watched) is None:
        return Check(name, "acting", True, f"{type(learner).__name__} learns by no such ratio")
    ratio = quick(learner.first_ratio, course.state, course.watched)
    found = float(jnp.max(ratio(course.state, course.watched)))
    detail = f"largest |ratio - 1| is {found:.2g}, allowed is {RATIO:g}"
    if not found <= RATIO:
        detail += ": what learns is not what acted, or on other inputs, or from other memories"
    return Check(name, "acting", found <= RATIO, detail, figures={"ratio_error": found})


def parameter_check(learner: Learner, course: Course) -> Check:
    """Every array of parameters moved by its gradient; if not, why. What the optimisers keep tells
    whether a gradient arrived, see `wiring_optimisers`."""
    before, after = (named(learner.parameters(s)) for s in (course.start, course.state))
    moving = {name for name, x in before.items() if not np.array_equal(x, after[name])}
    parameters = learner.parameters(course.state)
    arrived = gradient_arrived(parameters, moving, course.start, course.state)
    remembers = any(found is not None for found in arrived.values())
    reasons = {}
    for name, x in before.items():
        if name in moving:
            if arrived[name] is False and only_decays(x, after[name]):
                reasons[name] = "gets no gradient and only decays"
        elif arrived[name] is None and remembers:
            reasons[name] = "is in no optimiser"
        elif arrived[name] is None:
            reasons[name] = "does not move; no optimiser keeps anything that tells why"
        elif arrived[name]:
            reasons[name] = "gets a gradient and does not move"
        else:
            reasons[name] = "gets no gradient"
    detail = "; ".join(f"{name} {reason}" for name, reason in reasons.items())
    detail = detail or f"all {len(before)} arrays moved within {UPDATES} updates"
    figures = {"still": list(reasons)}
    return Check("parameters move", "optimiser", not reasons, detail, figures=figures)


def named(tree: Any) -> dict[str, np.ndarray]:
    """Path -> array."""
    arrays = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): np.asarray(x) for path, x in arrays}


def input_check(game: Game, learner: Learner, course: Course) -> Check:
    """What each input of the players changes in what they do. Of what a game shows alike in all its
    copies nothing can be asked: it is reported."""
    measured, same = quick(
        lambda game, course: (influences(game, learner, course), constants(game, course.table)),
        game,
        course,
    )(game, course)
    found = {name: float(value) for name, value in measured.items()}
    without = [name for name in learner.declared_inputs if not found.get(name, 0.0) > 0]
    constant = [name for name in without if name in same and bool(same[name])]
    dead = [name for name in without if name not in constant]
    shown = ", ".join(f"{name} {value:.2g}" for name, value in found.items())
    detail = f"largest change of a log-probability: {shown}"
    if constant:
        detail += f"; constant in {game.name}, so not asked: {', '.join(constant)}"
    if dead:
        detail = f"declared and without effect: {', '.join(dead)}. {detail}"
    figures = {"inputs": found, "constant": constant, "declared": list(learner.declared_inputs)}
    return Check("declared inputs act", "input", not dead, detail, figures=figures)


def constants(game: Game, table: Table) -> dict[str, Array]:
    """Input -> whether it is the same in all copies of the table, for those that a game decides."""
    observation = jax.vmap(game.observe)(table.state)

    def same(tree: Any) -> Array:
        alike = [jnp.all(x == x[:1]) for x in jax.tree.leaves(tree)]
        return jnp.all(jnp.stack(alike)) if alike else jnp.bool_(True)

    view = same((observation.planes, observation.features))
    return {"view": view, "others": view, "state": same(table.state)}


def influences(game: Game, learner: Learner, course: Course) -> dict[str, Array]:
    """Input -> the largest change of a log-probability if a seat is given another copy's.

    identity: between seats that are given the very same. others: if all but one seat are given
    another copy's, the change of the one.
    """
    groups, table, seats = (learner.group(course.state),), course.table, game.seats
    observation = jax.vmap(game.observe)(table.state)
    views = seat_views(game, table.state, observation, table)
    views = views._replace(alive=jnp.ones_like(views.alive))
    memory = (table.memory[0],)
    # Late in an episode, so that what was done and got last counts.
    views = views._replace(time=views.time + 1)
    keys = seat_keys(jax.random.key(0), jnp.arange(seats))

    def policies(views: View, memory: tuple) -> Array:
        logits, _ = decide(game, groups, keys, views, memory)
        return jax.nn.log_softmax(logits, axis=-1)

    def other_copy(tree: Any) -> Any:
        return jax.tree.map(lambda x: jnp.roll(x, 1, axis=1), tree)

    def change(views: View, memory: tuple) -> Array:
        return jnp.max(jnp.abs(policies(views, memory) - base))

    base = policies(views, memory)
    seen, elsewhere = views.observation, other_copy(views.observation)
    found = {
        "view": change(views._replace(observation=elsewhere._replace(legal=seen.legal)), memory),
        "state": change(views._replace(state=other_copy(views.state)), memory),
        "last_action": change(views._replace(last_action=_another(views.last_action)), memory),
        "last_reward": change(views._replace(last_reward=views.last_reward + 1.0), memory),
        "memory": change(views, other_copy(memory)),
    }
    if seats == 1:
        return found
    alike, remembered = jax.tree.map(lambda x: jnp.broadcast_to(x[:1], x.shape), (views, memory))
    given = policies(alike, remembered)
    found["identity"] = jnp.max(jnp.abs(given - given[:1]))
    rolled = views._replace(
        observation=elsewhere._replace(legal=seen.legal), last_reward=views.last_reward + 1.0
    )

    def of_others(seat: Array) -> Array:
        def blended(own: Shaped[Array, "seat *rest"], other: Shaped[Array, "seat *rest"]) -> Array:
            mine = (jnp.arange(seats) == seat).reshape(-1, *(1,) * (own.ndim - 1))
            return jnp.where(mine, own, other)

        mixture = jax.tree.map(blended, views, rolled)
        return jnp.max(jnp.abs(policies(mixture, memory) - base)[seat])

    found["others"] = jnp.max(jax.lax.map(of_others, jnp.arange(seats)))
    return found


def _another(action: Array) -> Array:
    """Another action than each: 0, or 1 instead of 0."""
    return jnp.where(action == 0, 1, 0)


def data_check(
    learner: Learner, course: Course, update: Callable[[LearnerState, Any], LearnerState]
) -> Check:
    """What of that which `training_data` gives changes what is learned, if it is another copy's. Of
    what is the same in all copies nothing can be asked: it is reported."""
    base = named(learner.parameters(update(course.state, course.watched)))
    arrays, structure = jax.tree_util.tree_flatten_with_path(course.watched)
    found, constant = {}, []
    for part in learner.declared_data:
        mine = [part in jax.tree_util.keystr(path) for path, _ in arrays]
        changed = [_elsewhere(x) if here else x for here, (_, x) in zip(mine, arrays, strict=True)]
        if _untried([x for here, (_, x) in zip(mine, arrays, strict=True) if here]):
            constant.append(part)
            continue
        after = named(
            learner.parameters(update(course.state, jax.tree.unflatten(structure, changed)))
        )
        found[part] = (
            max(
                (float(np.abs(after[name] - x).max(initial=0.0)) for name, x in base.items()),
                default=0.0,
            )
            if any(mine)
            else 0.0
        )
    dead = [part for part, value in found.items() if not value > 0]
    shown = ", ".join(f"{part} {value:.2g}" for part, value in found.items())
    detail = f"largest change of a parameter: {shown}" if found else "nothing to change"
    if constant:
        detail += f"; not tried: constant in this rollout: {', '.join(constant)}"
    if dead:
        detail = f"declared and without effect: {', '.join(dead)}. {detail}"
    figures = {"data": found, "constant": constant}
    return Check("declared data act", "data", not dead, detail, figures=figures)


def _untried(arrays: list[Array]) -> bool:
    """Whether there is another copy's, and it is the same."""
    copied = [x for x in arrays if x.ndim >= 2]
    return bool(copied) and all(bool(jnp.all(_elsewhere(x) == x)) for x in copied)


def _elsewhere(x: Array) -> Array:
    """Another copy's, where there are copies; the second axis is theirs."""
    if x.ndim < 2:
        return x
    rolled = jnp.roll(x, 1, axis=1)
    return rolled + jnp.roll(x, 1, axis=0) if jnp.issubdtype(x.dtype, jnp.floating) else rolled
