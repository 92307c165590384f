"""Packs of partners from Python."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coplay.api.arguments import game_and_config, game_fields_of, share_fields, watching
from coplay.core.compilation import use_cache
from coplay.core.game import Game
from coplay.evaluation.partners.describe import describe_pack
from coplay.evaluation.partners.make import PartnersConfig
from coplay.evaluation.partners.make import make_partners as make_pack
from coplay.training.partner_packs import read_pack
from coplay.training.trainer import Watcher


def make_partners(
    out: str | Path,
    game: str | Game = "stag-hunt",
    families: Sequence[str] = ("rules", "selfplay"),
    *,
    game_fields: Mapping[str, Any] | None = None,
    quiet: bool = False,
    watcher: Watcher | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Make a pack of partners; the result is what `coplay partners show --json` prints.

    out: folder of the new pack. families: how partners are made. fields: as in
        `coplay partners make --help`.

        coplay.make_partners("packs/sh4", "stag-hunt", ["rules"], rules=12)
        coplay.play("stag-hunt", "packs/sh4@partner=0,ns,nh,random")
    """
    use_cache()
    rest, of_game = game_fields_of(fields, game_fields)
    name, game_config = game_and_config(game, of_game)
    (config,) = share_fields(rest, PartnersConfig())
    with watching(watcher, quiet) as told:
        make_pack(name, game_config, tuple(families), config, Path(out), told)
    return show_partners(out)


def show_partners(pack: str | Path, episodes: int = 256, seed: int = 0) -> dict[str, Any]:
    """What a pack holds and how its partners play; what `coplay partners show --json` prints.

    episodes: played by each partner among its own kind.

        for partner in coplay.show_partners("packs/sh4")["partners"]:
            print(partner["name"], partner["reward"])
    """
    use_cache()
    return describe_pack(read_pack(Path(pack)), episodes, seed)
