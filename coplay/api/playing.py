"""Playing from Python: matches, cross-play, episodes step by step."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from coplay.algorithms.registry import entry_of
from coplay.api.arguments import Entry, seating_text
from coplay.core.compilation import use_cache
from coplay.core.config import PositiveInt, Seed, checked
from coplay.core.game import Game
from coplay.core.group import Group, group_players
from coplay.evaluation.best_plan import best_plans
from coplay.evaluation.cross_play import cross_play as cross_play_of
from coplay.evaluation.exploitability import exploitability as exploitability_of
from coplay.evaluation.schelling import schelling as schelling_of
from coplay.games.registry import make_game
from coplay.matches.episodes import Step, play_steps
from coplay.matches.match import play_match
from coplay.reports.replay import Order, Replay, make_replay
from coplay.training.players import make_player
from coplay.training.seating import split_seating


def play(
    game: Game | str,
    seating: str | Sequence[Entry],
    episodes: int = 1000,
    seed: int = 0,
    copies: int | None = None,
    greedy: bool = False,
    exploitability: bool = False,
) -> dict[str, Any]:
    """Let players play whole episodes; the result is what `coplay play --json` prints.

    seating: one player per seat: text such as "ns,ns,runs/ppo,random", or a list of such entries
        and of players.
    copies: how many game copies the episodes are spread over; each copy plays its episodes one
        after the other, which matters for players that remember.
    greedy: frozen players take their most probable action.
    exploitability: of a matrix game, also what the policies are worth, and what a best answer to
        them would bring: in a round, and over whole episodes beside a scripted player.

        coplay.play("stag-hunt", ["runs/ppo", "ns", MyPlayer(), "random"], episodes=2000)
    """
    use_cache()
    _check(episodes, seed, copies)
    game = make_game(game) if isinstance(game, str) else game
    entries, groups = _seated(game, seating, greedy)
    exact = {}
    if exploitability:
        exact = {"policies": exploitability_of(game, groups, min(episodes, 64), seed=seed)}
        exact["policies"]["best_plan"] = best_plans(game, entries)
    return play_match(game, groups, episodes, seed, copies).record(game.name, entries) | exact


def cross_play(
    game: Game | str,
    players: Sequence[Entry],
    episodes: int = 1000,
    seed: int = 0,
    copies: int | None = None,
    greedy: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Every player among every other; the result is what `coplay play --cross … --json` prints.

    players: runs (each of their seeds is one player), other entries of a seating, or players. say:
        is told what is played.

        coplay.cross_play("stag-hunt", ["runs/ppo", "runs/hop", "ns"])
    """
    use_cache()
    _check(episodes, seed, copies)
    game = make_game(game) if isinstance(game, str) else game
    entries = [entry_of(player) for player in players]
    return cross_play_of(game, entries, episodes, seed, copies, greedy, say).as_json()


def schelling(
    game: Game | str,
    cooperator: Entry = "",
    defector: Entry = "",
    episodes: int = 1000,
    seed: int = 0,
    copies: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """What cooperating and defecting bring to a player, by how many others cooperate; the result is
    what `coplay schelling --json` prints.

    cooperator, defector: players, or entries of a seating; default: the game's first and second
        scripted player. say: is told what is played.

        coplay.schelling("cleanup")["defect"]  # by the number of others that cooperate
    """
    use_cache()
    _check(episodes, seed, copies)
    game = make_game(game) if isinstance(game, str) else game
    names = entry_of(cooperator), entry_of(defector)
    return schelling_of(game, *names, episodes, seed, copies, say).as_json()


def episodes(
    game: Game | str,
    seating: str | Sequence[Entry],
    episodes: int = 1,
    seed: int = 0,
    greedy: bool = False,
) -> Iterator[Step]:
    """Play episodes one after the other and give every step: the state, what each seat sees, the
    probabilities of its actions, actions, rewards, and what each player believes and predicts; see
    `coplay.matches.episodes.Step`.

    The other arguments are those of `coplay.play`.

        for step in coplay.episodes("stag-hunt", "runs/hop,ns,ns,nh"):
            print(step.time, step.actions, step.rewards)
            if step.insights[0] is not None:
                print(step.insights[0].goal)
    """
    use_cache()
    _check(episodes, seed)
    game = make_game(game) if isinstance(game, str) else game
    _, groups = _seated(game, seating, greedy)
    return play_steps(game, groups, episodes, seed)


def replay(
    game: Game | str,
    seating: str | Sequence[Entry],
    episodes: int = 1,
    seed: int = 0,
    greedy: bool = False,
    order: Order = "played",
    full_trees: bool = False,
) -> Replay:
    """Play episodes and record what each player saw, believed, predicted, planned and did.

    The replay shows itself in a notebook. `write` makes a page, JSON lines or a film of it.

    order: "surprising" puts the episodes first in which predictions were worst. full_trees: keep
        all nodes of the search trees, instead of those of two visits and more down to depth 4.
    The other arguments are those of `coplay.play`.

        coplay.replay("stag-hunt", "runs/hop,ns,ns,nh").write("replay.html")
    """
    use_cache()
    _check(episodes, seed)
    checked(Order, order, "order")
    game = make_game(game) if isinstance(game, str) else game
    entries = split_seating(seating_text(seating), game)
    players = [make_player(entry, game, seat, greedy) for seat, entry in enumerate(entries)]
    return make_replay(game, players, entries, episodes, seed, full_trees, order)


def _seated(
    game: Game, seating: str | Sequence[Entry], greedy: bool
) -> tuple[list[str], tuple[Group, ...]]:
    """The entries of a seating, and its players in groups."""
    entries = split_seating(seating_text(seating), game)
    players = [make_player(entry, game, seat, greedy) for seat, entry in enumerate(entries)]
    return entries, group_players(players)


def _check(episodes: int, seed: int, copies: int | None = None) -> None:
    checked(PositiveInt, episodes, "episodes")
    checked(Seed, seed, "seed")
    checked(PositiveInt | None, copies, "copies")
