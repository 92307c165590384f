"""The game that people and players play together, as news that a page draws."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coplay.core.errors import UserError, system_error
from coplay.core.game import Game
from coplay.core.player import Player
from coplay.games.drawing import seat_colour
from coplay.matches.episodes import Step
from coplay.matches.guest_game import GuestGame, Person, without_policy
from coplay.matches.played_dataset import GrowingDataset
from coplay.matches.recording import describe, played_step, records_of
from coplay.reports.boards import Boards
from coplay.reports.replay import Replay

DONE = ("alive", "action", "reward")
"""What everybody sees of a seat once a step was played."""


class GuestTable:
    """One game at a time.

    players: [seat] None for a person. labels: [seat] who plays, by name. kept: where whole episodes
    are recorded; None: nowhere. replays: pages of the episodes that were played, the last few.
    """

    def __init__(
        self,
        game: Game,
        players: Sequence[Player | None],
        labels: Sequence[str],
        seed: int = 0,
        kept: GrowingDataset | None = None,
    ):
        self.guests = GuestGame(game, players, seed)
        self.game, self.labels, self.kept = game, list(labels), kept
        self.people = self.guests.people
        seated = [Person() if player is None else player for player in players]
        self.description = describe(game, seated, labels, seed)
        self.rewards: list[np.ndarray] = []  # of whole episodes, [seat] each
        self.replays: dict[int, str] = {}
        self.boards = Boards(game)

    @property
    def about(self) -> dict[str, Any]:
        """The game and who plays it, for the page."""
        seats = [
            seat | {"colour": seat_colour(number), "person": number in self.people}
            for number, seat in enumerate(self.description["seats"])
        ]
        kept = None if self.kept is None else str(self.kept.out)
        more = {"seats": seats, "recorded": kept, "seat_planes": self.game.seat_planes}
        return self.description | more

    def warm_up(self) -> None:
        """Compile everything, so that nobody waits at the first move."""
        self.begin()
        self.step({seat: self.legal(seat)[0] for seat in self.people})

    def begin(self) -> dict[str, Any]:
        """Begin a game, and what is told of it."""
        self.guests.begin()
        return {"kind": "begin", "game": self.guests.episodes, **self._now()}

    def awaited(self) -> set[int]:
        """The seats of people that have to choose."""
        return {seat for seat in self.people if self.guests.alive[seat]}

    def legal(self, seat: int) -> list[int]:
        return self.guests.legal(seat)

    def step(self, chosen: dict[int, int]) -> dict[str, Any]:
        """Play a step, and what is told of it."""
        step = self.guests.step(chosen)
        played = played_step(self.game, step)["seats"]
        seats = [without_policy(one) if n in self.people else one for n, one in enumerate(played)]
        now = {"board": self._board(step.after)} if step.over else self._now()
        return {"kind": "step", "seats": seats, "over": step.over, **now}

    def _now(self) -> dict[str, Any]:
        """The situation before a step: the board, what each seat sees and thinks, and what pages
        need to draw it."""
        board = self._board(self.guests.state)
        return {"board": board, "thoughts": self.guests.thoughts()}

    def _board(self, state: Any) -> dict[str, Any]:
        board = self.boards.board(state)
        image = (board or {}).get("image")
        if image is None:
            return {"drawn": board, **self.boards.shared() | {"images": []}}
        # Pictures are sent one by one: a long game has many.
        shared = self.boards.shared() | {"images": [self.boards.images[image]]}
        return {"drawn": {"image": 0}, **shared}

    def told(self, news: dict[str, Any], seat: int, thinking: bool) -> dict[str, Any]:
        """News as a person in a seat may see it: the own view, what everybody did, and the thoughts
        of others only if it is to see them. A board shows too much where views are partial."""
        found = dict(news)
        if not self.game.full_view and "board" in news and news["kind"] != "end":
            found["board"] = news["board"] | {"drawn": None}
        if "thoughts" in news:
            found["thoughts"] = [
                one if thinking or number == seat else {"alive": one["alive"]}
                for number, one in enumerate(news["thoughts"])
            ]
        if news["kind"] == "step":
            found["seats"] = [
                one
                if thinking or number == seat
                else {name: one[name] for name in DONE if name in one}
                for number, one in enumerate(news["seats"])
            ]
        return found

    def end(self) -> dict[str, Any]:
        """Keep the game that was played, and what is told at its end."""
        steps = self.guests.steps
        self.rewards.append(np.sum([step.rewards for step in steps], axis=0))
        wrong = self._keep(steps)
        number = len(self.rewards)
        self.replays[number] = self._replay(steps)
        self.replays.pop(number - 20, None)
        return {
            "kind": "end",
            "number": number,
            "rewards": np.round(self.rewards[-1], 4).tolist(),
            "means": np.round(np.mean(self.rewards, axis=0), 4).tolist(),
            "replay": f"/replay/{number}",
            "unrecorded": wrong,
        }

    def _keep(self, steps: list[Step]) -> str | None:
        """Record a game; what went wrong, if anything. People may go on playing."""
        if self.kept is None:
            return None
        try:
            self.kept.add(self.game, steps)
        except (OSError, UserError) as error:
            return f"this game could not be recorded: {system_error(error) or error}"
        return None

    def _replay(self, steps: list[Step]) -> str:
        (record,) = records_of(self.game, steps)
        for step in record.steps:
            for seat in self.people:
                step["seats"][seat] = without_policy(step["seats"][seat])
        return Replay(self.game, self.labels, self.description, [record]).page()
