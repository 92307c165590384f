"""`coplay bench peers`: ours and others' programs for the same work, by turns in one run.

Beside PPO on a board stands a plain script in JAX; beside PPO and MAPPO on environments of JaxMARL
a mirror of JaxMARL's own scripts; beside our search a plain program with mctx. What is compared is
the time of whole updates and whole searches, and the time to compile them with an empty cache.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray
from rich.table import Table

from coplay.algorithms.mappo.config import MAPPOConfig
from coplay.algorithms.mappo.learner import MAPPO
from coplay.algorithms.ppo.config import PPOConfig
from coplay.algorithms.ppo.learner import PPO
from coplay.bench import plain_ppo, plain_search, plain_teams
from coplay.bench.measure import Speed, Work, measure, ratio_words
from coplay.bench.search import arbitrary_searches
from coplay.bench.teams import MIRRORED
from coplay.core.config import PositiveInt, with_fields
from coplay.core.game import Game
from coplay.games.registry import make_game
from coplay.nn.config import NetworkConfig
from coplay.nn.networks import view_shape
from coplay.reports.results import console_for_tables, print_json
from coplay.search.config import SearchConfig
from coplay.search.mctx_backend import require_mctx
from coplay.search.root import search
from coplay.training.block import init_state, one_iteration
from coplay.training.phases import Phase

EPOCHS = MINIBATCHES = 4
UPDATES = 2
"""Updates of one call: memory that a program takes once is not counted for each."""
SPREAD, BATTLE = "jaxmarl:MPE_simple_spread_v3", "smax:3m"


@dataclass(frozen=True)
class PeersArguments:
    """Ours beside others' programs for the same work, by turns in one run; eight minutes."""

    repeats: PositiveInt = 5
    """Turns of each pair of programs; medians count, and their range is shown."""
    quick: bool = False
    """A rough answer sooner: two turns, without SMAX and without long searches."""
    json: bool = False
    """Print {"rows": […]} on standard output."""


def run_peers(arguments: PeersArguments) -> int:
    """Measure every pair and print it."""
    require_mctx()  # before minutes are spent on what comes first
    make_game(SPREAD)
    repeats = 2 if arguments.quick else arguments.repeats
    rows = [
        row(*measure(make(), repeats)) for make, long in pairs() if not (long and arguments.quick)
    ]
    if arguments.json:
        print_json({"rows": rows})
        return 0
    table = Table(title="ours beside others, by turns in one run")
    columns = ("work", "beside", "counted", "ours /s", "theirs /s", "ratio", "compile s")
    for name in columns:
        table.add_column(name, justify="left" if name in columns[:3] else "right")
    for one in rows:
        table.add_row(
            one["work"],
            one["beside"],
            one["counted"],
            f"{one['ours']:,.0f}",
            f"{one['theirs']:,.0f}",
            ratio_words(one),
            f"{one['ours_compile']:.1f}, {one['theirs_compile']:.1f}",
        )
    console_for_tables().print(table)
    return 0


def row(ours: Speed, theirs: Speed) -> dict[str, Any]:
    """One line of the table. ratio: the median over turns of their time by ours."""
    ratios = [b / a for a, b in zip(ours.turns, theirs.turns, strict=True)]
    return {
        "work": ours.work.name,
        "beside": theirs.work.name,
        "counted": ours.work.unit,
        "ours": ours.per_second,
        "theirs": theirs.per_second,
        "ratio": statistics.median(ratios),
        "range": [min(ratios), max(ratios)],
        "ours_compile": ours.compile_seconds,
        "theirs_compile": theirs.compile_seconds,
    }


def pairs() -> list[tuple[Callable[[], list[Work]], bool]]:
    """Pairs of programs, ours first, and whether they take long."""
    return [
        (lambda: board_training(4), False),
        (lambda: board_training(8), True),
        (lambda: team_training(SPREAD, "ippo"), False),
        (lambda: team_training(SPREAD, "mappo"), False),
        (lambda: team_training(BATTLE, "mappo"), True),
        (lambda: searching(32), False),
        (lambda: searching(200), True),
    ]


def board_training(side: int) -> list[Work]:
    """PPO with networks of its own for each seat of Stag Hunt, and a plain script."""
    copies, steps = 256, 32
    game = make_game("stag-hunt", height=side, width=side)
    config = PPOConfig(epochs=EPOCHS, minibatches=MINIBATCHES)
    start = plain_ppo.begin(game, jax.random.key(0), copies, config.network.hidden)

    def plain(game: Game, carry: Any) -> Any:
        def one(carry: Any, _: None) -> tuple[Any, None]:
            return plain_ppo.update(game, carry, steps, EPOCHS, MINIBATCHES), None

        return jax.lax.scan(one, carry, None, UPDATES)

    name = f"PPO, Stag Hunt {side}x{side}, 2 layers of 64, {copies} x {steps} steps"
    amount = copies * steps * UPDATES
    return [
        ours(name, game, PPO, config, copies, steps),
        Work("plain JAX", "game steps", amount, plain, (game, start)),
    ]


def team_training(name: str, kind: plain_teams.Kind) -> list[Work]:
    """PPO with shared networks, or recurrent MAPPO, and the mirror of JaxMARL's script."""
    copies, steps = 64, 128
    game = make_game(name)
    env = game.env  # type: ignore[attr-defined]
    start = plain_teams.begin(env, kind, jax.random.key(0), copies)

    def mirror(carry: Any) -> Any:
        def one(carry: Any, _: None) -> tuple[Any, Any]:
            return plain_teams.update(env, kind, carry, steps, EPOCHS, MINIBATCHES)

        return jax.lax.scan(one, carry, None, UPDATES)

    if kind == "ippo":
        config: Any = PPOConfig(
            epochs=EPOCHS,
            minibatches=MINIBATCHES,
            parameters="shared",
            network=NetworkConfig(hidden=(64, 64)),
        )
        learner: Any = PPO
        what = "PPO, shared, 2 layers of 64"
    else:
        config = with_fields(MAPPOConfig(), MIRRORED | {"memory.kind": "gru"})
        learner = MAPPO
        what = "MAPPO, gated recurrent unit of 128"
    title, amount = f"{what}, {name}, {copies} x {steps} steps", copies * steps * UPDATES
    return [
        ours(title, game, learner, config, copies, steps),
        Work("JaxMARL's script, mirrored", "game steps", amount, mirror, (start,)),
    ]


def ours(name: str, game: Game, kind: Any, config: Any, copies: int, steps: int) -> Work:
    """Some updates of one of our learners in all seats."""
    seats = tuple(range(game.seats))
    learner = kind(config, view_shape(game), game.seats, seats, seats)
    phase = Phase(0, ("learner",) * game.seats, (learner,), ())
    streams = jnp.arange(game.seats)
    state = jax.jit(lambda key: init_state(phase, game, key, copies, streams))(jax.random.key(0))

    def several(game: Game, state: Any, key: PRNGKeyArray) -> Any:
        def one(state: Any, key: PRNGKeyArray) -> Any:
            return one_iteration(phase, game, state, key, jnp.float32(0), steps, streams)

        return jax.lax.scan(one, state, jax.random.split(key, UPDATES))

    amount = copies * steps * UPDATES
    return Work(name, "game steps", amount, several, (game, state, jax.random.key(1)))


def searching(simulations: int) -> list[Work]:
    """Our search, and a plain program with mctx."""
    trees, game = 256, make_game("stag-hunt")
    setting = arbitrary_searches(game, trees, plain_search.HIDDEN)
    config = SearchConfig(simulations=simulations, depth=simulations)
    networks = plain_search.new_networks(game, jax.random.key(0))

    def run(game: Game, setting: Any) -> Any:
        simulator, state, hypothesis, seed = setting
        return search(simulator, game, config, state, hypothesis, seed)

    def plain(game: Game, networks: Any, state: Any, key: PRNGKeyArray) -> Any:
        return plain_search.plain_search(game, networks, key, state, simulations)

    amount = trees * simulations
    name = f"search, Stag Hunt 4x4, {trees} trees of {simulations} simulations"
    given = (game, networks, setting[1], jax.random.key(1))
    return [
        Work(name, "simulations", amount, run, (game, setting)),
        Work("mctx, plain program", "simulations", amount, plain, given),
    ]
