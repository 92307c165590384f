"""Replays: recorded episodes as a page that a browser opens, as JSON lines, or as a film."""

import base64
import gzip
import html
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from coplay.core.errors import UserError
from coplay.core.files import replacing
from coplay.core.game import Game
from coplay.core.group import group_players
from coplay.core.player import Player
from coplay.games.drawing import seat_colour
from coplay.matches.episodes import anyone_predicts
from coplay.matches.recording import EpisodeRecord, describe, record_episodes
from coplay.reports.boards import Boards
from coplay.reports.episode import frames, write_gif, write_mp4
from coplay.reports.page import page_alone, web_text
from coplay.reports.thoughts import thinking_seat, with_thoughts

SCRIPTS = ("dom.js", "charts.js", "board.js", "panels.js", "replay.js")
FILMS = (".gif", ".mp4")
ENDINGS = (".html", ".jsonl", *FILMS)
Order = Literal["played", "surprising"]
NOT_SURPRISING = (
    "no player of this seating predicts what the others do, so no episode is surprising: leave out "
    "--pick, or seat a HOP or HOP+ player"
)


class Replay:
    """Recorded episodes. In a notebook it shows itself.

    about: the game and who sits in the seats. episodes: in the order in which they are shown. What
    both hold is said in docs/reference/files.md.

        replay = coplay.replay("stag-hunt", "runs/hop,ns,ns,nh", episodes=20)
        replay.write("replay.html")
    """

    def __init__(self, game: Game, labels: Sequence[str], about: dict, episodes: Sequence):
        self.game = game
        self.labels = list(labels)
        self.about: dict[str, Any] = about
        self.episodes: list[EpisodeRecord] = list(episodes)

    def ordered(self, order: Order) -> "Replay":
        """The same episodes as they were played, or with the most surprising ones first."""
        if order == "played":
            found = sorted(self.episodes, key=lambda episode: episode.number)
        else:
            if any(episode.surprise is None for episode in self.episodes):
                raise UserError(NOT_SURPRISING)
            found = sorted(self.episodes, key=lambda episode: -(episode.surprise or 0.0))
        return Replay(self.game, self.labels, self.about, found)

    def page(self) -> str:
        """One HTML page that needs nothing else."""
        title = f"{self.about['game']}: {', '.join(self.labels)}"
        packed = gzip.compress(_json(self._data()).encode(), mtime=0)
        data = ("application/octet-stream", base64.b64encode(packed).decode())
        return page_alone(title, "replay", data, [web_text("replay.css")], map(web_text, SCRIPTS))

    def _data(self) -> dict[str, Any]:
        """What the page shows."""
        boards = Boards(self.game)
        episodes = [
            {
                "number": episode.number,
                "surprise": episode.surprise,
                "steps": [
                    {"board": boards.board(state), "seats": step["seats"]}
                    for step, state in zip(episode.steps, episode.states[:-1], strict=True)
                ],
                "end": boards.board(episode.states[-1]),
            }
            for episode in self.episodes
        ]
        seats = [
            seat | {"colour": seat_colour(number)}
            for number, seat in enumerate(self.about["seats"])
        ]
        return self.about | {"seats": seats, "episodes": episodes} | boards.shared()

    def lines(self) -> Iterator[str]:
        """JSON lines: what is the same in all steps, then every step, and every episode's end."""
        boards = Boards(self.game)
        yield _json(self.about)
        for episode in self.episodes:
            for step, state in zip(episode.steps, episode.states[:-1], strict=True):
                yield _json(step | {"board": boards.board(state)})
            yield _json(
                {
                    "kind": "end",
                    "episode": episode.number,
                    "board": boards.board(episode.states[-1]),
                    "rewards": [round(float(one), 4) for one in episode.rewards.sum(0)],
                    "surprise": episode.surprise,
                }
            )

    def write(self, path: str | os.PathLike[str], fps: float = 3.0) -> None:
        """Write a file of the kind that its ending says: .html, .jsonl, .gif or .mp4. A film shows
        the first episode, and what the first seat that predicts others thinks of them."""
        ending = ending_of(Path(path))
        if ending in FILMS:
            (write_gif if ending == ".gif" else write_mp4)(path, self.film(), fps)
            return
        text = self.page() if ending == ".html" else "".join(f"{line}\n" for line in self.lines())
        with replacing(path) as partial:
            Path(partial).write_text(text, encoding="utf-8")

    def film(self) -> list[np.ndarray]:
        """Pictures [pixel row, pixel column, RGB] uint8 of the first episode."""
        episode = self.episodes[0]
        pictures = frames(
            self.game, episode.states, episode.rewards, self.labels, actions=episode.actions
        )
        seat = thinking_seat(episode)
        return pictures if seat is None else with_thoughts(pictures, self.about, episode, seat)

    def _repr_html_(self) -> str:
        page = html.escape(self.page(), quote=True)
        style = "width: 100%; height: 760px; border: 0"
        return f'<iframe srcdoc="{page}" style="{style}" title="replay"></iframe>'


def ending_of(path: Path) -> str:
    """The ending of a file that can be written; an error for any other."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise UserError(f"--out {path}: a replay is written as {', '.join(ENDINGS)}")
    return ending


def make_replay(
    game: Game,
    players: Sequence[Player],
    labels: Sequence[str],
    episodes: int = 1,
    seed: int = 0,
    full_trees: bool = False,
    order: Order = "played",
) -> Replay:
    """Play episodes and record them; see `coplay.matches.recording`."""
    if order == "surprising" and not anyone_predicts(game, group_players(players)):
        raise UserError(NOT_SURPRISING)
    about = describe(game, players, labels, seed)
    episodes_played = record_episodes(game, players, episodes, seed, full_trees)
    return Replay(game, labels, about, episodes_played).ordered(order)


def _json(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
