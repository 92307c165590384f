"""Films of players that think: what they believe and expect stands below the boards."""

import numpy as np
import pytest

import coplay
from coplay.games.drawing import seat_colour
from coplay.reports import thoughts
from coplay.reports.replay import Replay
from tests.reports.thinker import Thinker

GAME = coplay.make_game("stag-hunt", height=3, width=3, players=3, hares=2, horizon=8)


@pytest.fixture(scope="module")
def replay() -> Replay:
    return coplay.replay(GAME, ["ns", Thinker(), "nh"], episodes=1, seed=5)


def pixels(picture: np.ndarray, colour) -> int:
    return int(np.all(picture == np.array(colour), axis=-1).sum())


@pytest.mark.slow
def test_the_first_seat_that_thinks_is_shown(replay: Replay) -> None:
    assert thoughts.thinking_seat(replay.episodes[0]) == 1
    plain = coplay.replay(GAME, ["ns", "ns", "nh"], episodes=1, seed=5)
    assert thoughts.thinking_seat(plain.episodes[0]) is None
    film, bare = replay.film(), plain.film()
    assert len({frame.shape for frame in film}) == 1
    assert film[0].shape[0] > bare[0].shape[0]
    assert len(film) == len(replay.episodes[0].steps) + 1


@pytest.mark.slow
def test_bars_are_as_long_as_the_belief(replay: Replay) -> None:
    """The part of the first candidate in all of the bars, in every step in which both co-players
    are there: its share of the coloured pixels is its probability."""
    tints = [thoughts._tint(number) for number in range(3)]
    about, (episode,) = replay.about, replay.episodes
    shares, beliefs = [], []
    for step in episode.steps:
        if all(seat["alive"] for seat in step["seats"]):
            panel = thoughts._panel(about, step["seats"], 1, 640)
            rows = panel[: int(3 * thoughts.PITCH)]  # without the legend
            found = [pixels(rows, tint) for tint in tints]
            shares.append(found[0] / sum(found))
            beliefs.append(step["seats"][1]["belief"][0][0])
    assert len(shares) >= 2 and beliefs[-1] > beliefs[0]
    # Letters lie on the parts, hence the room for differences.
    np.testing.assert_allclose(shares, beliefs, atol=0.06)


@pytest.mark.slow
def test_what_was_done_has_the_colour_of_its_seat(replay: Replay) -> None:
    (episode,) = replay.episodes
    seats = episode.steps[0]["seats"]
    told = {"predicted": [[0.0] * GAME.actions for _ in range(2)]}
    told["predicted"][0][seats[2]["action"]] = 1.0
    thinks = [seats[0], seats[1] | told, seats[2]]
    panel = thoughts._panel(replay.about, thinks, 1, 640)
    without = thoughts._panel(
        replay.about, [seats[0], thinks[1], seats[2] | {"action": -1}], 1, 640
    )
    colour = tuple(int(seat_colour(2)[i : i + 2], 16) for i in (1, 3, 5))
    assert pixels(panel, colour) > pixels(without, colour) + 100
