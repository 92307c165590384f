"""The sets of an adaptation played by several workers; then the adaptation goes on as ever and
finds them kept. A best response that a set needs is trained by its worker."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coplay.core.config import from_json, to_json
from coplay.core.errors import UserError
from coplay.core.files import make_folder, write_json
from coplay.core.reading import read_field, read_json
from coplay.evaluation.adaptation.best_response import BestResponseConfig
from coplay.evaluation.adaptation.meetings import KeptResults, Request, check_sets, slug
from coplay.evaluation.adaptation.protocol import AdaptConfig
from coplay.games.registry import game_parts
from coplay.sweeps.config import SweepConfig
from coplay.sweeps.jobs import trusted
from coplay.sweeps.parts import do_parts
from coplay.sweeps.workers import Job
from coplay.training.seating import is_run


def meet_in_parts(
    request: Request, out: Path, references: Path, where: SweepConfig, say: Callable[[str], None]
) -> None:
    """Play the sets of a request that `out` does not hold yet, and put their results there."""
    kept = KeptResults(out, request)
    left = [text for text in request.sets if kept.read(text) is None]
    check_sets(request, left, game_parts(request.game_name)[1](request.game))
    if not left:
        return
    home = out.with_name(f"{out.name}.parts")

    def jobs() -> list[Job]:
        return [_job(request, text, references, home) for text in left]

    def gather(done: list[Job]) -> None:
        make_folder(out / "sets")
        write_json(kept.settings, request.as_json())
        for job in done:
            # The result itself comes last: a set without it is played again.
            found = sorted((job.folder / "sets").iterdir(), key=lambda one: one.suffix == ".json")
            for one in found:
                os.replace(one, out / "sets" / one.name)

    do_parts(where, home, jobs, is_done, gather, say, "sets of co-players", needs_disk=True)


def is_done(job: Job) -> bool:
    return (job.folder / "adapt.json").exists()


def _job(request: Request, text: str, references: Path, home: Path) -> Job:
    name = f"set-{slug(text)}"
    file = home / f"{name}.json"
    asked = {
        **{"focal": request.focal, "against": text, "references": str(references)},
        **{"game_name": request.game_name, "game": to_json(request.game)},
        **{"adapt": to_json(request.adapt), "best": to_json(request.best)},
        **{"normalise": request.normalise, "side": request.side},
    }
    if file.exists() and read_json(file) != asked:
        raise UserError(f"{home} holds parts of another adaptation: remove it, or choose --out")
    write_json(file, asked)
    folder = home / name
    entries = [request.focal, *text.split(",")]
    named = [entry.removeprefix("learning:").partition("@")[0] for entry in entries]
    own = trusted(dict.fromkeys(path for path in named if is_run(path) or "/" in path))
    given = (*own, "adapt", "--order", str(file), "--out", str(folder))
    return Job(name, folder, given, given, home / f"{name}.txt", file)


def read_order(file: Path) -> tuple[Request, Path]:
    """What `_job` wrote: a request for one set, and the folder of best responses."""
    asked, where = read_json(file), str(file)
    name = read_field(asked, "game_name", str, where)
    game: Any = from_json(game_parts(name)[0], asked.get("game"), f"{where}: game")
    request = Request(
        read_field(asked, "focal", str, where),
        (read_field(asked, "against", str, where),),
        name,
        game,
        from_json(AdaptConfig, asked.get("adapt"), f"{where}: adapt"),
        read_field(asked, "normalise", bool, where),
        from_json(BestResponseConfig, asked.get("best"), f"{where}: best"),
        side=read_field(asked, "side", str, where),
    )
    return request, Path(read_field(asked, "references", str, where))
