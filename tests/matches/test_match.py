"""Matches: the right number of whole episodes, fair to long and short ones, and known figures."""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.algorithms.scripted import Switcher
from coplay.core.game import Game, Observation, Outcome
from coplay.core.group import group_players
from coplay.core.player import Memory, Player, View
from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from coplay.matches import match
from coplay.matches.match import Match, play_match, record_episode
from coplay.training.players import make_player

# --- a game whose episodes are known -------------------------------------------------------------

LONGEST = 7


class CountdownState(NamedTuple):
    left: jax.Array  # [] steps to go
    alive: jax.Array  # [seat]


class Countdown(Game):
    """Lasts 1 to 7 steps, each as probable. A step brings 1 and the number of the action. Seat 1
    leaves one step early (if it can), seat 0 is cut off at the end."""

    name = "countdown"
    action_names = ("nought", "one", "two")

    @property
    def seats(self) -> int:
        return 2

    def reset(self, key: jax.Array) -> CountdownState:
        return CountdownState(jax.random.randint(key, (), 1, LONGEST + 1), jnp.ones(2, bool))

    def step(self, key: jax.Array, state: CountdownState, actions: jax.Array) -> Any:
        left = state.left - 1
        leaves = state.alive & (jnp.arange(2) == 1) & (left <= 1)
        reward = jnp.where(state.alive, 1.0 + actions, 0.0)
        alive = state.alive & ~leaves
        return CountdownState(left, alive), Outcome(reward, leaves, (left == 0) & jnp.any(alive))

    def observe(self, state: CountdownState) -> Observation:
        return Observation(jnp.zeros((2, 0, 0, 0)), jnp.zeros((2, 1)), jnp.ones((2, 3), bool))

    def alive(self, state: CountdownState) -> jax.Array:
        return state.alive

    def permute_seats(self, state: CountdownState, order: jax.Array) -> CountdownState:
        return state._replace(alive=state.alive[order])

    def scores(self, state: CountdownState) -> dict[str, jax.Array]:
        return {"left": state.left.astype(jnp.float32)}


class Always(Player):
    """Takes one action."""

    action: jax.Array

    def act(self, game: Game, key: jax.Array, view: View, memory: Memory) -> tuple[jax.Array, Any]:
        chosen = jnp.arange(3) == self.action
        return jnp.broadcast_to(jnp.where(chosen, 0.0, -1e9), (len(view.time), 3)), memory


class Counter(Player):
    """Remembers how many steps it has acted in all, and takes action 0, 1, 2, 0, … by that."""

    def start(self, copies: int) -> Memory:
        return jnp.zeros(copies, jnp.int32)

    def act(self, game: Game, key: jax.Array, view: View, memory: Memory) -> tuple[jax.Array, Any]:
        chosen = jnp.arange(3) == (memory % 3)[:, None]
        return jnp.where(chosen, 0.0, -1e9), memory + 1


COUNTDOWN = Countdown()
NOUGHTS = group_players([Always(jnp.int32(0))] * 2)


def assert_whole_episodes(match: Match, episodes: int) -> None:
    assert match.reward.shape == match.steps.shape == (episodes, 2)
    for reward, steps in zip(match.reward, match.steps, strict=True):
        assert reward.tolist() == steps.tolist()
        assert 1 <= steps[0] <= LONGEST
        assert steps[1] == max(1, steps[0] - 1)


@pytest.mark.parametrize(("episodes", "copies"), [(1, None), (10, 4), (3, 8)])
def test_exactly_so_many_whole_episodes(episodes: int, copies: int | None) -> None:
    assert_whole_episodes(play_match(COUNTDOWN, NOUGHTS, episodes, 0, copies), episodes)


def test_more_episodes_than_copies_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match, "MOST_COPIES", 4)
    assert_whole_episodes(play_match(COUNTDOWN, NOUGHTS, 10, 0), 10)


def test_long_and_short_episodes_count_alike() -> None:
    """Episodes that are ready first in a running rollout would be the short ones."""
    for episodes, copies in ((7000, 1000), (6999, 1000)):
        played = play_match(COUNTDOWN, NOUGHTS, episodes, 3, copies)
        assert_whole_episodes(played, episodes)
        lengths = played.steps[:, 0]
        counts = np.bincount(lengths, minlength=LONGEST + 1)[1:]
        assert (np.abs(counts - episodes / LONGEST) < 5 * np.sqrt(episodes / LONGEST)).all()
        for share in (lengths[:1000], lengths[-999:]):  # the first and the last round
            assert abs(share.mean() - 4.0) < 5 * 2.0 / np.sqrt(999)


@pytest.mark.parametrize(("rounds", "copies"), [(9, 1), (4, 5)])
def test_every_copy_plays_its_episodes_one_after_the_other(rounds: int, copies: int) -> None:
    """By what a switcher does in each, and by a memory that is kept: it counts the steps of its own
    episodes alone, not those in which the copy waits for longer ones."""
    switcher = Switcher(Always(jnp.int32(0)), Always(jnp.int32(2)), "episode", 2)
    groups = group_players([Counter(), switcher])
    played = play_match(COUNTDOWN, groups, rounds * copies, 1, copies)
    reward, steps = (x.reshape(rounds, copies, 2) for x in (played.reward, played.steps))
    for copy in range(copies):
        acted = 0
        for number in range(rounds):
            mine, other = steps[number, copy]
            counted = sum(1 + (acted + step) % 3 for step in range(mine))
            switched = other * (3 if number % 4 >= 2 else 1)
            assert reward[number, copy].tolist() == [counted, switched]
            acted += mine
    assert len(set(steps[:, :, 0].reshape(-1).tolist())) > 3, "episodes of different lengths"
    if copies > 1:  # what is too much is left out at the end, however it went
        fewer = play_match(COUNTDOWN, groups, rounds * copies - 2, 1, copies)
        assert (fewer.reward == played.reward[:-2]).all() and len(fewer.reward) == 18


def test_the_same_seed_plays_the_same_match() -> None:
    one, again, other = (play_match(COUNTDOWN, NOUGHTS, 10, seed, 4) for seed in (7, 7, 8))
    assert (one.reward == again.reward).all() and (one.steps == again.steps).all()
    many = play_match(COUNTDOWN, NOUGHTS, 7000, 4, 1000)
    assert not np.array_equal(one.steps, other.steps)
    assert not np.array_equal(many.steps[:1000], many.steps[1000:2000]), "rounds differ"


def test_scores_are_those_of_the_last_state() -> None:
    """Short episodes are stepped on until the longest is over, and go below 0 there."""
    scores = play_match(COUNTDOWN, NOUGHTS, 100, 4, 50).scores
    assert scores["left"].shape == (100,) and not scores["left"].any()


def test_record() -> None:
    reward = np.array([[1.0, 2.0], [3.0, 5.0], [5.0, 2.0]], np.float32)
    steps = np.array([[1, 2], [1, 2], [4, 2]])
    record = Match(reward, steps).record("countdown", ["a", "b"])
    assert record["game"] == "countdown" and record["episodes"] == 3 and "scores" not in record
    won = Match(reward, steps, {"won": np.array([1.0, 0.0, 0.5])}).record("countdown", ["a", "b"])
    assert won["scores"] == {"won": pytest.approx(0.5)}
    assert record["team_mean"] == pytest.approx(3.0)
    first, second = record["seats"]
    assert (first["player"], second["player"]) == ("a", "b")
    assert first["reward"] == pytest.approx(3.0) and second["reward"] == pytest.approx(3.0)
    assert first["stderr"] == pytest.approx(2.0 / np.sqrt(3))
    assert first["steps"] == pytest.approx(2.0) and second["steps"] == pytest.approx(2.0)


def test_a_recorded_episode_is_whole() -> None:
    episode = record_episode(COUNTDOWN, NOUGHTS, seed=1)
    length = len(episode.actions)
    assert len(episode.states) == length + 1 and episode.rewards.shape == (length, 2)
    assert [int(s.left) for s in episode.states] == list(range(length, -1, -1))
    assert episode.rewards[:, 0].tolist() == [1.0] * length
    assert (episode.actions[:, 0] == 0).all()


# --- Stag Hunt -----------------------------------------------------------------------------------

COPIES, ROUNDS = 1024, 8
# Switchers put two seatings into one program: one in even rounds, one in odd ones.
NS_NH, RANDOM_NS = "switcher:ns:nh:episode=1", "switcher:random:ns:episode=1"


@cache
def stag_hunt(size: int) -> StagHunt:
    return StagHunt(StagHuntConfig(height=size, width=size))


@cache
def played(size: int, seating: str) -> Match:
    """All rounds; the arrays are [round, copy, seat] here."""
    game = stag_hunt(size)
    players = [make_player(entry, game, seat) for seat, entry in enumerate(seating.split(","))]
    result = play_match(game, group_players(players), ROUNDS * COPIES, seed=1)
    return Match(*(x.reshape(ROUNDS, COPIES, 4) for x in (result.reward, result.steps)))


def rounds_of(size: int, seating: str, first: int = 0, every: int = 1) -> Match:
    """[episode, seat] of some of the rounds."""
    every_round = played(size, seating)
    parts = (every_round.reward, every_round.steps)
    return Match(*(x[first::every].reshape(-1, 4) for x in parts))


FOUR, TWO = ",".join([NS_NH] * 4), f"ns,{NS_NH},nh,nh"
LARGE = ",".join([RANDOM_NS] * 4)
# Who plays; in which rounds; the known figures: rewards of the seats, and steps in the game.
FIGURES: dict[str, tuple[tuple, list[float | None], float | None]] = {
    "4x4 random,random,random,random": ((4, "random,random,random,random"), [0.65] * 4, 22.0),
    "4x4 ns,ns,ns,ns": ((4, FOUR, 0, 2), [2.85] * 4, 4.2),
    "4x4 nh,nh,nh,nh": ((4, FOUR, 1, 2), [0.87] * 4, 2.9),
    "4x4 ns,ns,nh,nh": ((4, TWO, 0, 2), [5.00, 5.00, 0.95, 0.95], None),
    "4x4 ns,nh,nh,nh": ((4, TWO, 1, 2), [0.00, None, None, None], None),
    "8x8 random,random,random,random": ((8, LARGE, 0, 2), [0.24] * 4, None),
    "8x8 ns,ns,ns,ns": ((8, LARGE, 1, 2), [2.91] * 4, None),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == "4x4 ns,ns,ns,ns" else pytest.mark.slow)
        for name in FIGURES
    ],
)
@pytest.mark.slow
def test_known_figures(name: str) -> None:
    where, means, length = FIGURES[name]
    result = rounds_of(*where)
    episodes = len(result.reward)
    assert episodes >= 4000
    kinds = name.split()[1].split(",")
    for kind in dict.fromkeys(kinds):
        seats = [seat for seat in range(4) if kinds[seat] == kind]
        if (mean := means[seats[0]]) is not None:
            assert result.reward[:, seats].mean() == pytest.approx(mean, abs=0.02)
        # Seats of one kind fare alike: differences within an episode, against their own error.
        for seat in seats[1:]:
            for values in (result.reward, result.steps):
                apart = (values[:, seat] - values[:, seats[0]]).astype(np.float64)
                assert abs(apart.mean()) <= 4.5 * apart.std() / np.sqrt(episodes)
    if length is not None:
        assert result.steps.mean() == pytest.approx(length, abs=0.25)
    assert result.steps.min() >= 1 and result.steps.max() <= 35


@pytest.mark.slow
def test_a_lone_stag_hunter_gets_nothing_while_the_others_hunt_hares() -> None:
    result = rounds_of(4, TWO, 1, 2)
    assert (result.reward[:, 0] == 0).all() and (result.steps[:, 0] == 35).all()
    assert 0.85 < result.reward[:, 1:].mean() <= 1.0


def test_a_match_agrees_with_episodes_played_one_by_one() -> None:
    """Four random players, every episode on its own in a plain loop."""
    game = stag_hunt(4)
    deal = jax.jit(lambda key: (lambda state: (state, game.legal(state)))(game.reset(key)))

    @jax.jit
    def step(state: Any, actions: Any) -> Any:
        after, outcome = game.step(jax.random.key(0), state, actions)
        return after, game.legal(after), outcome.reward

    rng = np.random.default_rng(0)
    totals, lengths = [], []
    for number in range(150):
        state, legal = deal(jax.random.key(number))
        gained, stayed = np.zeros(4), np.zeros(4)
        for _ in range(game.config.horizon):
            alive = np.asarray(state.alive)
            if not alive.any():
                break
            stayed += alive
            scores = rng.random((4, 7)) * np.asarray(legal)
            state, legal, reward = step(state, scores.argmax(1))
            gained += np.asarray(reward)
        totals.append(gained.mean())
        lengths.append(stayed.mean())
    result = rounds_of(4, "random,random,random,random")
    for mine, match_ in ((totals, result.reward), (lengths, result.steps)):
        error = np.std(mine) / np.sqrt(len(mine))
        assert abs(np.mean(mine) - match_.mean()) < 4 * error
