"""What is imagined of a board agrees with the own view; where all is seen it is the truth."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coplay.core.compilation import QUICK
from coplay.core.game import Observation
from coplay.games.registry import make_game
from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.models.particles import CoPlayers, begin, follow
from coplay.nn import categorical

GAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "stag hunt": ("stag-hunt", {"view": 1, "horizon": 9}),
    "long stag hunt": ("stag-hunt", {"view": 1, "height": 2, "width": 7, "players": 3, "stags": 2}),
    "most is seen": ("stag-hunt", {"view": 2, "horizon": 9}),
    "all is seen": ("stag-hunt", {"horizon": 9}),
    "snowdrift": ("snowdrift", {"view": 1, "height": 4, "width": 5, "drifts": 3}),
    "harvest": ("harvest", {"view": 1, "players": 3}),
    "cleanup": ("cleanup", {"height": 5, "width": 6, "players": 3}),
}
STEPS, COPIES, NUMBER = 10, 4, 16


class ByChance(CoPlayers):
    """Co-players that take all legal actions alike."""

    def judge(self, views: Observation, joint: Any, memory: Any) -> tuple[Any, Any]:
        return categorical.take(categorical.uniform_policy(views.legal), joint[..., 0]), memory


def own_views(game: Any, state: Any) -> Observation:
    return jax.tree.map(lambda x: x[:, 0], jax.vmap(game.observe)(state))


@cache
def course(name: str) -> Any:
    """A compiled function of a seed: true and imagined states of random games, [time, copy, ...],
    and which of the own seats were in the game."""
    kind, fields = GAMES[name]
    game = make_game(kind, **fields)

    def play(seed: Any) -> Any:
        start_key, begin_key, key = jax.random.split(jax.random.key(seed), 3)
        state = jax.vmap(game.reset)(jax.random.split(start_key, COPIES))
        nothing = jnp.zeros((COPIES, NUMBER, game.seats - 1, 0))
        particles = begin(game, begin_key, own_views(game, state), nothing, NUMBER)

        def step(carry: Any, key: Any) -> Any:
            state, particles = carry
            act_key, step_key, follow_key = jax.random.split(key, 3)
            legal = jax.vmap(game.observe)(state).legal
            uniform = jax.random.uniform(act_key, legal.shape[:2])
            action = categorical.sample(uniform, categorical.uniform_policy(legal))
            after, outcome = jax.vmap(game.step)(jax.random.split(step_key, COPIES), state, action)
            seen, reward = own_views(game, after), outcome.reward[:, 0]
            new = follow(game, ByChance(), follow_key, particles, seen, reward)
            return (after, new), (after, new.imagined.state, new.agreeing)

        rest = jax.lax.scan(step, (state, particles), jax.random.split(key, STEPS))[1]
        first = (state, particles.imagined.state, particles.agreeing)
        found = jax.tree.map(lambda x, y: jnp.concatenate([x[None], y]), first, rest)
        alive = jax.vmap(jax.vmap(game.alive))(found[0])[..., 0]
        views = jax.vmap(jax.vmap(game.observe))(found[0])
        theirs = jax.vmap(jax.vmap(jax.vmap(game.observe)))(found[1])
        going = jax.vmap(jax.vmap(jax.vmap(game.alive)))(found[1])[..., 0]
        return found, (views, theirs), (alive, going)

    return jax.jit(play, compiler_options=QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_what_is_imagined_agrees_with_the_own_view(name: str, seed: int) -> None:
    found, (views, theirs), (alive, going) = jax.tree.map(np.asarray, course(name)(seed))
    for what in ("planes", "features", "legal"):
        seen, imagined = (getattr(x, what) for x in (views, theirs))
        same = (imagined[:, :, :, 0] == seen[:, :, None, 0]).reshape(*alive.shape, NUMBER, -1)
        assert same.all(axis=(2, 3))[alive].all(), what
    assert (found[1].time == found[0].time[..., None]).all()
    assert going.all(axis=2)[alive].all(), "who plays is in the game in all that it imagines"
    if name == "all is seen":
        assert (found[2][alive] == 1).all()
        true, imagined, _ = found
        check_truth(true, imagined, alive)


def check_truth(true: Any, imagined: Any, alive: Any) -> None:
    """Everything is as it is; prey of a kind is alike, in whatever order."""
    for what in ("cell", "alive", "last", "strength", "time", "first_hunt", "board"):
        real, seen = getattr(true, what), getattr(imagined, what)
        assert (seen == real[:, :, None])[alive].all(), what
    for kind in (slice(0, 1), slice(1, None)):  # a stag, then hares
        where = (
            np.sort(np.where(state.prey_alive, state.prey, -1)[..., kind], axis=-1)
            for state in (true, imagined)
        )
        real, seen = where
        assert (seen == real[:, :, None])[alive].all()


def test_what_is_out_of_sight_lies_evenly_where_it_is_not_seen() -> None:
    """At the beginning, against all boards that the own view allows."""
    game = make_game("stag-hunt", height=2, width=4, players=2, stags=1, hares=0, view=1)
    state: Any = game.reset(jax.random.key(0))
    # In a corner: the cells 2, 3, 6 and 7 are out of sight, and so are the other and the stag.
    state = state._replace(cell=jnp.array([0, 3], jnp.int16), prey=jnp.array([6], jnp.int16))
    seen = jax.tree.map(lambda x: x[0], game.observe(state))
    keys = jax.random.split(jax.random.key(1), 12_000)
    found = jax.jit(jax.vmap(game.hidden.begin, (0, None)))(keys, seen).state
    assert (found.cell[:, 0] == 0).all()
    pairs = np.asarray(found.cell[:, 1]) * 8 + np.asarray(found.prey[:, 0])
    allowed = [8 * other + stag for other in (2, 3, 6, 7) for stag in (2, 3, 6, 7) if other != stag]
    count = np.bincount(pairs, minlength=64)
    assert set(np.flatnonzero(count)) == set(allowed)
    assert (np.abs(count[allowed] - 1000) < 150).all()  # 5 deviations of 30


def test_who_hunts_out_of_sight_stands_on_prey() -> None:
    game = make_game("stag-hunt", height=2, width=4, players=2, stags=0, hares=2, view=1)
    state: Any = game.reset(jax.random.key(0))
    cells = {"cell": jnp.array([0, 3]), "prey": jnp.array([6, 5])}
    state = state._replace(**{name: x.astype(jnp.int16) for name, x in cells.items()})
    hidden: Any = game.hidden
    seen = jax.tree.map(lambda x: x[0], game.observe(state))
    imagined = hidden.begin(jax.random.key(0), seen)._replace(state=state)
    hunted = hidden.allow(jax.random.key(1), imagined, jnp.array([4, 6])).state
    assert hunted.prey.tolist() == [3, 5], "the hare out of sight comes, the one in sight stays"
    kept = hidden.allow(jax.random.key(1), imagined, jnp.array([4, 1])).state
    assert jax.tree.all(jax.tree.map(lambda x, y: bool((x == y).all()), kept, state))
    moved = hidden.allow(jax.random.key(1), imagined, jnp.array([4, 3])).state
    assert int(moved.cell[1]) in (2, 6), "who moved to the right was not on the right"


def test_who_comes_late_sees_what_is_seen() -> None:
    """Mended from a state that has nothing to do with the view: another time, another place."""
    game = make_game("stag-hunt", view=1)
    late: Any = game.reset(jax.random.key(1))
    late = late._replace(time=late.time + 7, last=late.last - 2)
    seen = jax.tree.map(lambda x: x[0], game.observe(late))
    hidden: Any = game.hidden
    other = game.reset(jax.random.key(2))
    imagined = hidden.begin(jax.random.key(3), jax.tree.map(lambda x: x[0], game.observe(other)))
    found = hidden.mend(jax.random.key(4), imagined, seen).state
    assert int(found.time) == 7
    mine = jax.tree.map(lambda x: x[0], game.observe(found))
    assert all(bool((x == y).all()) for x, y in zip(mine, seen, strict=True) if x is not None)


def test_games_that_cannot_be_imagined_do_not_say_how() -> None:
    class Other(StagHunt):
        def observe(self, state: Any) -> Observation:
            seen = super().observe(state)
            return seen._replace(planes=seen.planes * 0)

    assert make_game("stag-hunt", view=1).hidden is not None
    assert make_game("stag-hunt", view=1, height=6, width=6, walls=2).hidden is None
    other: Any = Other
    assert other(StagHuntConfig()).hidden is None
    assert make_game("foraging").hidden is None
