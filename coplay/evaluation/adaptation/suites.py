"""Suites: the co-players that a player meets one set after the other, by name."""

from typing import NamedTuple

from coplay.core.errors import UserError, unknown
from coplay.core.game import Game
from coplay.evaluation.adaptation.places import find_places

LEARNER = "LEARNER"
"""Stands for a learning co-player, which the user may choose."""


class Suite(NamedTuple):
    """game: by name, with four seats. sets: co-players, one text each. side: of the game, on which
    the focal player is."""

    game: str
    sets: tuple[str, ...]
    side: str = ""


SUITES: dict[str, Suite] = {
    "stag-hunt": Suite(
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
    "snowdrift": Suite(
        "snowdrift",
        ("exploiter,exploiter,exploiter", "nd,nd,nd", "random,random,random"),
    ),
    "predators": Suite(
        "predator-prey",
        ("evader", "corner", "random", "switcher:evader:corner:episode=10", LEARNER),
        "predators",
    ),
    "prey": Suite(
        "predator-prey",
        (
            "chaser,chaser,chaser",
            "encircler,encircler,encircler",
            "random,random,random",
            "chaser,encircler,random",
            ",".join([LEARNER] * 3),
        ),
        "prey",
    ),
}
"""The suites by name."""


def suite_sets(name: str, game: Game, learner: str) -> list[str]:
    """The co-player sets of a suite for a game; `learner`: what learning co-players are."""
    if name not in SUITES:
        raise unknown("suite", name, SUITES)
    played, sets, side = SUITES[name]
    if game.name != played:
        raise UserError(f"suite '{name}' is for the game {played}; this is {game.name}")
    if game.seats != 4:
        raise UserError(
            f"suite '{name}' is for four seats; this {game.name} has {game.seats}: name "
            "the co-players by --against"
        )
    for text in sets if side else ():
        find_places(game, side, len(text.split(",")))
    return [text.replace(LEARNER, learner) for text in sets]


def suite_side(name: str, side: str) -> str:
    """The side on which the focal player of a suite is; an error if another one is asked for."""
    own = SUITES[name].side
    if side not in ("", own):
        raise UserError(f"suite '{name}' says on which side the player is: leave out --side {side}")
    return own
