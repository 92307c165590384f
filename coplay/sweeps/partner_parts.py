"""The trainings behind a pack of partners, done by several workers; then the pack is made as ever
and finds them done."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coplay.core.config import from_json, to_json
from coplay.core.errors import UserError
from coplay.core.files import write_json
from coplay.core.manifest import listing
from coplay.core.reading import read_field, read_json
from coplay.evaluation.partners.config import Order, PartnersConfig
from coplay.evaluation.partners.make import begin_pack, check_order, make_part, parts_of
from coplay.games.registry import game_parts
from coplay.sweeps.config import SweepConfig
from coplay.sweeps.jobs import trusted
from coplay.sweeps.parts import do_parts
from coplay.sweeps.workers import Job
from coplay.training.watching import Watcher

DONE = "done.json"
"""In the folder of a part that is done."""


def train_partners(
    order: Order, families: tuple[str, ...], where: SweepConfig, say: Callable[[str], None]
) -> None:
    """Train all that `make_partners` would train for an order, in `runs` of its folder."""
    parts = parts_of(families, order.config)
    out = order.folder
    if not parts or (out / "runs").exists():
        return
    home = out.with_name(f"{out.name}.parts")
    begin_pack(order, families)

    def jobs() -> list[Job]:
        return [_job(order, part, home) for part in parts]

    def gather(done: list[Job]) -> None:
        runs = home / "runs"
        runs.mkdir(exist_ok=True)
        for one in done:
            for found in (one.folder / "runs").glob("*"):
                os.replace(found, runs / found.name)
        os.replace(runs, out / "runs")

    do_parts(where, home, jobs, is_done, gather, say, "trainings", "people" in families)


def _job(order: Order, part: str, home: Path) -> Job:
    name = part.replace(":", "-")
    file = home / f"{name}.json"
    asked = {
        "game_name": order.game_name,
        "game": to_json(order.game),
        "config": to_json(order.config),
        "part": part,
    }
    if file.exists() and read_json(file) != asked:
        raise UserError(f"{home} holds parts of another pack: remove it, or choose another --out")
    write_json(file, asked)
    folder = home / name
    given = (*trusted([]), "partners", "make", "--order", str(file), "--out", str(folder))
    return Job(name, folder, given, given, home / f"{name}.txt", file)


def is_done(job: Job) -> bool:
    return (job.folder / DONE).exists()


def do_order(file: Path, folder: Path, watcher: Watcher) -> None:
    """Do a part, in a process of its own. file: what `_job` wrote."""
    asked, where = read_json(file), str(file)
    name = read_field(asked, "game_name", str, where)
    part = read_field(asked, "part", str, where)
    game: Any = from_json(game_parts(name)[0], asked.get("game"), f"{where}: game")
    config = from_json(PartnersConfig, asked.get("config"), f"{where}: config")
    family = part.partition(":")[0]
    order = check_order(name, game, (family,), config, folder, watcher)
    make_part(order, part)
    with listing(folder):
        write_json(folder / DONE, {"part": part})
