"""Games that are stepped by worker processes: environments that cannot be compiled.

To players, learners and tables such a game looks like any other. Its state is what the seats were
last shown; the environments themselves stay in the worker processes (`adapters/workers`), and
rollouts and matches ask those for the next state where they would call `step`.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import tyro
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.core.config import Config, NonNegativeInt, PositiveFloat
from coplay.core.errors import UserError
from coplay.core.game import Game, Observation, Outcome
from coplay.core.group import Group
from coplay.games.adapters.workers.pool import Pool, say_on_stderr
from coplay.games.adapters.workers.seats import IMAGE, Seats, Views, read_seats
from coplay.games.adapters.workers.source import Source


@dataclass(frozen=True)
class WorkerConfig(Config):
    """An environment stepped by worker processes."""

    options: tuple[str, ...] = ()
    """Keyword arguments of the environment as NAME=VALUE, e.g. N=3 max_cycles=50."""
    workers: NonNegativeInt = 0
    """Worker processes among which the game copies are shared out; 0: as many as cores."""
    timeout: PositiveFloat = 60.0
    """Seconds that one call of an environment may take before the run is stopped."""
    strict: Annotated[bool, tyro.conf.arg(aliases=("--strict",))] = False
    """Refuse what breaks PettingZoo's rules and can be played all the same: missing rewards,
    unknown agents, observations outside their space. Else each is said once."""
    restart_workers: Annotated[bool, tyro.conf.arg(aliases=("--restart-workers",))] = False
    """Start an environment anew that raises, dies or hangs, and cut its episode, instead of
    stopping. The summary counts how often."""


class WorkerState(NamedTuple):
    """What was last shown. seen: as the environment gave it, pictures still in bytes.

    picture: [pixel row, pixel column, RGB] uint8 in a recorded episode, else None.
    global_state: the environment's own state; None: it shows none. In the states of a trajectory
        it is all that there is: what was seen is beside them.
    """

    seen: Observation
    alive: Bool[Array, " seat"]
    picture: np.ndarray | None = None
    global_state: Float[Array, " number"] | None = None


class WorkerGame(Game):
    """See the module docstring. Seats are the environment's agents, in the order it names them.

    table: what the seats see and do. pictures: whether the environment can be drawn.
    said: what the user should know of the environment.
    """

    symmetric: ClassVar[bool] = False

    name: str = eqx.field(static=True)  # type: ignore[misc]
    config: WorkerConfig = eqx.field(static=True)
    source: Source = eqx.field(static=True)
    table: Seats = eqx.field(static=True)
    pictures: bool = eqx.field(static=True)
    said: tuple[str, ...] = eqx.field(static=True, default=())

    @property
    def seats(self) -> int:
        return self.table.count

    @property
    def action_names(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(str(action) for action in range(self.table.actions))

    @property
    def plane_names(self) -> tuple[str, ...]:
        return tuple(f"channel {index}" for index in range(self.table.planes[-1]))

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.said, *self.table.notes())

    def reset(self, key: PRNGKeyArray) -> WorkerState:
        """A state of the right shapes in which nothing has been shown yet."""
        seats, table = self.seats, self.table
        seen = Observation(
            planes=jnp.zeros((seats, *table.planes), table.plane_type),
            features=jnp.zeros((seats, table.features), jnp.float32),
            legal=jnp.ones((seats, table.actions), bool),
        )
        global_state = jnp.zeros(table.global_state, jnp.float32) if table.global_state else None
        return WorkerState(seen, jnp.ones(seats, bool), global_state=global_state)

    def step(
        self, key: PRNGKeyArray, state: WorkerState, actions: Int[Array, " seat"]
    ) -> tuple[WorkerState, Outcome]:
        raise UserError(
            f"{self.name} is stepped by worker processes and not by `step`: coplay.train, "
            "coplay.play and coplay watch play it; what plans ahead or compiles a game cannot"
        )

    def observe(self, state: WorkerState) -> Observation:
        return self.shown(state.seen)

    def shown(self, seen: Observation) -> Observation:
        """What players see of what the environment gave: pictures become numbers from 0 to 1."""
        if self.table.image:
            return seen._replace(planes=seen.planes.astype(jnp.float32) / IMAGE)
        return seen

    def alive(self, state: WorkerState) -> Bool[Array, " seat"]:
        return state.alive

    @property
    def has_global_state(self) -> bool:
        return self.table.global_state > 0

    def global_state(self, state: WorkerState) -> Float[Array, " number"]:
        return super().global_state(state) if state.global_state is None else state.global_state

    def permute_seats(self, state: WorkerState, order: Int[Array, " seat"]) -> WorkerState:
        of_seats = state._replace(picture=None, global_state=None)
        return jax.tree.map(lambda x: x[order], of_seats)._replace(global_state=state.global_state)

    def refuse_noticing(self, groups: tuple[Group, ...]) -> None:
        """Players that look at the states a step led to need a game whose states can be seen."""
        for group in groups:
            if group.notices:
                raise UserError(
                    f"{type(group.player).__name__} looks into the states of a game; those of "
                    f"{self.name} stay in its worker processes"
                )

    def draw(self, state: WorkerState, cell: int = 48) -> np.ndarray:
        if state.picture is None:
            raise UserError(
                f"{self.name} gives no pictures: it needs the render mode 'rgb_array' (an "
                "environment made by a callable: let it take the argument `render_mode`)"
            )
        return state.picture

    def text(self, state: WorkerState) -> str:
        raise UserError(
            f"{self.name} cannot be shown in the terminal: write a film by --out film.gif"
        )

    def pool(
        self,
        copies: int,
        sets: int = 1,
        film: bool = False,
        say: Callable[[str], None] = say_on_stderr,
    ) -> Pool:
        """Workers for `sets` times `copies` environments. say: see `Pool`."""
        config = self.config
        return Pool(
            self.source,
            self.table,
            copies,
            sets,
            config.workers,
            config.timeout,
            film,
            config.strict,
            config.restart_workers,
            say,
        )


def state_of(views: Views, picture: np.ndarray | None = None) -> WorkerState:
    """The state in which the seats are shown this; arrays [copy, ...] stay NumPy's."""
    seen: Any = Observation(views.planes, views.features, views.legal)  # type: ignore[arg-type]
    alive: Any = views.alive
    global_state: Any = views.global_state if views.global_state.shape[-1] else None
    return WorkerState(seen, alive, picture, global_state)


def look_at_environment(
    name: str,
    config: WorkerConfig,
    source: Source,
    pictures: Callable[[Any], bool],
    said: tuple[str, ...] = (),
) -> WorkerGame:
    """The game, after a look at one environment, which is made here and closed again."""
    try:
        env = source.make()
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{name} with options {list(config.options)} cannot be made: "
            f"{type(error).__name__}: {error}"
        ) from error
    try:
        return WorkerGame(name, config, source, read_seats(env, name), pictures(env), said)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{name} does not say what its agents see and do: {type(error).__name__}: {error}"
        ) from error
    finally:
        with suppress(Exception):  # what is no environment cannot be closed
            env.close()
