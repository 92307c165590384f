"""Suites: the co-players that a player meets one set after the other, by name."""

from coplay.core.errors import UserError, unknown
from coplay.core.game import Game

LEARNER = "LEARNER"
"""Stands for a learning co-player, which the user may choose."""

SUITES: dict[str, tuple[str, tuple[str, ...]]] = {
    "stag-hunt": (
        "stag-hunt",
        (
            "nh,nh,nh",
            "ns,ns,ns",
            "random,random,random",
            "nh,ns,random",
            "ns,ns,random",
            ",".join(["switcher:nh:ns:episode=20"] * 3),
            ",".join(["switcher:nh:ns:step=4"] * 3),
            ",".join([LEARNER] * 3),
        ),
    ),
    "snowdrift": (
        "snowdrift",
        ("exploiter,exploiter,exploiter", "nd,nd,nd", "random,random,random"),
    ),
}
"""name -> (game, co-players for games of four seats)."""


def suite_sets(name: str, game: Game, learner: str) -> list[str]:
    """The co-player sets of a suite for a game; `learner`: what learning co-players are."""
    if name not in SUITES:
        raise unknown("suite", name, SUITES)
    played, sets = SUITES[name]
    if game.name != played:
        raise UserError(f"suite '{name}' is for the game {played}; this is {game.name}")
    if game.seats != 4:
        raise UserError(
            f"suite '{name}' has three co-players; this {game.name} has {game.seats} seats: name "
            "the co-players by --against"
        )
    return [text.replace(LEARNER, learner) for text in sets]
