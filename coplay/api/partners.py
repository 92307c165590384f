"""Packs of partners from Python."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coplay.api.arguments import game_and_config, game_fields_of, share_fields, watching
from coplay.core.compilation import use_cache
from coplay.core.game import Game
from coplay.evaluation.partners import make
from coplay.evaluation.partners.config import PartnersConfig
from coplay.evaluation.partners.describe import describe_pack
from coplay.evaluation.partners.select import SelectConfig
from coplay.evaluation.partners.select import select_partners as select
from coplay.reports.partner_page import write_partner_page
from coplay.sweeps.config import SweepConfig
from coplay.sweeps.partner_parts import train_partners
from coplay.training.partner_packs import read_pack
from coplay.training.partner_responses import read_responses
from coplay.training.trainer import Watcher


def make_partners(
    out: str | Path,
    game: str | Game = "stag-hunt",
    families: Sequence[str] = ("rules", "selfplay"),
    *,
    game_fields: Mapping[str, Any] | None = None,
    on: str = "",
    quiet: bool = False,
    watcher: Watcher | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Make a pack of partners; the result is what `coplay partners show --json` prints.

    out: folder of the new pack. families: how partners are made. on: where several are trained at a
        time: local:K, ray or ray:ADDRESS. fields: as in `coplay partners make --help`.

        coplay.make_partners("packs/sh4", "stag-hunt", ["rules"], rules=12)
        coplay.play("stag-hunt", "packs/sh4@partner=0,ns,nh,random")
    """
    use_cache()
    rest, of_game = game_fields_of(fields, game_fields)
    name, game_config = game_and_config(game, of_game)
    (config,) = share_fields(rest, PartnersConfig())
    with watching(watcher, quiet) as told:
        make_pack(name, game_config, tuple(families), config, Path(out), told, on)
    return show_partners(out)


def make_pack(
    game_name: str,
    game: Any,
    families: tuple[str, ...],
    config: PartnersConfig,
    out: Path,
    watcher: Watcher,
    on: str = "",
) -> None:
    """Make a pack in the folder `out`. on: where several partners are trained at a time."""
    if on:
        order = make.check_order(game_name, game, families, config, out, watcher)
        train_partners(order, families, SweepConfig(on=on), watcher.say)
    make.make_partners(game_name, game, families, config, out, watcher)


def select_partners(
    pack: str | Path,
    *,
    quiet: bool = False,
    watcher: Watcher | None = None,
    **fields: Any,
) -> dict[str, dict[str, Any]]:
    """Select the partners of a pack whose best responses differ most, and train best responses to
    them. The result has for each part (`train`, `held-out`) its folder, its partners and what the
    best responses get.

    fields: as in `coplay partners select --help`; `best={"steps": …}` for best responses.

        coplay.select_partners("packs/sh4", keep=24)
        coplay.adapt("runs/hop", partners="packs/sh4/held-out")
    """
    use_cache()
    (config,) = share_fields(fields, SelectConfig())
    with watching(watcher, quiet) as told:
        parts = select(read_pack(Path(pack)), config, told)
    return {
        name: {
            "folder": str(part.folder),
            "partners": [one.name for one in part.partners],
            "best_responses": {key: one.reward for key, one in read_responses(part).items()},
        }
        for name, part in parts.items()
    }


def show_partners(
    pack: str | Path,
    episodes: int = 256,
    seed: int = 0,
    page: str | Path | None = None,
    *,
    watcher: Watcher | None = None,
) -> dict[str, Any]:
    """What a pack holds and how its partners play; what `coplay partners show --json` prints.

    episodes: played by each partner among its own kind. page: a folder for index.html, which also
        shows how partners differ, who answers whom and who was selected.

        for partner in coplay.show_partners("packs/sh4")["partners"]:
            print(partner["name"], partner["reward"])
    """
    use_cache()
    told = (watcher or Watcher()).work
    found = describe_pack(read_pack(Path(pack)), episodes, seed, page is not None, told)
    if page is not None:
        found["page"] = str(write_partner_page(Path(page), found))
    return found
