"""coplay partners: packs of partners that a player has not met."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

from coplay.cli.arguments import named_part, option, parse
from coplay.evaluation.partners.config import PartnersConfig
from coplay.evaluation.partners.select import SelectConfig

GameConfig = TypeVar("GameConfig")


@dataclass(frozen=True)
class MakeArguments(Generic[GameConfig]):
    """Make a pack of partners for a game."""

    game: GameConfig
    game_name: Annotated[str, tyro.conf.arg(name="game")] = "stag-hunt"
    """The game by name; its own fields are --game.FIELD."""
    families: str = "rules,selfplay"
    """How partners are made: rules with random parameters; selfplay, checkpoints of PPO; rewards,
    PPO for random events; diverse, a population that differs; planners, HOP; people, who act as
    in recorded games (--people)."""
    partners: Annotated[PartnersConfig, tyro.conf.arg(name="")] = field(
        default_factory=PartnersConfig
    )
    out: Path = tyro.MISSING
    """Folder of the new pack. Making that was interrupted goes on."""
    on: str = ""
    """Train several partners at a time: local:K (K worker processes), ray (the Ray cluster that is
    there, or one on this machine), or ray:ADDRESS. The same pack comes out."""
    json: bool = False
    """Print what the pack holds as one JSON object on standard output."""


@dataclass(frozen=True)
class PartArguments:
    """Train a part of a pack, for a process that makes the pack with --on."""

    order: Path
    """What is to be trained."""
    out: Path
    """Folder of the part."""


@dataclass(frozen=True)
class SelectArguments:
    """Select the partners whose best responses differ most, split by family, and train the best
    responses to them."""

    pack: Annotated[Path, tyro.conf.Positional]
    """Folder of the pack. Its parts become packs below it."""
    select: Annotated[SelectConfig, tyro.conf.arg(name="")] = field(default_factory=SelectConfig)
    json: bool = False
    """Print the parts as one JSON object on standard output."""


@dataclass(frozen=True)
class ShowArguments:
    """Show who the partners of a pack are, how they differ and who answers whom, as a page."""

    pack: Annotated[Path, tyro.conf.Positional]
    """Folder of the pack."""
    episodes: int = 256
    """Episodes that each partner plays."""
    seed: int = 0
    """Seed of all randomness."""
    out: Path | None = None
    """Folder of the page; default: PACK/page."""
    page: bool = True
    """Make the page, for which everyone plays with everyone."""
    json: bool = False
    """Print it as one JSON object on standard output."""


PARTS: dict[str, type] = {"make": MakeArguments, "select": SelectArguments, "show": ShowArguments}


def run(arguments: list[str]) -> int:
    """coplay partners make …, coplay partners select PACK, coplay partners show PACK"""
    part, rest = named_part(arguments, "partners", PARTS)
    if part is None:
        return 0
    return {"make": make, "select": select, "show": show}[part](rest)


def make(arguments: list[str]) -> int:
    """coplay partners make …"""
    from coplay.api.partners import make_pack, show_partners
    from coplay.core.compilation import use_cache
    from coplay.games.registry import game_parts
    from coplay.reports.progress import ProgressLine
    from coplay.sweeps.partner_parts import do_order

    use_cache()
    if option(arguments, "order") is not None:
        part = parse(PartArguments, arguments, "partners make")
        with ProgressLine() as progress:
            do_order(part.order, part.out, progress)
        return 0
    name = option(arguments, "game") or "stag-hunt"
    kind = game_parts(name)[0]
    default: MakeArguments[Any] = MakeArguments(game=kind(), game_name=name)
    given = parse(MakeArguments[kind], arguments, "partners make", default)  # type: ignore
    families = tuple(text.strip() for text in given.families.split(",") if text.strip())
    with ProgressLine() as progress:
        make_pack(name, given.game, families, given.partners, given.out, progress, given.on)
    _print(show_partners(given.out), given.json)
    return 0


def select(arguments: list[str]) -> int:
    """coplay partners select PACK …"""
    from coplay.api.partners import select_partners
    from coplay.core.config import to_json
    from coplay.reports.progress import ProgressLine
    from coplay.reports.results import print_json

    given = parse(SelectArguments, arguments, "partners select")
    with ProgressLine() as progress:
        found = select_partners(given.pack, watcher=progress, **to_json(given.select))
    if given.json:
        print_json(found)
        return 0
    for name, part in found.items():
        print(f"{name}: {len(part['partners'])} partners in {part['folder']}")
    print(f"see them: coplay partners show {given.pack}")
    return 0


def show(arguments: list[str]) -> int:
    """coplay partners show PACK"""
    from coplay.api.partners import show_partners
    from coplay.reports.progress import ProgressLine

    given = parse(ShowArguments, arguments, "partners show")
    page = (given.out or given.pack / "page") if given.page else None
    with ProgressLine(transient=True) as progress:
        found = show_partners(given.pack, given.episodes, given.seed, page, watcher=progress)
    _print(found, given.json)
    if page is not None and not given.json:
        print(f"the page is {found['page']}")
    return 0


def _print(found: dict[str, Any], as_json: bool) -> None:
    from coplay.reports.partners import print_partners
    from coplay.reports.results import print_json

    if as_json:
        print_json(found)
    else:
        print_partners(found)
