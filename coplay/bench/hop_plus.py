"""`coplay bench hop-plus`: an update of HOP+ in self-play, and the share of each of its parts.

Parts are programs of their own, so that they can be timed; the whole is one program, as in
training, so shares need not add up to exactly 1.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray
from rich.table import Table

from coplay.algorithms.hop_plus.config import HopPlusConfig, ImaginationConfig, ModelTrainingConfig
from coplay.algorithms.hop_plus.learner import HopPlus
from coplay.algorithms.hop_plus.models import HopPlusData, HopPlusState
from coplay.bench.measure import Work, measure
from coplay.core.config import PositiveInt, Share
from coplay.core.game import Game
from coplay.games.registry import make_game
from coplay.matches.rollout import rollout
from coplay.nn.networks import view_shape
from coplay.reports.results import console_for_tables, print_json
from coplay.training.block import groups_of, init_state, one_iteration
from coplay.training.phases import Phase


@dataclass(frozen=True)
class HopPlusBenchArguments:
    """A full step of training HOP+, and the share of each part."""

    game: str = "stag-hunt"
    """The game by name, as it is by default."""
    imagination: tuple[Share, ...] = (0.0, 0.5)
    """Shares of imagined steps to measure with, one after the other."""
    copies: PositiveInt = 256
    """Game copies."""
    rollout: PositiveInt = 32
    """Steps of each between two updates."""
    repeats: PositiveInt = 5
    """Interleaved repetitions; the median counts."""
    quick: bool = False
    """A rough answer sooner: two repetitions, the first share of imagined steps alone."""
    json: bool = False
    """Print {"rows": […]} on standard output."""


def run_hop_plus_bench(arguments: HopPlusBenchArguments) -> int:
    """Measure and print."""
    rows: list[dict[str, Any]] = []
    shares = arguments.imagination[:1] if arguments.quick else arguments.imagination
    for imagination in shares:
        share = ImaginationConfig(share=imagination, strangers=0.0, over="model")
        models = ModelTrainingConfig(learn_opponents=True)
        config = HopPlusConfig(parameters="shared", imagination=share, models=models)
        works = parts(make_game(arguments.game), config, arguments.copies, arguments.rollout)
        speeds = measure(works, 2 if arguments.quick else arguments.repeats)
        rows += [
            {
                "imagination": imagination,
                "part": speed.work.name,
                "seconds": speed.seconds,
                "share": speed.seconds / speeds[0].seconds,
                "per_second": speed.per_second,
                "compile_seconds": speed.compile_seconds,
            }
            for speed in speeds
        ]
    if arguments.json:
        print_json({"rows": rows})
        return 0
    table = Table(title=f"HOP+ on {arguments.game}: {arguments.copies} x {arguments.rollout} steps")
    for name in ("imagination", "part", "ms", "share", "game steps per second", "compile s"):
        table.add_column(name, justify="left" if name == "part" else "right")
    for row in rows:
        table.add_row(
            f"{row['imagination']:g}",
            row["part"],
            f"{1e3 * row['seconds']:.0f}",
            f"{row['share']:.0%}",
            f"{row['per_second']:,.0f}",
            f"{row['compile_seconds']:.1f}",
        )
    console_for_tables().print(table)
    return 0


def parts(game: Game, config: HopPlusConfig, copies: int, steps: int) -> list[Work]:
    """The whole update first, then its parts in their order."""
    seats = tuple(range(game.seats))
    learner = HopPlus(
        config=config, shape=view_shape(game), game_seats=game.seats, seats=seats, active=seats
    )
    phase = Phase(0, ("hop-plus",) * game.seats, (learner,), ())
    streams, key = jnp.arange(game.seats), jax.random.key(1)
    state = jax.jit(lambda key: init_state(phase, game, key, copies, streams))(jax.random.key(0))

    def whole(game: Game, state: Any, key: PRNGKeyArray) -> Any:
        return one_iteration(phase, game, state, key, jnp.float32(0), steps, streams)

    def play(game: Game, state: Any, key: PRNGKeyArray) -> Any:
        return rollout(game, groups_of(phase, state.learners), state.table, key, steps, streams)

    def watch(game: Game, trajectory: Any) -> HopPlusData:
        return learner.training_data(game, trajectory)._replace(game=None)  # type: ignore[arg-type]

    def predict_actions(mine: HopPlusState, observed: HopPlusData) -> Any:
        return learner._prediction_metrics(mine, observed)

    def codes(mine: HopPlusState, observed: HopPlusData) -> Any:
        return learner._with_codes(mine.goals, observed)

    def imagine(game: Game, key: PRNGKeyArray, mine: HopPlusState, observed: HopPlusData) -> Any:
        return learner._imagination.rollout(key, mine, observed._replace(game=game))

    def policy(key: PRNGKeyArray, mine: HopPlusState, own: Any, imagined: Any) -> Any:
        return learner._learn_policy(key, mine.policy, own, imagined, streams, jnp.float32(0))

    def models(key: PRNGKeyArray, mine: HopPlusState, observed: HopPlusData) -> Any:
        filled = learner._models.fill(mine, observed)
        return learner._models.learn(filled, key, key, jnp.bool_(True))

    mine = state.learners[0]
    trajectory = jax.jit(play)(game, state, key)[1]
    observed = jax.jit(watch)(game, trajectory)
    own = jax.jit(codes)(mine, observed)
    works: list[tuple[str, Any, tuple]] = [
        ("whole update", whole, (game, state, key)),
        ("playing, goals inferred", play, (game, state, key)),
        ("what is kept of it", watch, (game, trajectory)),
        ("how well actions were predicted", predict_actions, (mine, observed)),
        ("views with codes", codes, (mine, observed)),
    ]
    imagined = None
    if config.imagination.active:
        works.append(("imagination", imagine, (game, key, mine, observed)))
        imagined = jax.jit(imagine)(game, key, mine, observed)
    works += [
        ("PPO", policy, (key, mine, own, imagined)),
        ("models: buffers and gradient steps", models, (key, mine, observed)),
    ]
    return [Work(name, "game steps", copies * steps, run, given) for name, run, given in works]
