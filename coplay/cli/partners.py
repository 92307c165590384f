"""coplay partners: packs of partners that a player has not met."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

from coplay.cli.arguments import named_part, option, parse
from coplay.evaluation.partners.make import PartnersConfig

GameConfig = TypeVar("GameConfig")


@dataclass(frozen=True)
class MakeArguments(Generic[GameConfig]):
    """Make a pack of partners for a game."""

    game: GameConfig
    game_name: Annotated[str, tyro.conf.arg(name="game")] = "stag-hunt"
    """The game by name; its own fields are --game.FIELD."""
    families: str = "rules,selfplay"
    """How partners are made: rules with random parameters; checkpoints of self-play."""
    partners: Annotated[PartnersConfig, tyro.conf.arg(name="")] = field(
        default_factory=PartnersConfig
    )
    out: Path = tyro.MISSING
    """Folder of the new pack. Making that was interrupted goes on."""
    json: bool = False
    """Print what the pack holds as one JSON object on standard output."""


@dataclass(frozen=True)
class ShowArguments:
    """Show who the partners of a pack are, and what each gets among its own kind."""

    pack: Annotated[Path, tyro.conf.Positional]
    """Folder of the pack."""
    episodes: int = 256
    """Episodes that each partner plays."""
    seed: int = 0
    """Seed of all randomness."""
    json: bool = False
    """Print it as one JSON object on standard output."""


PARTS: dict[str, type] = {"make": MakeArguments, "show": ShowArguments}


def run(arguments: list[str]) -> int:
    """coplay partners make …, coplay partners show PACK"""
    part, rest = named_part(arguments, "partners", PARTS)
    if part is None:
        return 0
    return make(rest) if part == "make" else show(rest)


def make(arguments: list[str]) -> int:
    """coplay partners make …"""
    from coplay.api.partners import show_partners
    from coplay.core.compilation import use_cache
    from coplay.evaluation.partners.make import make_partners
    from coplay.games.registry import game_parts
    from coplay.reports.progress import ProgressLine

    name = option(arguments, "game") or "stag-hunt"
    kind = game_parts(name)[0]
    default: MakeArguments[Any] = MakeArguments(game=kind(), game_name=name)
    given = parse(MakeArguments[kind], arguments, "partners make", default)  # type: ignore
    families = tuple(text.strip() for text in given.families.split(",") if text.strip())
    use_cache()
    with ProgressLine() as progress:
        make_partners(name, given.game, families, given.partners, given.out, progress)
    _print(show_partners(given.out), given.json)
    return 0


def show(arguments: list[str]) -> int:
    """coplay partners show PACK"""
    from coplay.api.partners import show_partners

    given = parse(ShowArguments, arguments, "partners show")
    _print(show_partners(given.pack, given.episodes, given.seed), given.json)
    return 0


def _print(found: dict[str, Any], as_json: bool) -> None:
    from coplay.reports.partners import print_partners
    from coplay.reports.results import print_json

    if as_json:
        print_json(found)
    else:
        print_partners(found)
