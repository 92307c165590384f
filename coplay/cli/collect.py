"""coplay collect: datasets of what players of a mix do."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

from coplay.cli.arguments import option, parse
from coplay.core.config import PositiveInt, Seed

GameConfig = TypeVar("GameConfig")


@dataclass(frozen=True)
class CollectArguments(Generic[GameConfig]):
    """Let players of a mix play whole episodes and keep what every seat saw and did."""

    game: GameConfig
    game_name: Annotated[str, tyro.conf.arg(name="game")] = "stag-hunt"
    """The game by name; its own fields are --game.FIELD."""
    mix: str = "ns,nh,random"
    """Players; each seat's is drawn uniformly from them, anew for each episode."""
    samples: PositiveInt = 107_010
    """How many samples: steps of a seat while it is in the game."""
    seed: Seed = 0
    """Seed of all randomness."""
    out: Path = tyro.MISSING
    """Folder of the new dataset."""
    json: bool = False
    """Print what the dataset holds as one JSON object on standard output."""


def run(arguments: list[str]) -> int:
    """coplay collect …"""
    from coplay.api.models import collect_dataset
    from coplay.games.registry import game_parts
    from coplay.reports.progress import ProgressLine
    from coplay.reports.results import print_json

    name = option(arguments, "game") or "stag-hunt"
    kind = game_parts(name)[0]
    default: CollectArguments[Any] = CollectArguments(game=kind(), game_name=name)
    given = parse(CollectArguments[kind], arguments, "collect", default)  # type: ignore
    with ProgressLine() as progress:
        dataset = collect_dataset(
            given.out, given.game_name, given.game, given.mix, given.samples, given.seed, progress
        )
    if given.json:
        print_json(dataset.about() | {"out": str(given.out)})
    else:
        print_dataset(given.out, dataset.about(), list(dataset.game.action_names))
    return 0


def print_dataset(out: Path, about: dict[str, Any], names: list[str]) -> None:
    """What a dataset holds, player by player; names: of the actions."""
    from rich.table import Table

    from coplay.reports.results import console_for_tables

    table = Table(
        title=f"{out}: {about['samples']} samples of {about['episodes']} episodes of "
        f"{about['game_name']}, {about['mean_length']:.1f} steps each"
    )
    for name in ("player", "samples", "reward", *names):
        table.add_column(name, justify="left" if name == "player" else "right")
    for name, found in about["kinds"].items():
        reward = "" if found["reward"] is None else f"{found['reward']:.3f}"
        table.add_row(
            name, str(found["samples"]), reward, *(str(found["actions"][a]) for a in names)
        )
    console_for_tables().print(table)
