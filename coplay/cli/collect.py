"""coplay collect: datasets of what players of a mix do."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

GameConfig = TypeVar("GameConfig")


@dataclass(frozen=True)
class CollectArguments(Generic[GameConfig]):
    """Let players of a mix play whole episodes and keep what every seat saw and did."""

    game: GameConfig
    game_name: Annotated[str, tyro.conf.arg(name="game")] = "stag-hunt"
    """The game by name; its own fields are --game.FIELD."""
    mix: str = "ns,nh,random"
    """Players; each seat's is drawn uniformly from them, anew for each episode."""
    samples: int = 107_010
    """How many samples: steps of a seat while it is in the game."""
    seed: int = 0
    """Seed of all randomness."""
    out: Path = tyro.MISSING
    """Folder of the new dataset."""
    json: bool = False
    """Print what the dataset holds as one JSON object on standard output."""


def default_arguments(game_name: str | None) -> tuple[type, CollectArguments[Any]]:
    """The game's configuration class, and the arguments where nothing is said."""
    from coplay.games.registry import game_parts

    name = game_name or "stag-hunt"
    kind = game_parts(name)[0]
    return kind, CollectArguments(game=kind(), game_name=name)


def run_collect(given: CollectArguments[Any]) -> int:
    """Play, keep, and say what was kept."""
    from rich.table import Table

    from coplay.core.compilation import use_cache
    from coplay.matches.dataset import refuse_if_taken, save_dataset
    from coplay.reports.results import console_for_tables, print_json
    from coplay.training.collect import collect

    use_cache()
    refuse_if_taken(given.out)
    dataset = collect(given.game_name, given.game, given.mix, given.samples, given.seed)
    save_dataset(given.out, dataset)
    about = dataset.about()
    if given.json:
        print_json(about | {"out": str(given.out)})
        return 0
    table = Table(
        title=f"{given.out}: {about['samples']} samples of {about['episodes']} episodes of "
        f"{about['game_name']}, {about['mean_length']:.1f} steps each"
    )
    names = list(dataset.game.action_names)
    for name in ("player", "samples", "reward", *names):
        table.add_column(name, justify="left" if name == "player" else "right")
    for name, found in about["kinds"].items():
        reward = "" if found["reward"] is None else f"{found['reward']:.3f}"
        table.add_row(
            name, str(found["samples"]), reward, *(str(found["actions"][a]) for a in names)
        )
    console_for_tables().print(table)
    return 0
