"""What environments of others get wrong is said with the agent's name."""

import numpy as np
import pytest
from host_envs import Unruly

from coplay.games.adapters.workers.checks import BadEnvironment
from coplay.games.adapters.workers.seated import SeatedEnv
from coplay.games.adapters.workers.seats import Views, read_seats


def play(wrong: str, strict: bool = False, episodes: int = 2) -> list[str]:
    """Play whole episodes in this process: the breaches."""
    env = Unruly(wrong)
    seats = read_seats(env, "unruly")
    seated = SeatedEnv(env, seats, strict)
    views = Views(
        np.zeros((3, *seats.planes), seats.plane_type),
        np.zeros((3, 4), np.float32),
        np.zeros((3, 3), bool),
        np.zeros(3, bool),
        np.zeros(0, np.float32),
    )
    reward, ended, cut = np.zeros(3, np.float32), np.zeros(3, bool), np.zeros(3, bool)
    for seed in range(episodes):
        seated.reset(seed, views)
        while not seated.step(np.zeros(3, int), views, reward, ended, cut):
            pass
    return [breach.text for breach in seated.checks.take()]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("reward nan", "agent 'b' the reward nan"),
        ("reward inf", "agent 'b' the reward inf"),
        ("reward text", "agent 'b' the reward 'much'"),
        ("nan", r"agent 'b' is nan at \[1\]"),
        ("inf", r"agent 'b' is inf at \[3\]"),
        ("short", r"agent 'b' has shape \(3,\), its space \(4,\)"),
        ("text", "agent 'b' is .*not an array of numbers"),
    ],
)
def test_what_cannot_be_played_is_an_error(wrong: str, message: str) -> None:
    with pytest.raises(BadEnvironment, match=message):
        play(wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("no reward", "agent 'b' got no reward"),
        ("unknown agent", "agent 'z' is not in `possible_agents`"),
        ("outside", "agent 'b' is outside its space: 101 at [2], not between -1 and 100"),
        ("column", "agent 'b' has shape (4, 1), not (4,)"),
    ],
)
def test_what_can_be_played_is_said_once_or_refused(wrong: str, message: str) -> None:
    (said,) = play(wrong)
    assert message in said
    with pytest.raises(BadEnvironment, match="agent"):
        play(wrong, strict=True)


def test_a_good_environment_passes() -> None:
    assert play("", strict=True) == []
