"""`coplay bench`: game stepping, PPO training and HOP's decisions beside other programs, and the
time to start up.

What stands beside is measured in the same run. A limit is a part of the same work, so nothing can
be faster: for stepping, the rules (no ego views); for training, the networks on views of the same
kind (acting and learning, without games, losses or optimisers); for decisions, the imagined steps
without a tree. Others are no limits: JaxMARL's own stepping, a plain loop, feed-forward MAPPO.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Shaped
from rich.table import Table

from coplay.algorithms.hop.config import HOPConfig
from coplay.algorithms.ppo.config import PPOConfig
from coplay.algorithms.ppo.learner import PPO, PPOState
from coplay.bench.decisions import deciding, in_simulations
from coplay.bench.jaxmarl import jaxmarl_stepping
from coplay.bench.measure import Speed, Work, measure, peak_memory_mb
from coplay.bench.teams import team_training
from coplay.bench.workers import worker_rows
from coplay.core.config import PositiveInt
from coplay.core.game import Game
from coplay.core.group import group_players
from coplay.games.registry import make_game
from coplay.matches.rollout import new_table, rollout
from coplay.nn.networks import read, view_shape
from coplay.reports.results import console_for_tables, print_json
from coplay.training.block import init_state, one_iteration
from coplay.training.phases import Phase
from coplay.training.play_defaults import playing
from coplay.training.players import make_player

STEPPING_COPIES, STEPPING_STEPS = 1024, 32
COPIES, ROLLOUT, EPOCHS, MINIBATCHES = 256, 32, 4, 4


@dataclass(frozen=True)
class BenchArguments:
    """Throughput on this machine, each figure beside that of another program in the same run."""

    boards: tuple[PositiveInt, ...] = (4, 8)
    """Side lengths of the Stag Hunt boards."""
    seeds: PositiveInt = 4
    """How many seeds the row of several seeds trains."""
    repeats: PositiveInt = 5
    """Interleaved repetitions; the median counts."""
    hop: bool = True
    """Also measure decisions of HOP, as it learns and as it plays."""
    pettingzoo: bool = True
    """Also measure an environment in worker processes beside a plain loop over one of them (if mpe2
    is installed)."""
    start_up: bool = True
    """Also measure the time from command to first update, cold and with the compilation cache."""
    games: tuple[str, ...] = ()
    """Also step these games with random players, beside their rules alone: for instance coin-game
    foraging; own: all games of the library but Stag Hunt."""
    jaxmarl: tuple[str, ...] = ()
    """Also step these games of JaxMARL, beside JaxMARL's own stepping: for instance
    jaxmarl:MPE_simple_spread_v3 smax:3m. An empty --boards leaves out Stag Hunt."""
    teams: tuple[str, ...] = ()
    """Also train MAPPO and HyperMAPPO on these games in the settings of JaxMARL's own MAPPO script,
    each beside feed-forward MAPPO: for instance jaxmarl:MPE_simple_spread_v3 smax:3m."""
    team_copies: PositiveInt = 64
    """Game copies of these."""
    quick: bool = False
    """A rough answer sooner: the first board, two repetitions, Stag Hunt and PPO alone."""
    json: bool = False
    """Print {"rows": […]} on standard output."""

    def shortened(self) -> "BenchArguments":
        """What is measured: less if it has to be quick."""
        less: dict[str, Any] = {"hop": False, "pettingzoo": False, "start_up": False}
        return replace(self, boards=self.boards[:1], repeats=2, **less) if self.quick else self


def run_bench(arguments: BenchArguments) -> int:
    """Measure everything and print it."""
    arguments = arguments.shortened()
    rows: list[dict[str, Any]] = []
    for side in arguments.boards:
        game = make_game("stag-hunt", height=side, width=side)
        board = f"{side}x{side}"
        rows += compared(measure(stepping(game), arguments.repeats), board)
        rows += compared(measure(training(game, arguments.seeds), arguments.repeats), board)
        for config in (HOPConfig(), playing(HOPConfig())) if arguments.hop else ():
            found = compared(measure(deciding(game, config), arguments.repeats), board)
            rows += [*found, *in_simulations(found, config)]
    if arguments.pettingzoo:
        rows += worker_rows(arguments.repeats)
    for name in stepped_games(arguments.games):
        rows += compared(measure(stepping(make_game(name)), arguments.repeats), name)
    for name in arguments.jaxmarl:
        rows += compared(measure(jaxmarl_stepping(name), arguments.repeats), "")
    for name in arguments.teams:
        works = team_training(name, arguments.team_copies)
        rows += compared(measure(works, arguments.repeats), "")
    if arguments.start_up:
        rows += start_up()
    if arguments.json:
        print_json({"rows": rows, "peak_memory_mb": round(peak_memory_mb())})
        return 0
    table = Table(title="throughput; what stands beside is from the same run")
    words = ("what", "counted", "beside")
    for name in ("what", "board", "counted", "per second", "beside", "its", "share", "compile s"):
        table.add_column(name, justify="left" if name in words else "right")
    for row in rows:
        other = row["beside_per_second"]
        table.add_row(
            row["what"],
            row["board"],
            row["counted"],
            f"{row['per_second']:,.0f}" if row["per_second"] else f"{row['seconds']:.1f} s",
            row["beside"] or "",
            f"{other:,.0f}" if other else "",
            f"{row['per_second'] / other:.0%}" if other else "",
            f"{row['compile_seconds']:.1f}" if row["compile_seconds"] is not None else "",
        )
    console = console_for_tables()
    console.print(table)
    console.print(f"peak memory {peak_memory_mb():,.0f} MB")
    return 0


OWN = (
    *("snowdrift", "matrix:prisoners-dilemma", "coin-game", "foraging", "predator-prey"),
    *("harvest", "cleanup", "dispersion"),
)
"""The games of the library that `own` stands for."""


def stepped_games(names: Iterable[str]) -> list[str]:
    """The games that are asked for, each once."""
    return list(
        dict.fromkeys(game for name in names for game in (OWN if name == "own" else (name,)))
    )


def compared(speeds: list[Speed], board: str) -> list[dict[str, Any]]:
    """Rows of the table; the last program of each list stands beside the others."""
    *_, other = speeds
    return [
        {
            "what": speed.work.name,
            "board": board,
            "counted": speed.work.unit,
            "per_second": speed.per_second,
            "beside": other.work.name,
            "beside_per_second": other.per_second,
            "seconds": speed.seconds,
            "compile_seconds": speed.compile_seconds,
        }
        for speed in speeds[:-1]
    ]


def stepping(game: Game) -> list[Work]:
    """Random players with the ego views of all seats built, and the rules alone."""
    groups = group_players([make_player("random", game) for _ in range(game.seats)])
    key = jax.random.key(0)
    table = new_table(game, groups, key, STEPPING_COPIES)
    streams = jnp.arange(game.seats)

    def with_views(game: Game, table: Any, key: PRNGKeyArray) -> Any:
        table, played = rollout(game, groups, table, key, STEPPING_STEPS, streams)
        return table, played.observation, jnp.sum(played.reward)

    def rules_alone(game: Game, table: Any, key: PRNGKeyArray) -> Any:
        table, played = rollout(game, groups, table, key, STEPPING_STEPS, streams)
        return table, jnp.sum(played.reward)

    amount = STEPPING_COPIES * STEPPING_STEPS
    given = (game, table, key)
    name = f"random players, all ego views, {STEPPING_COPIES} copies"
    return [
        Work(name, "game steps", amount, with_views, given),
        Work("limit: without views", "game steps", amount, rules_alone, given),
    ]


def training(game: Game, seeds: int) -> list[Work]:
    """PPO iterations of one seed and of several, and the networks alone."""
    everyone = tuple(range(game.seats))
    learner = PPO(
        config=PPOConfig(epochs=EPOCHS, minibatches=MINIBATCHES),
        shape=view_shape(game),
        game_seats=game.seats,
        seats=everyone,
        active=everyone,
    )
    phase = Phase(0, ("ppo",) * game.seats, (learner,), ())
    streams = jnp.arange(game.seats)
    keys = jax.random.split(jax.random.key(0), seeds)
    states = jax.lax.map(lambda key: init_state(phase, game, key, COPIES, streams), keys)
    state = jax.tree.map(lambda x: x[0], states)

    def one(game: Game, state: Any, key: PRNGKeyArray) -> Any:
        return one_iteration(phase, game, state, key, jnp.float32(0), ROLLOUT, streams)

    def several(game: Game, states: Any, keys: PRNGKeyArray) -> Any:
        return jax.lax.map(lambda pair: one(game, *pair), (states, keys))

    def bare(views: Any, state: PPOState) -> Any:
        return bare_networks(learner, state, views)

    mine = state.learners[0]
    views = networks_views(game, learner, mine, state.table.state)
    amount = COPIES * ROLLOUT
    name = f"PPO, separate 2x64, {COPIES} x {ROLLOUT} steps, {EPOCHS} x {MINIBATCHES} minibatches"
    return [
        Work(name, "game steps", amount, one, (game, state, keys[0])),
        Work(f"{name}, {seeds} seeds", "game steps", amount * seeds, several, (game, states, keys)),
        Work("limit: the networks alone", "game steps", amount, bare, (views, mine)),
    ]


def networks_views(game: Game, learner: PPO, state: PPOState, states: Any) -> Any:
    """What the networks of each set are given of some states, as often as there are steps in a
    rollout, [time, set, copy, ...]."""
    seen = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), jax.vmap(game.observe)(states))
    view = read(state.actor, seen, state.identity[:, 0, None])
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (ROLLOUT, *x.shape)), view)


def bare_networks(learner: PPO, state: PPOState, views: Any) -> Any:
    """The networks' share of one iteration: acting, values, and gradients of all minibatches.
    views: [time, set, copy, ...]."""
    config = learner.config

    def outputs(networks: tuple, view: Any) -> Float[Array, ""]:
        actor, critic = (jax.vmap(lambda n, x: n(x))(network, view) for network in networks)
        return jnp.sum(jnp.square(actor)) + jnp.sum(jnp.square(critic))

    def act(total: Float[Array, ""], view: Any) -> tuple[Float[Array, ""], None]:
        return total + jnp.sum(jax.vmap(lambda n, x: n(x))(state.actor, view)), None

    total, _ = jax.lax.scan(act, jnp.float32(0), views)
    by_set = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), views)
    flat = jax.tree.map(lambda x: x.reshape(x.shape[0], -1, x.shape[-1]), by_set)
    total += jnp.sum(jax.vmap(lambda n, x: n(x))(state.critic, flat))

    def part(x: Shaped[Array, "set sample number"]) -> Shaped[Array, "part set some number"]:
        sets, _, numbers = x.shape
        return jnp.moveaxis(x.reshape(sets, config.minibatches, -1, numbers), 1, 0)

    def learn(networks: tuple, view: Any) -> tuple[tuple, None]:
        gradient = jax.grad(outputs)(networks, view)
        return jax.tree.map(lambda x, g: x - 1e-6 * g, networks, gradient), None

    def epoch(networks: tuple, _: None) -> tuple[tuple, None]:
        return jax.lax.scan(learn, networks, jax.tree.map(part, flat))

    networks = (state.actor, state.critic)
    return total, jax.lax.scan(epoch, networks, None, config.epochs)[0]


def start_up() -> list[dict[str, Any]]:
    """Seconds from the command to the end of the first update, in a new process each."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        script = FIRST_UPDATE.format(cache=str(Path(folder) / "cache"))
        for name in ("cold", "with the compilation cache"):
            begun = time.perf_counter()
            subprocess.run([sys.executable, "-c", script, folder, name[:4]], check=True)
            took = time.perf_counter() - begun
            rows.append(
                {
                    "what": f"from command to first update, {name}",
                    "board": "4x4",
                    "counted": "seconds",
                    "per_second": None,
                    "beside": None,
                    "beside_per_second": None,
                    "seconds": took,
                    "compile_seconds": None,
                }
            )
    return rows


FIRST_UPDATE = """
import sys, jax
jax.config.update("jax_compilation_cache_dir", {cache!r})
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
from pathlib import Path
from coplay.api.training import make_config
from coplay.training.trainer import Trainer, Watcher
config = make_config("ppo", "stag-hunt", {{}}, {{"steps": 8192, "block": 4}})
trainer = Trainer(config, Path(sys.argv[1]) / sys.argv[2], Watcher())
trainer._run_phase()
trainer.logs.close(None)
trainer.opened.close()
"""
