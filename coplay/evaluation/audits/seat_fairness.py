"""Are the seats of a game worth the same? The same player in every seat, many episodes.

In a game with sides the seats of each side are compared with each other.

Seats of one episode share its randomness, so the test is about each seat's difference from the
episode's mean over seats,

    d_s = mean over episodes of (r_s - mean_s r_s),    z_s = d_s / stderr(d_s),

two-sided against the normal distribution, corrected by Bonferroni for all seats of all players
tested. How many episodes are played follows from the spread alone, never from d, so looking does
not bend the test: enough that an advantage of the given size (one seat's reward that share above
the others') is missed with a probability of at most MISS.
"""

from collections.abc import Callable, Iterator
from functools import partial
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from coplay.core.game import Game
from coplay.core.group import group_players
from coplay.core.progress import Told, untold
from coplay.evaluation.audits.checks import Check
from coplay.matches.match import play_match
from coplay.training.players import make_player

FALSE_ALARM = 1e-5
"""Probability that a fair game fails any of the comparisons: one audit in a hundred thousand."""
MISS = 1e-3
"""Probability that an advantage of just the stated size is missed."""
PORTION = 1 << 16
"""Episodes played at a time."""


class SeatComparison(NamedTuple):
    """What the seats of a game got. mean, low, high: [seat] reward per episode with a 95 % interval
    of its difference from the team; advantage: [seat] d_s relative to the mean absolute reward;
    z: [seat]; episodes; detectable: the smallest advantage that would have been found."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    advantage: np.ndarray
    z: np.ndarray
    episodes: int
    detectable: float


class RewardSums:
    """Running sums over episodes of what the test needs; memory does not grow with episodes."""

    def __init__(self, seats: int):
        self.count = 0
        self.reward, self.size = np.zeros(seats), 0.0
        self.apart, self.square = np.zeros(seats), np.zeros(seats)

    def add(self, reward: np.ndarray) -> None:
        """reward: [episode, seat]."""
        reward = reward.astype(np.float64)
        apart = reward - reward.mean(axis=1, keepdims=True)
        self.count += len(reward)
        self.reward += reward.sum(0)
        self.size += np.abs(reward).mean(axis=1).sum()
        self.apart += apart.sum(0)
        self.square += np.square(apart).sum(0)

    def stderr(self) -> np.ndarray:
        """[seat] of the mean difference from the team."""
        mean = self.apart / self.count
        variance = np.maximum(self.square / self.count - mean**2, 0)
        return np.sqrt(variance / (self.count - 1))

    def needed(self, advantage: float, comparisons: int) -> float:
        """Episodes after which an advantage of that size is not missed."""
        seats = len(self.reward)
        # One seat above all others by the share a is above the mean by a (1 - 1 / seats).
        effect = advantage * (1 - 1 / seats) * self.size / self.count
        if effect == 0:
            return 0
        wanted = effect / (threshold(comparisons) + NormalDist().inv_cdf(1 - MISS))
        return self.count * float((self.stderr().max() / wanted) ** 2)

    def result(self, comparisons: int) -> SeatComparison:
        mean, apart, stderr = self.reward / self.count, self.apart / self.count, self.stderr()
        size = max(self.size / self.count, 1e-30)
        exact = np.where(np.abs(apart) <= 1e-9 * size, 0.0, np.inf)
        z = np.where(stderr > 0, apart / np.maximum(stderr, 1e-30), exact)
        power = threshold(comparisons) + NormalDist().inv_cdf(1 - MISS)
        seats = len(mean)
        return SeatComparison(
            mean=mean,
            low=mean - 1.96 * stderr,
            high=mean + 1.96 * stderr,
            advantage=apart / size * seats / (seats - 1),
            z=z,
            episodes=self.count,
            detectable=float(power * stderr.max() / size * seats / (seats - 1)),
        )


def threshold(comparisons: int) -> float:
    """The |z| from which a difference counts, corrected for the number of comparisons."""
    return NormalDist().inv_cdf(1 - FALSE_ALARM / comparisons / 2)


def compare_seats(
    draw: Callable[[int], np.ndarray],
    seats: int,
    advantage: float,
    most: int,
    comparisons: int,
    told: Callable[[float, float], None] = lambda done, total: None,
) -> SeatComparison:
    """Draw portions of episodes until the advantage cannot be missed, or `most` are played.

    draw(portion) gives rewards [episode, seat] of its portion's number. told(done, total): how many
    episodes are played, of how many as far as is known.
    """
    sums = RewardSums(seats)
    portion = 0
    while sums.count < most and (not portion or sums.count < sums.needed(advantage, comparisons)):
        sums.add(draw(portion)[: most - sums.count])
        portion += 1
        total = max(min(sums.needed(advantage, comparisons), most), sums.count)
        told(sums.count, total)
    return sums.result(comparisons)


def fairness_checks(
    game: Game,
    advantage: float,
    most: int,
    seed: int,
    say: Callable[[str], None],
    told: Told = untold,
) -> Iterator[Check]:
    """One check per side and player of the game that does not learn, the same in every seat."""
    entries = ["random", *game.scripted]
    sides = [side for side in game.sides if len(side) > 1]
    comparisons = len(entries) * sum(map(len, sides))
    for number, entry in enumerate(entries if sides else []):
        player = make_player(entry, game)
        groups = group_players([player] * game.seats)
        size = min(PORTION, most)

        def draw(portion: int, groups: Any = groups, size: int = size, number: int = number) -> Any:
            # Seeds of different players and portions are far apart.
            start = (seed * 7919 + number) * 100_003 + portion
            return play_match(game, groups, size, start % 2**31, copies=min(size, 4096)).reward

        say(f"{game.seats} x {entry}")
        for side in sides:

            def of_side(portion: int, draw: Any = draw, side: Any = side) -> np.ndarray:
                return draw(portion)[:, side]

            count = partial(told, f"{game.seats} x {entry}, episodes")
            result = compare_seats(of_side, len(side), advantage, most, comparisons, count)
            yield _check(game, side, entry, result, comparisons, advantage)


def _check(
    game: Game,
    side: tuple[int, ...],
    entry: str,
    seats: SeatComparison,
    comparisons: int,
    advantage: float,
) -> Check:
    limit = threshold(comparisons)
    worst = int(np.argmax(np.abs(seats.z)))
    passed = bool(np.abs(seats.z[worst]) <= limit)
    means = ", ".join(f"{mean:.4g}" for mean in seats.mean)
    detail = (
        f"reward per episode {means}; seat {side[worst]} is furthest from the others, by "
        f"{seats.advantage[worst]:+.2%} (z = {seats.z[worst]:.1f}, counts from {limit:.1f} on; "
        f"{seats.episodes:,} episodes)"
    )
    if not passed:
        detail += (
            ". Rules that treat seats alike give this if initial states do not: are positions, "
            "roles or strengths drawn for each seat alike?"
        )
    elif seats.detectable > 1.001 * advantage:
        detail += f"; only advantages from {seats.detectable:.1%} on would have been found"
    whose = "the seats" if len(side) == game.seats else f"seats {', '.join(map(str, side))}"
    return Check(
        f"{game.seats} x {entry}: {whose} are worth the same",
        "game",
        passed,
        detail,
        exact=False,
        figures={
            "player": entry,
            "mean": seats.mean.tolist(),
            "low": seats.low.tolist(),
            "high": seats.high.tolist(),
            "advantage": seats.advantage.tolist(),
            "episodes": seats.episodes,
            "detectable": seats.detectable,
        },
    )
