"""The part of the wiring audit that changes configurations: coefficients of losses, and fields."""

import copy
import dataclasses
import hashlib
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from coplay.core.config import Leaf, get_field, leaves, with_fields
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.group import Group, decide
from coplay.core.learner import Learner, LearnerState, init_learner
from coplay.core.progress import Told, untold
from coplay.core.trajectory import seat_keys
from coplay.evaluation.audits.checks import Check
from coplay.matches.rollout import new_table, rollout, seat_views
from coplay.training.config import TrainConfig
from coplay.training.phases import plan_phases


def coefficient_check(
    learner: Learner,
    state: LearnerState,
    watched: Any,
    learn: Callable[[Learner, LearnerState, Any], LearnerState],
    compiled: Callable[..., Callable[..., Any]],
) -> Check:
    """Every coefficient changes what is learned; those that are 0 are reported as switched off.

    learn: (learner, state, watched) -> state. compiled: (function, *arguments) -> it compiled.
    """
    title = "coefficients of the loss act"
    names = [name for name in learner.coefficients if get_field(learner.config, name)]
    off = [name for name in learner.coefficients if name not in names]
    if not names:
        return Check(title, "loss", True, "there are none")
    values = np.array([float(get_field(learner.config, name)) for name in names])
    parameters = _learned_by(learner, names, state, watched, learn, compiled)
    base = parameters(values)
    found = {}
    for index, name in enumerate(names):
        halved = values.copy()
        halved[index] /= 2
        pairs = zip(base, parameters(halved), strict=True)
        found[name] = max(float(np.abs(x - y).max(initial=0.0)) for x, y in pairs)
    dead = [name for name, value in found.items() if not value > 0]
    shown = ", ".join(f"{name} {value:.2g}" for name, value in found.items())
    detail = f"largest change of a parameter if halved: {shown}"
    if off:
        detail += f"; switched off here (0): {', '.join(off)}"
    if dead:
        detail = f"without effect: {', '.join(dead)}. {detail}"
    return Check(title, "loss", not dead, detail, figures={"coefficients": found, "off": off})


def _learned_by(
    learner: Learner,
    names: list[str],
    state: LearnerState,
    watched: Any,
    learn: Callable[[Learner, LearnerState, Any], LearnerState],
    compiled: Callable[..., Callable[..., Any]],
) -> Callable[[np.ndarray], list[np.ndarray]]:
    """What is learned as a function of the coefficients' values, which are numbers that the program
    does not know: one program for all of them. A learner that asks for their values while it is
    traced gets a program for each."""

    def with_values(values: Any, state: LearnerState, watched: Any) -> Any:
        config, changed = learner.config, copy.copy(learner)
        for index, name in enumerate(names):
            config = _with_unchecked(config, name.split("."), values[index])
        object.__setattr__(changed, "config", config)
        return changed.parameters(learn(changed, state, watched))

    def constant(values: np.ndarray) -> Any:
        given = tuple(float(value) for value in values)
        return compiled(lambda *rest: with_values(given, *rest), state, watched)(state, watched)

    try:
        program = compiled(with_values, jnp.zeros(len(names)), state, watched)
    except (jax.errors.ConcretizationTypeError, TypeError):
        learned = constant
    else:

        def learned(values: np.ndarray) -> Any:
            return program(jnp.asarray(values, jnp.float32), state, watched)

    return lambda values: [np.asarray(x) for x in jax.tree.leaves(learned(values))]


def _with_unchecked(config: Any, path: list[str], value: Any) -> Any:
    """A copy of a configuration with a field set to what may be no number yet."""
    (name, *rest), changed = path, copy.copy(config)
    inner = _with_unchecked(getattr(config, name), rest, value) if rest else value
    object.__setattr__(changed, name, inner)
    return changed


# --- fields ------------------------------------------------------------------------------------


def field_check(
    config: TrainConfig, game: Game, copies: int, steps: int, told: Told = untold
) -> Check:
    """Which fields change the program of playing and learning, and which are inert here."""
    phase = plan_phases(config, game)[0]
    learner, parts = phase.learners[0], phase.parts[0]
    base = list(programs(game, learner, copies, steps, parts))
    active: list[str] = []
    inert: list[str] = []
    untried: list[str] = []
    fields = list(leaves(config.learner))
    for number, field in enumerate(fields):
        told("fields of the configuration", number, len(fields))
        verdict = _tried(learner, field, game, base, copies, steps, parts)
        (untried if verdict is None else active if verdict else inert).append(field.path)
    detail = f"{len(active)} of {len(fields)} fields change the program"
    if inert:
        detail += f"; inert with this configuration and game: {', '.join(inert)}"
    if untried:
        detail += f"; not tried: {', '.join(untried)}"
    figures = {"active": active, "inert": inert, "untried": untried}
    return Check("fields of the configuration act", "configuration", True, detail, figures=figures)


def _tried(
    learner: Learner,
    field: Leaf,
    game: Game,
    base: list[str],
    copies: int,
    steps: int,
    parts: Mapping[str, Any],
) -> bool | None:
    """Whether another value of a field changes any program; None: no other value can be tried."""
    tried = False
    for value in alternatives(field):
        try:
            changed = dataclasses.replace(
                learner, config=with_fields(learner.config, {field.path: value})
            )
            for mine, theirs in zip(
                programs(game, changed, copies, steps, parts), base, strict=True
            ):
                tried = True
                if mine != theirs:
                    return True
        except UserError:
            continue
    return False if tried else None


def alternatives(field: Leaf) -> Iterator[Any]:
    """Other values of a field, the likeliest to be valid first."""
    value, hint = field.value, field.hint
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        if value is not None:
            yield None
        hint = next(x for x in typing.get_args(hint) if x is not type(None))
        hint = typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint
        value = 0.5 if value is None and hint is float else value
    if typing.get_origin(hint) is Literal:
        yield from (other for other in typing.get_args(hint) if other != value)
    elif hint is bool:
        yield not value
    elif hint is int:
        yield from ((value // 2, value * 2) if value > 1 else (2, value + 1))
    elif hint is float:
        yield from ((value / 2, value * 2) if value else (0.5, 0.1))
    elif typing.get_origin(hint) is tuple and value and isinstance(value[0], int):
        yield (2 * value[0], *value[1:])


def programs(
    game: Game,
    learner: Learner,
    copies: int,
    steps: int,
    parts: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[str]:
    """Fingerprints of what a learner computes: beginning, learning, playing, and playing without
    learning. In this order, because most fields show in the first ones."""
    streams, key = jnp.arange(game.seats), jax.random.key(0)

    def begin(key: PRNGKeyArray, streams: Int[Array, " seat"]) -> LearnerState:
        return init_learner(learner, key, streams, parts)

    yield _fingerprint(begin, key, streams)
    state = jax.eval_shape(begin, key, streams)

    def seen(state: LearnerState) -> Any:
        groups = (learner.group(state),)
        table = new_table(game, groups, key, copies)
        return learner.training_data(game, rollout(game, groups, table, key, steps, streams)[1])

    watched = jax.eval_shape(seen, state)
    yield _fingerprint(learner.update, key, state, watched, jnp.float32(0.0))
    yield _fingerprint(seen, state)

    def frozen(state: LearnerState) -> Any:
        player = learner.player(state, learner.seats[0])
        groups = (Group(player, tuple(range(game.seats)), True),)
        table = new_table(game, groups, key, copies)
        observation = jax.vmap(game.observe)(table.state)
        views = seat_views(game, table.state, observation, table)
        return decide(game, groups, seat_keys(key, streams), views, table.memory)

    yield _fingerprint(frozen, state)


def _fingerprint(function: Callable[..., Any], *arguments: Any) -> str:
    """The program as a number: its text without addresses, and its constants."""
    program = jax.make_jaxpr(function)(*arguments)
    text = hashlib.sha256(re.sub(r"0x[0-9a-f]+", "", str(program)).encode())
    for constant in program.consts:
        if not jnp.issubdtype(getattr(constant, "dtype", np.float32), jax.dtypes.prng_key):
            text.update(np.asarray(constant).tobytes())
    return text.hexdigest()
