"""Adaptation: one game copy per unit, memories and learners of its own, every seat in turn."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.algorithms.ppo.config import PPOConfig
from coplay.algorithms.ppo.learner import PPO
from coplay.algorithms.scripted import Random
from coplay.core.errors import UserError
from coplay.core.game import Game, Observation, Outcome
from coplay.core.group import group_players
from coplay.core.player import Insight, Memory, Player, View
from coplay.evaluation.adaptation.places import every_seat
from coplay.evaluation.adaptation.protocol import (
    AdaptConfig,
    Meeting,
    _learn,
    make_meeting,
    make_program,
    play_units,
)
from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.matches.partitioned_player import partitioned
from coplay.matches.rollout import new_table, rollout
from coplay.nn.config import NetworkConfig
from coplay.nn.networks import view_shape

SEATS = 3


class WhoState(NamedTuple):
    who: jax.Array  # [seat] the number of the seat as it was dealt
    left: jax.Array  # [] steps to go


class Who(Game):
    """Lasts 1 to 3 steps. Every step brings the number of the seat, and half of the action."""

    name = "who"
    action_names = ("nought", "one", "two")

    @property
    def seats(self) -> int:
        return SEATS

    def reset(self, key: jax.Array) -> WhoState:
        return WhoState(jnp.arange(SEATS), jax.random.randint(key, (), 1, 4))

    def step(self, key: jax.Array, state: WhoState, actions: jax.Array) -> Any:
        left = state.left - 1
        reward = state.who + 0.5 * actions
        return WhoState(state.who, left), Outcome(reward, jnp.zeros(SEATS, bool), left == 0)

    def observe(self, state: WhoState) -> Observation:
        features = jnp.broadcast_to(1.0 * state.left, (SEATS, 1))
        return Observation(jnp.zeros((SEATS, 0, 0, 0)), features, jnp.ones((SEATS, 3), bool))

    def alive(self, state: WhoState) -> jax.Array:
        return jnp.ones(SEATS, bool)

    def permute_seats(self, state: WhoState, order: jax.Array) -> WhoState:
        return state._replace(who=state.who[order])


class Patient(Player):
    """Takes `action` once it has seen four steps, of whatever episodes; before, nought."""

    action: jax.Array

    def start(self, copies: int) -> Memory:
        return jnp.zeros(copies, jnp.int32)

    def act(self, game: Game, key: jax.Array, view: View, memory: Memory) -> Any:
        chosen = jnp.where(memory >= 4, self.action, 0)
        return 100.0 * (chosen[:, None] == jnp.arange(3)), memory

    def notice(self, game: Any, view: Any, after: Any, over: Any, memory: Memory) -> Memory:
        return memory + 1


def test_every_seat_is_taken_and_memory_is_kept_across_episodes_and_fresh_in_each_unit() -> None:
    config = AdaptConfig(steps=11, last=5, seeds=2, rollout=4)
    # In seat 0 it takes action 2, in the others action 1.
    focal = partitioned([Patient(jnp.int32(action)) for action in (2, 1, 1)])
    meeting = Meeting((), (), (), group_players([focal, Random(), Random()]), every_seat(Who()))
    played, _ = play_units(Who(), meeting, config)
    assert played.reward.shape == played.over.shape == (6, 11)
    assert played.belief is None and played.predicted is None
    for unit, rewards in enumerate(played.reward):
        seat = unit // 2
        action = 2 if seat == 0 else 1
        expected = [seat + (0.5 * action if step >= 4 else 0.0) for step in range(11)]
        np.testing.assert_allclose(rewards, expected)
    assert (np.sum(played.over[:, :4], axis=1) > 0).all(), "no episode ended before it acted"
    assert len({tuple(row) for row in played.over}) > 1, "all units play the same games"


# --- learning ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_unit_learns_from_what_was_played_in_it_alone() -> None:
    game, units = Who(), 3
    settings = PPOConfig(network=NetworkConfig(hidden=(4,)), epochs=1, minibatches=1)
    learner = PPO(
        config=settings, shape=view_shape(game), game_seats=SEATS, seats=(0,), active=(0,)
    )

    @jax.jit
    def learned(extra: jax.Array) -> tuple[Any, Any]:
        start = learner.init(jax.random.key(0), jnp.arange(SEATS))
        states = jax.tree.map(lambda x: jnp.broadcast_to(x, (units, *x.shape)), start)
        groups = group_players([learner.player(start, 0), Random(), Random()])
        table = new_table(game, groups, jax.random.key(1), units)
        _, trajectory = rollout(game, groups, table, jax.random.key(2), 6, jnp.arange(SEATS))
        trajectory = trajectory._replace(reward=trajectory.reward + extra[..., None])
        keys = jax.random.split(jax.random.key(3), units)
        return states, _learn((learner,), game, (states,), trajectory, keys, jnp.float32(0))[0]

    before, plain = learned(jnp.zeros((6, units)))
    _, other = learned(jnp.zeros((6, units)).at[2, 1].set(-50.0))
    for mine, theirs in zip(jax.tree.leaves(plain), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(mine[::2], theirs[::2])
    weights = [state.critic.layers[0].weight for state in (before, plain, other)]
    assert all(np.abs(weights[1][u] - weights[0][u]).max() > 1e-5 for u in range(units))
    assert np.abs(weights[1][1] - weights[2][1]).max() > 1e-5


@pytest.mark.slow
def test_learning_co_players_begin_anew_in_each_unit() -> None:
    game = Who()
    config = AdaptConfig(steps=8, last=4, seeds=2, rollout=4)
    meeting = make_meeting("random", ["ppo:epochs=1", "random"], game, config)
    assert meeting.learners[0].active == (1,) and meeting.starts == (None,)
    _, (state,) = play_units(game, meeting, config)
    weights = np.asarray(state.actor.layers[0].weight)
    assert weights.shape[0] == 6
    assert len({row.tobytes() for row in weights}) == 6


@pytest.mark.parametrize("parameters", ["separate", "shared", "shared+id"])
def test_a_learner_alone_acts_like_the_player_of_its_seat(parameters: str) -> None:
    game = Who()
    seats = tuple(range(SEATS))
    learner = PPO(
        config=PPOConfig(parameters=parameters, network=NetworkConfig(hidden=(4,))),
        shape=view_shape(game),
        game_seats=SEATS,
        seats=seats,
        active=seats,
    )
    state = jax.jit(lambda key: learner.init(key, jnp.arange(SEATS)))(jax.random.key(0))
    alone, part = learner.alone(state, 2, at=0)
    mine, theirs = alone.group(part).player_of_one_seat(), learner.player(state, 2)
    for one, other in zip(jax.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_array_equal(one, other)
    assert alone.group(part).seats == (0,)


# --- figures and beliefs -------------------------------------------------------------------------


class Believer(Player):
    """Believes of everyone, always: stag 0.25, hare 0.75; and foresees that hares are hunted."""

    def act(self, game: Game, key: jax.Array, view: View, memory: Memory) -> Any:
        return jnp.zeros(view.observation.legal.shape), memory

    def insight(self, game: Game, view: View, memory: Memory) -> Insight:
        copies = view.alive.shape[0]
        goal = jnp.broadcast_to(jnp.array([0.25, 0.75]), (copies, game.seats - 1, 2))
        action = jnp.broadcast_to(jnp.arange(7.0), (copies, game.seats - 1, 7))
        return Insight(goal, action)


@pytest.mark.slow
def test_beliefs_are_compared_with_goals_that_became_known_later() -> None:
    game = StagHunt(StagHuntConfig(horizon=20))
    config = AdaptConfig(steps=90, last=40, seeds=2, rollout=30)
    nh = make_meeting("nh", ["nh"] * 3, game, config).others[0].player
    meeting = Meeting((), (), (), group_players([Believer(), nh, nh, nh]), every_seat(game))
    played, _ = play_units(game, meeting, config)
    assert played.belief is not None and played.believed is not None
    assert played.belief is not None and played.believed is not None
    assert played.predicted is not None and played.acted is not None
    some = played.believed > 0
    np.testing.assert_allclose(played.belief[some] / played.believed[some], 0.75, rtol=1e-5)
    # The first step of an episode: nobody has left, and every hare hunter catches one later,
    # unless the others leave none.
    first = np.concatenate([np.ones((8, 1), bool), played.over[:, :-1]], axis=1)
    assert (played.acted[first] == 3).all()
    whole = np.cumsum(played.over[:, ::-1], axis=1)[:, ::-1] > 0  # of an episode that ended
    assert (played.believed[first & whole] >= 2).mean() > 0.9
    # A nearest-hare player hunts once, in the step in which it leaves.
    episodes = played.over.sum(axis=1)
    assert (played.predicted.sum(axis=1) <= 3 * (episodes + 1)).all()
    assert (played.predicted.sum(axis=1) >= 2 * episodes).all()


@pytest.mark.slow
def test_a_scripted_player_gets_the_known_figure() -> None:
    """Four stag hunters on 4x4 get 2.85 each."""
    game = StagHunt(StagHuntConfig())
    config = AdaptConfig(steps=320, last=100, seeds=10)
    played, _ = play_units(game, make_meeting("ns", ["ns"] * 3, game, config), config)
    rewards = played.reward.reshape(4, -1).sum(1) / played.over.reshape(4, -1).sum(1)
    assert abs(rewards.mean() - 2.85) < 0.2
    assert (np.abs(rewards - 2.85) < 0.4).all()


def test_one_program_serves_all_units() -> None:
    """The traced program does not grow with repetitions."""
    game = Who()
    sizes = []
    for seeds in (1, 7):
        config = AdaptConfig(steps=4, last=2, seeds=seeds, rollout=2)
        meeting = make_meeting("random", ["random", "random"], game, config)
        program = make_program(meeting, config)
        traced = jax.make_jaxpr(program)(game, meeting.others, meeting.starts, jax.random.key(0))
        sizes.append(len(traced.jaxpr.eqns))
    assert sizes[0] == sizes[1]


# --- sides ---------------------------------------------------------------------------------------


def played_rewards(focal: str, against: list[str], game: Game, side: str) -> np.ndarray:
    config = AdaptConfig(steps=90, last=40, seeds=2, rollout=30)
    played, _ = play_units(game, make_meeting(focal, against, game, config, side), config)
    return np.asarray(played.reward)


def test_a_focal_team_gets_what_the_other_side_loses() -> None:
    """The same players and keys play the same games, whichever side is looked at."""
    game = coplay.make_game("predator-prey")
    predators = played_rewards("chaser", ["evader"], game, "predators")
    prey = played_rewards("evader", ["chaser"] * 3, game, "prey")
    assert predators.shape == prey.shape == (2, 90)
    assert predators.any(), "nobody was caught"
    np.testing.assert_allclose(3 * predators, -prey, rtol=1e-5)


@pytest.mark.slow
def test_one_of_a_side_takes_each_of_its_seats_among_its_companions() -> None:
    game = coplay.make_game("predator-prey")
    rewards = played_rewards("chaser", ["chaser", "chaser", "evader"], game, "predators")
    assert rewards.shape == (6, 90), "it takes another number of seats than its side has"
    assert (rewards >= 0).all() and (rewards.reshape(3, -1).sum(1) > 0).all()
    # Who is on the other side is there in every turn: alone among stayers nobody is caught.
    places = make_meeting("chaser", ["random"] * 3, game, AdaptConfig(), "predators").places
    assert places.orders == ((0, 1, 2, 3), (1, 2, 0, 3), (2, 0, 1, 3))


@pytest.mark.slow
def test_a_team_learns_in_each_of_its_seats(tmp_path: Path) -> None:
    """A run's players go on learning, every seat of the team by itself."""
    fields = {"copies": 8, "network.hidden": (4,), "epochs": 1, "episodes": 2}
    coplay.train("ppo", "predator-prey", steps=256, out=tmp_path / "run", quiet=True, **fields)
    game, config = coplay.make_game("predator-prey"), AdaptConfig(learn=True, steps=64, last=64)
    meeting = make_meeting(str(tmp_path / "run"), ["evader"], game, config, "predators")
    assert [learner.active for learner in meeting.learners] == [(0,), (1,), (2,)]
    assert all(start is not None for start in meeting.starts)


@pytest.mark.slow
def test_a_team_stays_in_its_seats_where_seats_cannot_be_renumbered() -> None:
    pytest.importorskip("jaxmarl")
    game = coplay.make_game("jaxmarl:MPE_simple_tag_v3")
    assert game.sides == ((0, 1, 2), (3,)) and game.side_names == ("adversaries", "agents")
    config = AdaptConfig(steps=60, last=30, seeds=2, rollout=30)
    meeting = make_meeting("random", ["random"] * 3, game, config, "agents")
    assert meeting.places.focal == (3,) and not meeting.places.renumbers
    rewards = play_units(game, meeting, config)[0].reward
    assert rewards.shape == (2, 60) and (rewards < 0).any(), "what flees gets the wrong rewards"
    with pytest.raises(UserError, match="takes all seats of its side"):
        make_meeting("random", ["random"] * 3, game, config, "adversaries")


@pytest.mark.parametrize(
    "side, count, words",
    [
        ("", 1, "predators or prey"),
        ("wolves", 1, "side of predator-prey"),
        ("predators", 2, "1 seats on the other side of predators"),
        ("prey", 1, "3 seats on the other side of prey"),
    ],
)
def test_who_names_no_side_or_the_wrong_number_is_told(side: str, count: int, words: str) -> None:
    game = coplay.make_game("predator-prey")
    with pytest.raises(UserError, match=words):
        make_meeting("random", ["random"] * count, game, AdaptConfig(), side)
    with pytest.raises(UserError, match="has no sides"):
        make_meeting("random", ["random"] * 3, StagHunt(), AdaptConfig(), "prey")
