"""Players made from the entries of a seating: scripted, or frozen from a run."""

from coplay.algorithms.registry import LEARNERS, PLAYERS
from coplay.algorithms.scripted import Mix, Random, Scripted, Switcher
from coplay.core.errors import UserError, own, unknown
from coplay.core.game import Game
from coplay.core.player import Player
from coplay.matches.stepped_player import SteppedPlayer
from coplay.training.partner_packs import is_pack, load_partner
from coplay.training.partner_responses import is_response, load_response
from coplay.training.run import load_player
from coplay.training.seating import is_learner, is_run


def make_player(entry: str, game: Game, seat: int = 0, greedy: bool = False) -> Player:
    """A player that does not learn, from an entry of a seating: scripted, registered, or frozen
    from a run.

    seat: the seat whose player is meant, where an entry does not say. greedy: a frozen player takes
        its most probable action instead of sampling.

        game = coplay.make_game("stag-hunt")
        hunter = coplay.make_player("ns", game)
        trained = coplay.make_player("runs/ppo@seat=2", game, greedy=True)
    """
    name, *options = entry.split(":")
    if name == "random" and not options:
        return Random()
    if name in PLAYERS and not options:
        if name in game.scripted:
            raise UserError(
                f"{game.name} has a scripted player '{name}' of its own: register yours by another "
                "name"
            )
        return PLAYERS[name]
    if name in game.scripted and not options:
        return Scripted(game.scripted[name])
    if name == "switcher":
        return _switcher(entry, options, game, seat, greedy)
    if name == "mix":
        if len(options) < 2:
            raise UserError(f"'{entry}': expected mix:PLAYER:PLAYER…, at least two players")
        return Mix(tuple(make_player(option, game, seat, greedy) for option in options))
    if is_response(entry):
        return load_response(entry, game, greedy)
    if is_pack(entry):
        return load_partner(entry, game)
    if is_run(entry):
        return load_player(entry, game, seat, greedy)
    if is_learner(entry):
        raise UserError(
            f"'{entry}' learns, so it can only sit in a training run (coplay train {name} …); "
            "to play with a trained one give the path of its run"
        )
    valid = ["random", *game.scripted, "switcher:A:B:step=N", "switcher:A:B:episode=N", "mix:A:B…"]
    error = unknown("player", entry, [*valid, *PLAYERS, *LEARNERS])
    raise UserError(f"{error}, or the path of a run; {own('player')}")


def step_player(
    entry: str | Player, game: Game, seat: int = 0, greedy: bool = False, seed: int = 0
) -> SteppedPlayer:
    """A player to be asked observation by observation, with its memory; see `SteppedPlayer`.

    entry: of a seating, or a player. seat: where it sits. seed: of what it draws.

        player = coplay.step_player("runs/ppo@best", coplay.make_game("stag-hunt"))
        action = player.act(observation)
    """
    player = make_player(entry, game, seat, greedy) if isinstance(entry, str) else entry
    return SteppedPlayer(player, game, seat, seed)


def _switcher(entry: str, options: list[str], game: Game, seat: int, greedy: bool) -> Switcher:
    form = "switcher:FIRST:SECOND:step=N or switcher:FIRST:SECOND:episode=N, N at least 1"
    if len(options) != 3:
        raise UserError(f"'{entry}': expected {form}")
    first, second, rule = options
    unit, _, number = rule.partition("=")
    if unit not in ("step", "episode") or not number.isdigit() or int(number) < 1:
        raise UserError(f"'{rule}' in '{entry}': expected {form}")
    return Switcher(
        make_player(first, game, seat, greedy),
        make_player(second, game, seat, greedy),
        "step" if unit == "step" else "episode",
        int(number),
    )
