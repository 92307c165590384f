"""A game with people, made ready: players loaded, programs compiled, the dataset named."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.reading import shown_in_line
from coplay.matches.dataset import refuse_if_taken
from coplay.matches.played_dataset import GrowingDataset, check_keepable
from coplay.serve.playing import playing_app
from coplay.serve.references import HUMAN, measure_all
from coplay.serve.table import GuestTable
from coplay.training.players import make_player


def game_app(
    game: Game,
    game_name: str,
    game_config: Any,
    entries: Sequence[str],
    seed: int,
    out: Path | None,
    greedy: bool = False,
    allow_thinking: bool = True,
) -> Starlette:
    """The server of a game. entries: [seat] players, or `human`. out: folder of the dataset of what
    is played; None: nothing is kept."""
    kept = None
    if out is not None:
        refuse_if_taken(out)
        try:
            check_keepable(game)
        except UserError as error:
            raise UserError(f"{error}: add --no-record") from error
        kept = GrowingDataset(out, game_name, game_config, entries, seed)
    players = [
        None if entry == HUMAN else make_player(entry, game, seat, greedy)
        for seat, entry in enumerate(entries)
    ]
    labels = [shown_in_line(entry) for entry in entries]
    table = GuestTable(game, players, labels, seed, kept)
    table.warm_up()

    def measure(tell: Callable[[dict[str, Any]], None], stopped: Callable[[], bool]) -> None:
        measure_all(game, entries, greedy, tell, stopped)

    return playing_app(table, table.replays, allow_thinking, measure)
