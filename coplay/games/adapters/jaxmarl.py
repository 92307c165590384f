"""JaxMARL's environments as compiled games: `jaxmarl:ENVIRONMENT` and `smax:SCENARIO`.

One adapter for all. It calls `step_env`, which never resets: rollouts do that. What environments do
differently is in `jaxmarl_kinds`. JaxMARL is imported when the first of its games is made.
"""

import ast
import contextlib
import functools
import inspect
import io
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.core.config import Config, PositiveInt, only_if
from coplay.core.entities import EntityList
from coplay.core.errors import UserError, how_to_install, unknown
from coplay.core.game import Game, Observation, Outcome
from coplay.core.layout import Layout
from coplay.games.adapters.jaxmarl_drawing import (
    Scene,
    draw_scene,
    lay_out_scene,
    scene_of,
    text_scene,
)
from coplay.games.adapters.jaxmarl_kinds import KINDS, REFUSED, EnvStep, Kind
from coplay.games.adapters.trusted import require_installed

INSTALL = how_to_install("jaxmarl")


@dataclass(frozen=True)
class JaxmarlConfig(Config):
    """An environment of JaxMARL."""

    options: tuple[str, ...] = ()
    """Arguments of JaxMARL's environment as name=value, e.g. num_agents=4 num_landmarks=4."""


@dataclass(frozen=True)
class SmaxConfig(Config):
    """A battle of JaxMARL's SMAX."""

    enemies: Literal["heuristic", "players"] = "heuristic"
    """Who moves the enemies: JaxMARL's heuristic, and the seats are the allies; or players, in
    seats that follow those of the allies."""
    attack_mode: Annotated[Literal["closest", "random"], only_if("enemies", "heuristic")] = (
        "closest"
    )
    """Whom heuristic enemies attack."""
    dead: Literal["leave", "stay"] = "leave"
    """A dead unit's seat leaves the game and gets nothing more; or it stays, can only stop, sees
    zeros, and shares its side's rewards until the battle is over."""
    max_steps: PositiveInt = 100
    """Limit of time: a battle that nobody has won is cut after this many steps and one more."""
    see_enemy_actions: bool = True
    """Whether units see what enemies in sight did last."""
    walls_cause_death: bool = True
    """Whether a unit that touches the edge of the map dies."""
    options: tuple[str, ...] = ()
    """Further arguments of JaxMARL's SMAX as name=value, e.g. won_battle_bonus=2.0."""


def jaxmarl_parts(environment: str) -> tuple[type, Callable[..., Game]]:
    """Configuration and maker of `jaxmarl:ENVIRONMENT`."""
    return JaxmarlConfig, functools.partial(make_jaxmarl, environment)


def smax_parts(scenario: str) -> tuple[type, Callable[..., Game]]:
    """Configuration and maker of `smax:SCENARIO`."""
    return SmaxConfig, functools.partial(make_smax, scenario)


def make_jaxmarl(environment: str, config: JaxmarlConfig) -> "JaxmarlGame":
    """An environment of JaxMARL's registry."""
    name = f"jaxmarl:{environment}"
    if environment in REFUSED:
        raise UserError(f"{name} cannot be played: {REFUSED[environment]}")
    if environment not in KINDS:
        raise unknown("environment of JaxMARL", environment, KINDS)
    return _adapted(name, environment, config.options, False)


def make_smax(scenario: str, config: SmaxConfig) -> "JaxmarlGame":
    """A battle of SMAX, with heuristic enemies or with players on both sides."""
    heuristic = config.enemies == "heuristic"
    options = [
        f"scenario={scenario}",
        f"max_steps={config.max_steps}",
        f"see_enemy_actions={config.see_enemy_actions}",
        f"walls_cause_death={config.walls_cause_death}",
    ]
    if heuristic:
        options.append(f"attack_mode={config.attack_mode}")
    return _adapted(
        f"smax:{scenario}",
        "HeuristicEnemySMAX" if heuristic else "SMAX",
        (*options, *config.options),
        config.dead == "stay",
    )


class JaxmarlState(NamedTuple):
    """env: JaxMARL's state. alive: which seats are in the game. view: JaxMARL's observations, where
    they are no function of its state (`Kind.keeps_view`); else (). last: what each seat did last.
    order: [seat] which agent it is; None: the agents in their order."""

    env: Any
    alive: Bool[Array, " seat"]
    view: Any
    last: Int[Array, " seat"]
    order: Int[Array, " seat"] | None = None


class JaxmarlGame(Game):
    """An environment of JaxMARL, its agents in their order as seats.

    An observation that is an image becomes planes, all else features. Seats with fewer numbers to
    see have zeros behind them; seats with fewer actions have the others masked. JaxMARL's agents
    need not be alike, so the game is not `symmetric`. Its seats can be renumbered: a state says
    which agent has which seat.
    """

    symmetric: ClassVar[bool] = False

    name: str = eqx.field(static=True)  # type: ignore[misc]
    action_names: tuple[str, ...] = eqx.field(static=True)  # type: ignore[misc]
    environment: str = eqx.field(static=True)
    env: Any = eqx.field(static=True)
    counts: tuple[int, ...] = eqx.field(static=True)
    dead_stay: bool = eqx.field(static=True)

    @property
    def kind(self) -> Kind:
        """What is particular to the environment."""
        return KINDS[self.environment]

    @property
    def seats(self) -> int:
        return len(self.counts)

    @property
    def plane_names(self) -> tuple[str, ...]:
        state = jax.eval_shape(self.reset, jax.random.key(0))
        planes = jax.eval_shape(self.observe, state).planes.shape[-1]
        return tuple(f"channel {index}" for index in range(planes))

    @property
    def can_renumber(self) -> bool:
        return True

    @property
    def full_view(self) -> bool:
        return self.kind.full_view

    @property
    def entities(self) -> tuple[EntityList, ...]:
        return self.kind.entities(self.env)

    @property
    def teams(self) -> tuple[int, ...]:
        sides = self.kind.sides(self.env)
        by_agent = {agent: side for side, (_, agents) in enumerate(sides) for agent in agents}
        return tuple(by_agent[agent] for agent in sorted(by_agent))

    @property
    def side_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.kind.sides(self.env)) or super().side_names

    def side_of(self, state: JaxmarlState) -> Int[Array, " seat"]:
        sides = jnp.array(self.teams or range(self.seats), jnp.int32)
        return sides if state.order is None else sides[state.order]

    def reset(self, key: PRNGKeyArray) -> JaxmarlState:
        with quiet():
            view, state = self.env.reset(key)
        nothing = jnp.full(self.seats, self.kind.idle, jnp.int32)
        return JaxmarlState(state, jnp.ones(self.seats, bool), self._kept(view), nothing)

    def step(
        self, key: PRNGKeyArray, state: JaxmarlState, actions: Int[Array, " seat"]
    ) -> tuple[JaxmarlState, Outcome]:
        """All seats act at once; a number that is no action of a seat is taken as its last one."""
        if state.order is not None:
            mine = state.order  # [seat] its agent
            back = jnp.argsort(mine)
            plain = self.permute_seats(state, back)._replace(order=None)
            after, outcome = self.step(key, plain, actions[back])
            reward, terminated = outcome.reward[mine], outcome.terminated[mine]
            outcome = Outcome(reward, terminated, outcome.truncated)
            return self.permute_seats(after, mine), outcome
        actions = jnp.clip(actions, 0, jnp.array(self.counts) - 1)
        actions = jnp.where(state.alive, actions, self.kind.idle)
        given = {agent: actions[seat] for seat, agent in enumerate(self.env.agents)}
        with quiet():
            view, after, rewards, dones, _ = self.env.step_env(key, state.env, given)
        over = dones["__all__"]
        done = jnp.stack([dones.get(agent, over) for agent in self.env.agents])
        gone = self.kind.gone(self.env, EnvStep(state.env, actions, after, done))
        if self.dead_stay:
            gone = jnp.broadcast_to(jnp.all(gone), gone.shape)
        alive = state.alive & ~gone
        reward = jnp.stack([jnp.float32(rewards[agent]) for agent in self.env.agents])
        outcome = Outcome(
            reward=jnp.where(state.alive, reward, 0.0),
            terminated=state.alive & gone,
            truncated=over & jnp.any(alive),
        )
        last = jnp.where(state.alive, actions, state.last).astype(jnp.int32)
        return JaxmarlState(after, alive, self._kept(view), last), outcome

    def observe(self, state: JaxmarlState) -> Observation:
        with quiet():
            given = state.view if self.kind.keeps_view else self.env.get_obs(state.env)
        planes, features = stacked(self.kind.views(self.env, given))
        seen = Observation(planes, features, self._legal(state))
        return seen if state.order is None else jax.tree.map(lambda x: x[state.order], seen)

    def alive(self, state: JaxmarlState) -> Bool[Array, " seat"]:
        return state.alive

    def last_actions(self, state: JaxmarlState) -> Int[Array, " seat"]:
        """The idle action at first."""
        return state.last

    def permute_seats(self, state: JaxmarlState, order: Int[Array, " seat"]) -> JaxmarlState:
        agents = order if state.order is None else state.order[order]
        return state._replace(alive=state.alive[order], last=state.last[order], order=agents)

    def scores(self, state: JaxmarlState) -> Mapping[str, Float[Array, ""]]:
        return self.kind.scores(self.env, state.env)

    @property
    def has_global_state(self) -> bool:
        return self.kind.global_state is not None

    def global_state(self, state: JaxmarlState) -> Float[Array, " number"]:
        """Everything at once, for a critic that may see all: JaxMARL's own global state
        (SMAX), else what all seats see, one after the other."""
        if self.kind.global_state is None:
            return super().global_state(state)
        return self.kind.global_state(self.env, state.env)

    def draw(self, state: JaxmarlState, cell: int = 48) -> np.ndarray:
        return draw_scene(self._scene(state), cell)

    def layout(self, state: JaxmarlState) -> Layout:
        return lay_out_scene(self._scene(state))

    def text(self, state: JaxmarlState) -> str:
        return text_scene(self._scene(state))

    def _scene(self, state: JaxmarlState) -> Scene:
        return scene_of(self.environment, self.env, self.seats, state.env)

    def _kept(self, view: Any) -> Any:
        return view if self.kind.keeps_view else ()

    def _legal(self, state: JaxmarlState) -> Bool[Array, "seat action"]:
        if self.kind.legal is None:
            return jnp.arange(self.actions) < jnp.array(self.counts)[:, None]
        with quiet():
            masks = self.kind.legal(self.env, state.env)
        padded = [jnp.pad(mask.astype(bool), (0, self.actions - len(mask))) for mask in masks]
        return jnp.stack(padded)


def stacked(views: list[Any]) -> tuple[Array, Float[Array, "seat feature"]]:
    """The observations of all seats as planes and features: images are planes, all other numbers
    features, with zeros behind those of seats that have fewer."""
    images, vectors = [], []
    for view in views:
        leaves = jax.tree.leaves(view)
        images += [leaf for leaf in leaves if leaf.ndim == 3]
        vectors.append([leaf.reshape(-1).astype(jnp.float32) for leaf in leaves if leaf.ndim != 3])
    flat = [jnp.concatenate(parts) if parts else jnp.zeros(0) for parts in vectors]
    size = max(len(vector) for vector in flat)
    features = jnp.stack([jnp.pad(vector, (0, size - len(vector))) for vector in flat])
    planes = jnp.stack(images) if images else jnp.zeros((len(views), 0, 0, 0), jnp.int8)
    return planes, features


# --- making environments -----------------------------------------------------------------------


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """JaxMARL prints and warns while it is traced; a user can do nothing about it, and what it
    prints would get among our own output."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def import_jaxmarl() -> Any:
    """The module. Importing it prints, and sets the standard streams back to those of the process,
    whatever they were before."""
    streams = sys.stdout, sys.stderr, sys.__stdout__
    sys.__stdout__ = io.StringIO()  # type: ignore[assignment,misc]
    try:
        with quiet():
            import jaxmarl
    except ModuleNotFoundError as error:
        raise UserError(f"JaxMARL's games need it installed ({error}): {INSTALL}") from error
    finally:
        sys.stdout, sys.stderr, sys.__stdout__ = streams  # type: ignore[misc]
    return jaxmarl


def _adapted(name: str, environment: str, options: tuple[str, ...], dead_stay: bool) -> JaxmarlGame:
    """The game around an environment, or an error if it cannot be played."""
    require_installed(name, "jaxmarl")
    env = make_environment(environment, options)
    kind = KINDS[environment]
    spaces = [env.action_space(agent) for agent in env.agents]
    for agent, space in zip(env.agents, spaces, strict=True):
        if not hasattr(space, "n"):
            raise UserError(
                f"{name} with {' '.join(options)}: agent {agent} has the action space "
                f"{type(space).__name__}{list(space.shape)}; coplay's players need discrete actions"
            )
    counts = tuple(int(space.n) for space in spaces)
    names = tuple(kind.names(env, max(counts)))
    game = JaxmarlGame(name, names, environment, env, counts, dead_stay)
    _check_images(game)
    return game


def _check_images(game: JaxmarlGame) -> None:
    """Refuse agents whose images cannot be laid beside each other."""
    with quiet():
        views, _ = jax.eval_shape(game.env.reset, jax.random.key(0))
    shapes = []
    for view in jax.eval_shape(lambda given: game.kind.views(game.env, given), views):
        shapes.append([leaf.shape for leaf in jax.tree.leaves(view) if leaf.ndim == 3])
    if any(len(images) > 1 or images != shapes[0] for images in shapes):
        raise UserError(
            f"{game.name}: the agents see images of the shapes {shapes}; coplay needs one image "
            "of the same shape for each, or none"
        )


@functools.cache
def make_environment(environment: str, options: tuple[str, ...]) -> Any:
    """JaxMARL's environment, the same one for the same arguments: compiled programs, which hang on
    the very object, are then shared by all games that are alike."""
    jaxmarl = import_jaxmarl()
    given = dict(KINDS[environment].options) | _parsed(environment, options)
    try:
        with quiet(), jax.ensure_compile_time_eval():
            return jaxmarl.make(environment, **given)
    except (AssertionError, NotImplementedError, TypeError, ValueError) as error:
        raise UserError(f"JaxMARL does not make {environment} with {given}: {error}") from error


def _parsed(environment: str, options: tuple[str, ...]) -> dict[str, Any]:
    """Arguments from texts name=value, checked against what JaxMARL's environment takes."""
    if not options:
        return {}
    valid = _arguments(environment)
    given: dict[str, Any] = {}
    for option in options:
        name, equals, text = option.partition("=")
        if not equals:
            raise UserError(f"'{option}' in --game.options: expected name=value")
        if name not in valid:
            raise unknown(f"option of {environment}", name, valid)
        given[name] = _value(environment, name, text)
    return given


def _arguments(environment: str) -> list[str]:
    """What an environment's class and those it inherits from or wraps take: many pass on what
    they do not know, and MPE ignores it in the end."""
    env = make_environment(environment, ())
    inner = getattr(env, "_env", env)  # the battle within heuristic enemies
    names: set[str] = set()
    for one in {*type(env).__mro__, *type(inner).__mro__} - {object}:
        parameters = inspect.signature(one).parameters.values()
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        names |= {parameter.name for parameter in parameters if parameter.kind in named}
    return sorted(names - {"self"})


def _value(environment: str, name: str, text: str) -> Any:
    """An argument from its text: a Python value, a list as an array, or a word as it is; scenarios
    and layouts by their names."""
    if name == "scenario" and "SMAX" in environment:
        return _named("scenario of SMAX", text, smax_scenarios())
    if name == "layout" and environment == "overcooked":
        from jaxmarl.environments import overcooked_layouts

        return _named("layout of overcooked", text, overcooked_layouts)
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return np.array(value) if isinstance(value, list) else value


def smax_scenarios() -> dict[str, Any]:
    """JaxMARL's scenarios and our own. SMAC's corridor lives by its terrain, which SMAX has not:
    the same units on open ground are another task, with a name of its own."""
    from jaxmarl.environments.smax.smax_env import MAP_NAME_TO_SCENARIO, Scenario

    zealot, zergling = 3, 4
    units = np.array([zealot] * 6 + [zergling] * 24, np.uint8)
    return MAP_NAME_TO_SCENARIO | {
        "6z_vs_24zg_flat": Scenario(jnp.asarray(units), 6, 24, False, False)
    }


def _named(what: str, name: str, known: Mapping[str, Any]) -> Any:
    if name not in known:
        raise unknown(what, name, known)
    return known[name]
