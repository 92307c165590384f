"""A focal player against one set of co-players or a suite of them, with results that are kept.

adapt.json       the result, or the list of results of a suite
settings.json    what was asked for; a folder serves one request
sets/NAME.json   the result against each set as soon as it is there: a suite can be taken up again
sets/NAME.csv    every episode of every unit
"""

import csv
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coplay.core.config import to_json
from coplay.core.errors import UserError
from coplay.core.files import replacing, write_json
from coplay.core.game import Game
from coplay.core.reading import check_folder, read_field, read_json
from coplay.evaluation.adaptation.best_response import (
    BestResponseConfig,
    Opposition,
    best_response,
)
from coplay.evaluation.adaptation.places import Places, find_places
from coplay.evaluation.adaptation.protocol import (
    AdaptConfig,
    has_best_response,
    learns,
    make_meeting,
    play_units,
    split_against,
    what_learns,
)
from coplay.evaluation.adaptation.scores import (
    EpisodeScores,
    References,
    cut_episodes,
    summarise,
    unit_scores,
)
from coplay.training.run import RunFolder
from coplay.training.seating import is_run
from coplay.training.trainer import Watcher

REFERENCE_REPETITIONS = 64
"""Repetitions by which random play is measured where no co-player learns."""


@dataclass(frozen=True)
class Request:
    """What is asked for: `focal` against each of `sets`, in a game by name and configuration.

    suite: the sets are those of a suite. families: of each set, if they are companies of a pack.
    side: on which the focal player is, in a game with sides.
    """

    focal: str
    sets: tuple[str, ...]
    game_name: str
    game: Any
    adapt: AdaptConfig
    normalise: bool
    best: BestResponseConfig
    suite: bool = False
    families: tuple[str, ...] = ()
    side: str = ""

    def as_json(self) -> dict[str, Any]:
        step = None
        if is_run(self.focal):
            step = RunFolder(Path(self.focal.split("@")[0])).checkpoints().last_step()
        # How sets are summed up does not change what is played.
        asked = {k: v for k, v in to_json(self).items() if k not in ("suite", "families")}
        if not self.side:
            del asked["side"]
        return asked | {"checkpoint": step}


class KeptResults:
    """The folder of a request."""

    def __init__(self, folder: Path, request: Request):
        """Looks, but writes nothing yet."""
        self.folder, self.request = folder, request
        self.settings = folder / "settings.json"
        self.result = folder / "adapt.json"
        if folder.exists() and not folder.is_dir():
            raise UserError(f"{folder} is a file; choose another --out")
        if self.settings.exists():
            if read_json(self.settings) != request.as_json():
                raise UserError(
                    f"{folder} holds an adaptation with other settings; choose another --out"
                )
            check_folder(folder)
        elif folder.exists() and any(folder.iterdir()):
            raise UserError(f"{folder} is not empty; choose another --out")

    def path(self, against: str, ending: str) -> Path:
        return self.folder / "sets" / f"{slug(against)}.{ending}"

    def read(self, against: str) -> dict[str, Any] | None:
        path = self.path(against, "json")
        return read_json(path) if path.exists() else None


def slug(against: str) -> str:
    """A set of co-players as a file name; the same player several times is said once."""
    entries = against.split(",")
    words = entries if len(set(entries)) > 1 else [str(len(entries)), entries[0]]
    return re.sub(r"[^A-Za-z0-9]+", "-", "-".join(words)).strip("-")


def check_sets(request: Request, sets: Sequence[str], game: Game) -> None:
    """Makes all players once before anything is written, so that errors come first."""
    for text in sets:
        against = split_against(text, game, request.side)
        make_meeting(request.focal, against, game, request.adapt, request.side)


def meet_all(
    request: Request,
    game: Game,
    out: Path,
    references: Path,
    watcher: Watcher,
    finished: Callable[[KeptResults, dict[str, Any]], None],
) -> list[dict[str, Any]]:
    """The results against all sets, from the folder where they are there already.

    finished: called with each new result once it is kept, to draw it.
    """
    kept = KeptResults(out, request)
    check_sets(request, [text for text in request.sets if kept.read(text) is None], game)
    write_json(kept.settings, request.as_json())
    results = []
    for number, text in enumerate(request.sets):
        watcher.work("meetings", number, len(request.sets))
        found = kept.read(text)
        if found is None:
            watcher.say(f"{request.focal} against {text}")
            found, units = meet(request, text, game, references, watcher)
            against = split_against(text, game, request.side)
            places = find_places(game, request.side, len(against))
            write_episodes(kept.path(text, "csv"), units, request.adapt.seeds, places)
            write_json(kept.path(text, "json"), found)
            finished(kept, found)
        else:
            watcher.say(f"{request.focal} against {text}: kept from before")
        results.append(found)
    return results


def meet(
    request: Request, text: str, game: Game, references: Path, watcher: Watcher
) -> tuple[dict[str, Any], list[EpisodeScores]]:
    """The result against one set, and all episodes."""
    against = split_against(text, game, request.side)
    config = request.adapt
    lines = References(None, None)
    if request.normalise:
        opposition = Opposition(request.game_name, request.game, tuple(against), request.side)
        kept = opposition.folder(references, request.best)
        lines = References(*random_reward(opposition, game, config, kept))
        if has_best_response(against):
            found = best_response(opposition, references, request.best, watcher)
            noise = math.hypot(lines.stderr, found["stderr"])
            lines = lines._replace(best_response=found["reward"], stderr=noise)
    meeting = make_meeting(request.focal, against, game, config, request.side)
    played, _ = play_units(game, meeting, config)
    result: dict[str, Any] = {"player": request.focal, "against": text}
    result |= summarise(played, config.steps, config.last, lines)
    result |= {
        "learns": what_learns(meeting, config),
        "steps": config.steps,
        "last": config.last,
        "seeds": config.seeds,
        "seats": len(meeting.places.orders),
    }
    if request.side:
        result |= {"side": request.side, "team": len(meeting.places.focal)}
    return result, cut_episodes(played)


def random_reward(
    opposition: Opposition, game: Game, config: AdaptConfig, folder: Path
) -> tuple[float, None, float]:
    """What a random player gets per episode in the focal player's place, over all seats, as a
    reference (`References`) with its standard error; kept in the folder of the best response.

    Where co-players change, the same last steps count as for the focal player, and it plays as
    often if they learn (that takes time); else all episodes of more repetitions.
    """
    against = list(opposition.against)
    fixed = AdaptConfig(
        steps=config.steps,
        last=config.steps if has_best_response(against) else config.last,
        seeds=config.seeds if any(map(learns, against)) else REFERENCE_REPETITIONS,
        seed=config.seed,
        rollout=config.rollout,
    )
    wanted = to_json(fixed)
    kept = folder / "random.json"
    if kept.exists():
        found = read_json(kept)
        if found.get("config") == wanted and "stderr" in found:
            reward, stderr = (
                read_field(found, name, float, str(kept)) for name in ("reward", "stderr")
            )
            return reward, None, stderr
    meeting = make_meeting("random", against, game, fixed, opposition.side)
    played, _ = play_units(game, meeting, fixed)
    scores = unit_scores(cut_episodes(played), fixed.steps, fixed.last)
    reward = float(scores.mean())
    stderr = float(scores.std(ddof=1) / math.sqrt(len(scores))) if len(scores) > 1 else 0.0
    write_json(kept, {"reward": reward, "stderr": stderr, "config": wanted})
    return reward, None, stderr


def write_episodes(path: Path, units: list[EpisodeScores], seeds: int, places: Places) -> None:
    """A row for every episode of every unit."""
    with replacing(path) as temporary, open(temporary, "w", newline="") as file:
        rows = csv.writer(file)
        titles = ["seat", "repetition", "episode", "begin", "end", "reward", "cumulative"]
        rows.writerow([*titles, "belief", "accuracy"])
        for number, unit in enumerate(units):
            turn, repetition = divmod(number, seeds)
            seat = places.orders[turn][places.focal[0]]
            total = 0.0
            for index, reward in enumerate(unit.reward):
                total += reward
                shares = [
                    "" if course is None or course[index] != course[index] else course[index]
                    for course in (unit.belief, unit.accuracy)
                ]
                place = [seat, repetition, index, unit.begin[index], unit.end[index]]
                rows.writerow([*place, reward, total, *shares])
