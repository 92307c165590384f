"""`coplay bench search`: our trees, those of mctx, and no trees at all, side by side.

All three simulate the same number of steps of Stag Hunt, with networks of two layers of 64: three
models of co-players with goals, an actor and a critic. The limit is these steps alone, one after
another, without a tree. Positions are fresh ones, networks are untrained, paths may go as deep as
there are simulations.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32
from rich.table import Table

from coplay.bench.measure import Work, measure, peak_memory_mb
from coplay.core.config import PositiveInt
from coplay.core.errors import UserError
from coplay.core.game import Game, State
from coplay.games.registry import make_game
from coplay.models.goal_simulator import GoalHypothesis, GoalSimulator
from coplay.models.personas import NO_PERSONA
from coplay.models.random_goal import WithRandomGoal
from coplay.nn.networks import Network, ViewShape, view_shape
from coplay.reports.results import console_for_tables, print_json
from coplay.search.config import SearchConfig
from coplay.search.root import search
from coplay.search.simulator import (
    Hypothesis,
    Position,
    Simulator,
    advance,
    begin,
    co_player_cdf,
    own_view,
)


@dataclass(frozen=True)
class SearchBenchArguments:
    """Simulations per second of our search, of mctx, and of the same steps without a tree."""

    boards: str = "4"
    """Side lengths of the Stag Hunt boards, as 4,8."""
    batch: str = "256"
    """Trees searched at once, as 16,256,1024."""
    simulations: str = "32"
    """Simulations of each tree, as 8,32,200."""
    repeats: PositiveInt = 7
    """Interleaved repetitions; the median counts."""
    quick: bool = False
    """A rough answer sooner: two repetitions."""
    json: bool = False
    """Print {"rows": […]} on standard output."""


def run_search_bench(arguments: SearchBenchArguments) -> int:
    """Measure every combination and print it."""
    boards, batches, simulations = (
        numbers(getattr(arguments, name), name) for name in ("boards", "batch", "simulations")
    )
    repeats = 2 if arguments.quick else arguments.repeats
    rows: list[dict[str, Any]] = []
    for side in boards:
        game = make_game("stag-hunt", height=side, width=side)
        for batch in batches:
            for count in simulations:
                speeds = measure(searching(game, batch, count), repeats)
                ours, theirs, limit = (speed.per_second for speed in speeds)
                rows.append(
                    {
                        "board": f"{side}x{side}",
                        "batch": batch,
                        "simulations": count,
                        "ours": ours,
                        "mctx": theirs,
                        "limit": limit,
                    }
                )
    if arguments.json:
        print_json({"rows": rows})
        return 0
    table = Table(title="simulations per second; all figures of a row are from the same run")
    for name in ("board", "batch", "simulations", "ours", "mctx", "limit", "to mctx", "of limit"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            *(str(row[name]) for name in ("board", "batch", "simulations")),
            *(f"{row[name]:,.0f}" for name in ("ours", "mctx", "limit")),
            *(f"{row['ours'] / row['mctx']:.1f}x", f"{row['ours'] / row['limit']:.0%}"),
        )
    console = console_for_tables()
    console.print(table)
    console.print(f"peak memory {peak_memory_mb():,.0f} MB")
    return 0


def numbers(text: str, name: str) -> list[int]:
    """Whole numbers above 0, separated by commas."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UserError(f"--{name} takes numbers above 0 separated by commas, not '{text}'")
    return [int(part) for part in parts]


def searching(game: Game, trees: int, simulations: int) -> list[Work]:
    """Our search, that of mctx, and the same steps without a tree."""
    setting = arbitrary_searches(game, trees, (64, 64))
    works = []
    for backend in ("coplay", "mctx"):
        config = SearchConfig(simulations=simulations, depth=simulations, backend=backend)

        def run(game: Game, setting: Any, config: SearchConfig = config) -> Any:
            simulator, state, hypothesis, seed = setting
            return search(simulator, game, config, state, hypothesis, seed)

        works.append(run)

    def without_tree(game: Game, setting: Any) -> Any:
        simulator, *rest = setting
        return steps_alone(game, simulations, simulator.prepared(game), *rest)

    names = ("our trees", "mctx", "no tree")
    return [
        Work(name, "simulations", trees * simulations, function, (game, setting))
        for name, function in zip(names, (*works, without_tree), strict=True)
    ]


def steps_alone(
    game: Game,
    simulations: int,
    simulator: Simulator,
    state: State,
    hypothesis: Hypothesis,
    seed: UInt32[Array, " tree"],
) -> Float[Array, " tree"]:
    """As many simulated steps as a search has simulations, each after the other; all that they
    give is used."""
    position, observation = begin(simulator, game, state, hypothesis, seed)
    logits, value = simulator.evaluate(game, own_view(observation), state, hypothesis)

    def one(_: Int[Array, ""], carry: tuple) -> tuple:
        position, logits, total = carry
        action = jnp.argmax(logits, axis=-1)
        others = co_player_cdf(simulator, game, position)
        after, step = advance(simulator, game, 0.95, position, others, action)
        logits, value = simulator.evaluate(
            game, own_view(step.observation), after.state, after.hypothesis
        )
        return after, logits, total + value + step.reward

    start: tuple[Position, Any, Any] = (position, logits, value)
    return jax.lax.fori_loop(0, simulations, one, start)[2]


def arbitrary_searches(
    game: Game, trees: int, hidden: tuple[int, ...], centred: bool = True, seed: int = 0
) -> tuple[GoalSimulator, State, GoalHypothesis, UInt32[Array, " tree"]]:
    """A simulator of untrained networks, fresh states, goals and seeds [tree] for searches."""
    shape = view_shape(game)
    keys = jax.random.split(jax.random.key(seed), 6)
    assert game.goals is not None
    goals, others = WithRandomGoal(game.goals), game.seats - 1
    context = shape.personas + others * (shape.goal_features + 1)
    wide = dataclasses.replace(shape, features=shape.features + context)
    with_goal = dataclasses.replace(shape, features=shape.features + shape.goal_features)

    def network(key: PRNGKeyArray, shape: ViewShape, outputs: int, scale: float) -> Network:
        return Network(
            shape,
            outputs,
            key=key,
            hidden=hidden,
            channels=(),
            activation="tanh",
            head_scale=scale,
            centred=centred,
        )

    simulator = GoalSimulator(
        actor=network(keys[0], wide, shape.actions, 1.0),
        critic=network(keys[1], wide, 1, 1.0),
        opponents=jax.vmap(lambda key: network(key, with_goal, shape.actions, 1.0))(
            jax.random.split(keys[2], others)
        ),
        habits=jnp.full((trees, others, shape.habits + 1), 1.0 / (shape.habits + 1)),
        belief=jnp.full((trees, others, shape.goals + 1), 1.0 / (shape.goals + 1)),
        rates=None,
        persona=jnp.full(trees, NO_PERSONA),
        personas=shape.personas,
        goals=goals,
        random_goal=True,
        guides=False,
    )
    state = jax.vmap(game.reset)(jax.random.split(keys[3], trees))
    goal = jax.random.randint(keys[4], (trees, others), 0, shape.goals + 1)
    hypothesis = GoalHypothesis(goal, jnp.zeros((trees, others, shape.goals + 1), jnp.int8))
    return simulator, state, hypothesis, jax.random.bits(keys[5], (trees,), jnp.uint32)
