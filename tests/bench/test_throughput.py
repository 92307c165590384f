"""Which games `coplay bench --games` steps."""

import coplay
from coplay.bench.throughput import OWN, stepped_games
from coplay.games.registry import GAMES


def test_own_stands_for_all_games_of_the_library() -> None:
    """But for Stag Hunt, which has rows of its own, and the diagnostic ones."""
    left_out = {"stag-hunt", "identity", "hidden-target", "hidden-kind"}
    named = {name for name in GAMES if not name.startswith("own")} - left_out
    assert named <= set(OWN)
    assert stepped_games(["coin-game", "own"]) == [
        "coin-game",
        *(x for x in OWN if x != "coin-game"),
    ]
    assert stepped_games([]) == []
    for name in OWN:
        assert coplay.make_game(name).seats > 1
