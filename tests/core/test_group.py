"""Groups of players, who sees what, switchers, and how the program grows."""

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.algorithms.ppo.player import PPOPlayer
from coplay.algorithms.scripted import Random, Scripted, Switcher
from coplay.core.game import Game
from coplay.core.group import Group, decide, group_players
from coplay.core.player import Memory, Player, View
from coplay.core.trajectory import seat_keys
from coplay.games.stag_hunt import STAY, StagHunt, StagHuntConfig
from coplay.matches.rollout import Table, new_table, rollout, seat_views
from coplay.nn.categorical import NEVER
from coplay.nn.networks import Network, view_shape
from coplay.training.players import make_player

COPIES, SEATS, ACTIONS = 3, 8, 7
GAME = StagHunt(StagHuntConfig(height=4, width=4, players=SEATS, stags=1, hares=2, horizon=6))
NS, NH = (Scripted(GAME.scripted[name]) for name in ("ns", "nh"))


class Noise(Player):
    """Uses all that a player may use: its key, all of its view, and a memory."""

    weight: jax.Array

    def start(self, copies: int) -> Memory:
        return jnp.arange(copies, dtype=jnp.float32)

    def act(self, game: Game, key: jax.Array, view: View, memory: Memory) -> tuple[jax.Array, Any]:
        clock = view.time + 10 * view.episode + 100 * view.alive + memory
        seen = jnp.sum(view.observation.features, axis=-1) + view.state.cell[:, 0]
        own = jax.random.uniform(key, (len(clock), ACTIONS))
        return own + (self.weight * (clock + seen))[:, None], memory + view.time + self.weight


def network(seed: int) -> PPOPlayer:
    def make(key: jax.Array) -> Network:
        return Network(
            view_shape(GAME),
            ACTIONS,
            key=key,
            hidden=(4,),
            channels=(),
            activation="tanh",
            head_scale=1.0,
        )

    shapes = eqx.filter_eval_shape(make, jax.random.key(0))
    rng = np.random.default_rng(seed)
    return PPOPlayer(
        jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape), x.dtype), shapes),
        jnp.zeros(0),
    )


@cache
def mixed() -> tuple[Player, ...]:
    """Eight seats, players of one kind never side by side."""
    noise = Noise(jnp.float32(0.3))
    return (
        NS,
        network(1),
        noise,
        Switcher(Noise(jnp.float32(2.0)), Random(), "step", 2),
        network(2),
        NS,
        Noise(jnp.float32(-0.7)),
        PPOPlayer(network(1).actor, jnp.zeros(0), greedy=True),
    )


# --- groups --------------------------------------------------------------------------------------


def seats_of(players: list[Player]) -> list[tuple[int, ...]]:
    return [group.seats for group in group_players(players)]


def test_players_of_one_kind_form_one_group() -> None:
    assert seats_of([NS] * 4) == [(0, 1, 2, 3)]
    assert seats_of([Scripted(GAME.scripted["ns"]) for _ in range(4)]) == [(0, 1, 2, 3)]
    assert seats_of([NS, NH, NS, Random(), NH]) == [(0, 2), (1, 4), (3,)]
    assert seats_of([Random(), Random()]) == [(0, 1)]
    switchers: list[Player] = [
        Switcher(NS, NH, "step", 8),
        Switcher(NS, NH, "step", 8),
        Switcher(NS, NH, "step", 9),
        Switcher(NH, NS, "step", 8),
        Switcher(NS, NH, "episode", 8),
    ]
    assert seats_of(switchers) == [(0, 1), (2,), (3,), (4,)]
    assert seats_of(list(mixed())) == [(0, 5), (1, 4), (2, 6), (3,), (7,)]


def test_arrays_are_stacked_unless_they_are_the_very_same() -> None:
    one, two = network(1), network(2)
    (apart,) = group_players([one, two, one])
    assert not apart.shared
    weight = apart.player.actor.layers[0].weight  # type: ignore[attr-defined]
    assert weight.shape[0] == 3
    for seat, player in enumerate((one, two, one)):
        assert (weight[seat] == player.actor.layers[0].weight).all()
    (together,) = group_players([one, one])
    assert together.shared and together.player is one
    (scripted,) = group_players([NS, NS])
    assert scripted.shared


# --- deciding together ---------------------------------------------------------------------------


@cache
def table() -> Table:
    """In the middle of different episodes, some seats gone."""
    fresh = jax.jit(lambda key: new_table(GAME, (), key, COPIES))(jax.random.key(1))
    alive = jnp.arange(SEATS) != jnp.array([[1], [7], [4]])
    return fresh._replace(
        state=fresh.state._replace(alive=alive),
        time=jnp.array([0, 2, 5], jnp.int32),
        episode=jnp.array([3, 0, 1], jnp.int32),
    )


@jax.jit
def all_views(table: Table) -> View:
    return seat_views(GAME, table.state, jax.vmap(GAME.observe)(table.state), table)


def test_views_are_ego_views() -> None:
    views, state = jax.tree.map(np.asarray, (all_views(table()), table().state))
    observation = jax.tree.map(np.asarray, jax.jit(jax.vmap(GAME.observe))(table().state))
    for seat in range(SEATS):
        order = [(seat + other) % SEATS for other in range(SEATS)]
        for copy in range(COPIES):
            at = (seat, copy)
            assert views.state.cell[at].tolist() == state.cell[copy][order].tolist()
            assert views.state.alive[at].tolist() == state.alive[copy][order].tolist()
            assert views.state.last[at].tolist() == state.last[copy][order].tolist()
            assert views.state.prey[at].tolist() == state.prey[copy].tolist()
            assert views.alive[at] == state.alive[copy, seat]
            assert views.time[at] == [0, 2, 5][copy] and views.episode[at] == [3, 0, 1][copy]
            for mine, everybody in zip(views.observation, observation, strict=True):
                assert (mine[at] == everybody[copy, seat]).all()


@jax.jit
def together(
    groups: tuple[Group, ...], keys: jax.Array, views: View, memory: tuple[Memory, ...]
) -> tuple[jax.Array, tuple[Memory, ...]]:
    return decide(GAME, groups, keys, views, memory)


@jax.jit
def alone(player: Player, key: jax.Array, view: View, memory: Memory) -> tuple[jax.Array, Memory]:
    return player.act(GAME, key, view, memory)


@pytest.mark.slow
def test_a_mixed_seating_acts_like_every_seat_on_its_own() -> None:
    players, groups = mixed(), group_players(mixed())
    views = all_views(table())
    memory = tuple(group.start(COPIES) for group in groups)
    memories = [player.start(COPIES) for player in players]
    for step in range(2):  # the second time with memories that differ
        keys = seat_keys(jax.random.key(step), jnp.arange(SEATS))
        logits, memory = together(groups, keys, views, memory)
        expected = []
        for seat, player in enumerate(players):
            view = jax.tree.map(lambda x, seat=seat: np.asarray(x)[seat], views)
            out, memories[seat] = alone(player, keys[seat], view, memories[seat])
            expected.append(np.asarray(out))
        assert logits.shape == (SEATS, COPIES, ACTIONS)
        for seat in range(SEATS):
            np.testing.assert_allclose(logits[seat], expected[seat], rtol=1e-5, atol=1e-4)
        for group, kept in zip(groups, memory, strict=True):
            for index, seat in enumerate(group.seats):
                mine = jax.tree.leaves(jax.tree.map(lambda x, index=index: x[index], kept))
                for one, two in zip(mine, jax.tree.leaves(memories[seat]), strict=True):
                    np.testing.assert_allclose(one, two, rtol=1e-6)
    different = {tuple(np.round(x.reshape(-1), 4)) for x in expected}
    assert len(different) == SEATS, "no two seats act alike here"


# --- how the program grows -----------------------------------------------------------------------


def equations(jaxpr: Any) -> int:
    """How many equations, those of inner functions and loops included."""
    count = 0
    for equation in jaxpr.eqns:
        count += 1
        for value in equation.params.values():
            for part in value if isinstance(value, tuple | list) else [value]:
                inner = getattr(part, "jaxpr", part)
                if hasattr(inner, "eqns"):
                    count += equations(inner)
    return count


@cache
def size(seating: tuple[str, ...]) -> int:
    """Equations of a rollout of Stag Hunt, the dealing of new games left out."""
    game = StagHunt(StagHuntConfig(players=len(seating)))
    groups = group_players([make_player(entry, game) for entry in seating])
    start = jax.eval_shape(lambda key: new_table(game, groups, key, 4), jax.random.key(0))
    streams = jnp.arange(len(seating))
    whole = jax.make_jaxpr(lambda key, table: rollout(game, groups, table, key, 5, streams))(
        jax.random.key(0), start
    )
    dealing = jax.make_jaxpr(jax.vmap(game.reset))(jax.random.split(jax.random.key(0), 20))
    return equations(whole.jaxpr) - equations(dealing.jaxpr)


@pytest.mark.slow
def test_the_program_does_not_grow_with_the_seats() -> None:
    for few, many in [(("ns",) * 4, ("ns",) * 8), (("ns", "nh") * 2, ("nh", "ns") * 4)]:
        assert size(many) <= 1.02 * size(few)


@pytest.mark.slow
def test_the_program_grows_with_the_different_players() -> None:
    one = size(("ns",) * 4)
    two = [size(("ns", "ns", "ns", "nh")), size(("ns", "nh", "ns", "nh"))]
    three = [size(("ns", "nh", "random", "ns")), size(("random", "ns", "nh", "random"))]
    assert two[0] == two[1] and three[0] == three[1]
    assert one < two[0] < three[0]
    assert two[0] - one < one / 2, "a further player adds itself, not another game"


# --- switchers -----------------------------------------------------------------------------------


class Stay(Player):
    """Never moves."""

    def act(self, game: Game, key: jax.Array, view: View, memory: Memory) -> tuple[jax.Array, Any]:
        stay = jnp.arange(ACTIONS) == STAY
        return jnp.broadcast_to(jnp.where(stay, 0.0, NEVER), view.observation.legal.shape), memory


class Move(Player):
    """Does anything but stay."""

    def act(self, game: Game, key: jax.Array, view: View, memory: Memory) -> tuple[jax.Array, Any]:
        stay = jnp.arange(ACTIONS) == STAY
        return jnp.broadcast_to(jnp.where(stay, -200.0, 0.0), view.observation.legal.shape), memory


@pytest.mark.slow
def test_switchers_switch_exactly_when_they_should() -> None:
    game = StagHunt(StagHuntConfig(height=3, width=3, players=4, stags=1, hares=1, horizon=5))
    steps, copies = 40, 2
    rules = [("step", 3), ("episode", 2), ("step", 1), ("episode", 1)]
    groups = group_players([Switcher(Stay(), Move(), unit, n) for unit, n in rules])

    @jax.jit
    def play(key: jax.Array) -> Any:
        start = new_table(game, groups, key, copies)
        return rollout(game, groups, start, key, steps, jnp.arange(4))[1]

    trajectory = jax.tree.map(np.asarray, play(jax.random.key(0)))
    stays = trajectory.log_policy[..., STAY] > -1e-3
    assert (stays == (trajectory.action == STAY))[trajectory.alive].all()
    seen = set()
    for copy in range(copies):
        clock = episode = 0
        for time in range(steps):
            for seat, (unit, number) in enumerate(rules):
                if not trajectory.alive[time, copy, seat]:
                    continue
                count = clock if unit == "step" else episode % (2 * number)
                assert stays[time, copy, seat] == (count < number), (time, copy, seat)
                seen.add((seat, count))
            clock += 1
            if trajectory.over[time, copy]:
                clock, episode = 0, episode + 1
        assert episode >= 5
    assert {(0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 0), (2, 1), (3, 0), (3, 1)} <= seen


@pytest.mark.parametrize(("unit", "number"), [("step", 8), ("episode", 20)])
def test_a_switcher_by_name(unit: str, number: int) -> None:
    player = make_player(f"switcher:ns:random:{unit}={number}", GAME)
    assert isinstance(player, Switcher) and (player.unit, player.every) == (unit, number)
    assert player.first == NS and isinstance(player.second, Random)
