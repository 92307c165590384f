"""HOP in every game of the registry: it trains by the plain command, or refuses in a sentence."""

import dataclasses
import importlib.util
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.algorithms.hop.config import HOPConfig
from coplay.algorithms.hop.learner import HOP
from coplay.core.compilation import QUICK
from coplay.core.config import with_fields
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.group import Group
from coplay.games.registry import GAMES
from coplay.matches.rollout import new_table, rollout
from coplay.nn.networks import view_shape
from coplay.training.players import make_player

TINY: dict[str, Any] = {
    "network.hidden": (8,),
    "search.simulations": 2,
    "search.depth": 2,
    "replay.capacity": 32,
    "replay.updates": 1,
    "replay.batch": 4,
}
REFUSED = {
    "harvest": r"--game\.view None",
    "cleanup": r"--game\.view None",
    "identity": "only a part",
    "hidden-target": "only a part",
    "hidden-kind": "only a part",
    "dispersion": "only a part",
}
"""Game -> words of the reason."""
PLAYED = {
    "stag-hunt": {"height": 3, "width": 3},
    "snowdrift": {"height": 3, "width": 3, "drifts": 2},
    "coin-game": {"height": 3, "width": 3},
    "foraging": {"height": 5, "width": 5, "foods": 1},
    "predator-prey": {"height": 4, "width": 4},
    "matrix:prisoners-dilemma": {"rounds": 3},
    "matrix:matching-pennies": {"rounds": 3},
    "matrix:public-goods": {"rounds": 3},
    "harvest": {"height": 5, "width": 5, "view": None},
    "cleanup": {"height": 5, "width": 5, "view": None},
}
JAXMARL = ("jaxmarl:coin_game", "jaxmarl:MPE_simple_spread_v3")
needs_jaxmarl = pytest.mark.skipif(
    importlib.util.find_spec("jaxmarl") is None, reason="JaxMARL is not installed"
)


def hop(game: Game, **fields: Any) -> HOP:
    seats = tuple(range(game.seats))
    return HOP(
        config=with_fields(HOPConfig(), TINY | fields),
        shape=view_shape(game),
        game_seats=game.seats,
        seats=seats,
        active=seats,
    )


def train_a_little(game: Game, learner: HOP) -> Any:
    """Two updates, each after a few steps in two copies, in one compiled program."""
    learner.check(game)
    streams = jnp.arange(game.seats)

    @partial(jax.jit, compiler_options=QUICK)
    def run(key: Any) -> Any:
        state = learner.init(key, streams)
        table = new_table(game, (learner.group(state),), key, 2)

        def one(carry: tuple, key: Any) -> tuple:
            state, table = carry
            table, played = rollout(game, (learner.group(state),), table, key, 3, streams)
            data = learner.training_data(game, played)
            state, metrics = learner.update(key, state, data, jnp.float32(0.0))
            return (state, table), metrics

        metrics: Any
        (state, _), metrics = jax.lax.scan(one, (state, table), jax.random.split(key, 2))
        return state.networks, metrics

    return run(jax.random.key(0))


def test_every_game_is_played_or_refused() -> None:
    assert set(GAMES) <= set(PLAYED) | set(REFUSED)


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_play_it_refuses_before_the_run(name: str) -> None:
    game = coplay.make_game(name)
    with pytest.raises(UserError, match=REFUSED[name]):
        hop(game).check(game)


@pytest.mark.slow
@pytest.mark.parametrize("source", ["auto", "prototypes", "none"])
@pytest.mark.parametrize(
    "name", [*PLAYED, *(pytest.param(n, marks=needs_jaxmarl) for n in JAXMARL)]
)
def test_it_trains(name: str, source: str) -> None:
    game = coplay.make_game(name, **PLAYED.get(name, {}))
    networks, metrics = train_a_little(game, hop(game, **{"goals.source": source}))
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((networks, metrics)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["matrix:matching-pennies", "predator-prey"])
def test_it_trains_for_the_worst(name: str) -> None:
    game = coplay.make_game(name, **PLAYED[name])
    networks, _ = train_a_little(game, hop(game, **{"search.others": "worst"}))
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(networks))


def test_goals_that_are_not_declared_are_asked_for_in_vain() -> None:
    game = coplay.make_game("matrix:prisoners-dilemma")
    with pytest.raises(UserError, match=r"--goals\.source prototypes"):
        hop(game, **{"goals.source": "declared"}).check(game)


def test_the_source_and_the_network_follow_the_game() -> None:
    board, matrix = coplay.make_game("stag-hunt"), coplay.make_game("matrix:chicken")
    found = hop(board).settings
    assert (found.goals.source, found.network.kind) == ("declared", "centred")
    found = hop(matrix).settings
    assert (found.goals.source, found.network.kind) == ("none", "mlp")


@needs_jaxmarl
@pytest.mark.slow
def test_a_renumbered_jaxmarl_game_is_the_same_game() -> None:
    game = coplay.make_game("jaxmarl:MPE_simple_spread_v3")
    key, actions = jax.random.key(4), jnp.array([1, 2, 3])
    order = jnp.array([2, 0, 1])
    plain = game.reset(key)
    step = jax.jit(game.step)
    for turn in range(3):
        turned = game.permute_seats(plain, order)
        after, outcome = step(jax.random.key(turn), plain, actions)
        other, turned_outcome = step(jax.random.key(turn), turned, actions[order])
        np.testing.assert_array_equal(turned_outcome.reward, outcome.reward[order])
        np.testing.assert_array_equal(game.last_actions(other), actions[order])
        jax.tree.map(
            lambda a, b: np.testing.assert_array_equal(a, b[order]),
            game.observe(other),
            game.observe(after),
        )
        plain = after


@pytest.mark.slow
def test_prototypes_tell_apart_players_that_differ() -> None:
    """In each episode the co-player mostly takes one action, or mostly the other. After training
    the belief at the end of an episode tells which."""
    game = coplay.make_game("matrix:coordination", rounds=20)
    fields = {
        "goals.source": "prototypes",
        "goals.prototypes": 2,
        "planner": "none",
        "personas.share": 0.0,
        "belief.random_goal": False,
        "replay.capacity": 1280,
        "replay.updates": 16,
        "replay.batch": 64,
        "optimiser.learning_rate": 3e-3,
        "optimiser.schedule": "constant",
    }
    learner = dataclasses.replace(hop(game, **fields), seats=(0,), active=(0,))
    mixed = Group(make_player("mix:mixture-90:mixture-10", game), (1,), True)
    streams = jnp.arange(2)

    @partial(jax.jit, compiler_options=QUICK)
    def run(key: Any) -> Any:
        state = learner.init(key, streams)
        table = new_table(game, (learner.group(state), mixed), key, 16)

        def one(carry: tuple, key: Any) -> tuple:
            state, table = carry
            groups = (learner.group(state), mixed)
            table, played = rollout(game, groups, table, key, 20, streams)
            data = learner.training_data(game, played)
            state, _ = learner.update(key, state, data, jnp.float32(0.0))
            return (state, table), (
                played.recorded[(0,)].belief[-1, 0, :, 0, 0],
                played.action[..., 1],
            )

        return jax.lax.scan(one, (state, table), jax.random.split(key, 60))[1]

    belief, action = (np.asarray(x)[-10:] for x in run(jax.random.key(0)))
    first = action.mean(1) < 0.5  # [rollout, copy] it mostly took the first action
    assert abs(belief[first].mean() - belief[~first].mean()) > 0.8
