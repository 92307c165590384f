"""Markov Snowdrift in plain Python: the written rules, one player and one drift at a time.

Moving and the shape of the board are those of the plain Stag Hunt; nothing comes from the compiled
games.
"""

from dataclasses import dataclass
from fractions import Fraction

from tests.games.reference import DIRECTIONS, STAY, Cell, Player, moved, open_cell, path_lengths

REMOVE = 5


@dataclass(frozen=True)
class Rules:
    """The parameters of the game; their defaults are part of the rules."""

    height: int = 8
    width: int = 8
    players: int = 4
    drifts: int = 6
    horizon: int = 50
    reward: float = 6
    cost: float = 4
    walls: int = 0
    view: int | None = None


@dataclass
class Board:
    """A situation; `drifts` are the cells of those not removed yet."""

    rules: Rules
    players: list[Player]
    drifts: set[Cell]
    walls: frozenset[Cell] = frozenset()
    time: int = 0


@dataclass
class Result:
    """What a step brought; `removals` holds the cell and the removers of each drift."""

    executed: list[int]
    rewards: list[float]
    truncated: bool
    removals: list[tuple[Cell, list[int]]]


def legal_actions(board: Board, seat: int) -> list[int]:
    here = board.players[seat].cell
    if not board.drifts:
        return [STAY]
    found = [move for move in DIRECTIONS if open_cell(board, moved(here, move))]
    return [*found, STAY, REMOVE] if here in board.drifts else [*found, STAY]


def step(board: Board, actions: list[int]) -> Result:
    """Plays one step; changes the board in place."""
    rules, seats = board.rules, range(board.rules.players)
    executed = [a if a in legal_actions(board, s) else STAY for s, a in enumerate(actions)]
    rewards = [0.0 for _ in seats]
    removals = []
    for seat in seats:
        player = board.players[seat]
        player.last = executed[seat]
        if executed[seat] in DIRECTIONS:
            player.cell = moved(player.cell, executed[seat])
    for cell in sorted(board.drifts):
        removers = [s for s in seats if executed[s] == REMOVE and board.players[s].cell == cell]
        if removers:
            removals.append((cell, removers))
            for seat in seats:
                rewards[seat] += rules.reward
            for seat in removers:
                rewards[seat] -= rules.cost / len(removers)
    for cell, _ in removals:
        board.drifts.remove(cell)
    board.time += 1
    return Result(executed, rewards, board.time >= rules.horizon and bool(board.drifts), removals)


def observe_planes(board: Board, seat: int) -> list[list[list[int]]]:
    """[row][column][plane]: players ego-first, walls, drifts."""
    rules = board.rules
    row, column = board.players[seat].cell
    rows, columns = range(rules.height), range(rules.width)
    if rules.view is not None:
        rows = range(row - rules.view, row + rules.view + 1)
        columns = range(column - rules.view, column + rules.view + 1)
    order = [(seat + k) % rules.players for k in range(rules.players)]
    return [
        [
            [int(board.players[s].cell == (r, c)) for s in order]
            + [int(not open_cell(board, (r, c))), int((r, c) in board.drifts)]
            for c in columns
        ]
        for r in rows
    ]


def observe_features(board: Board, seat: int) -> list[float]:
    numbers: list[float] = []
    for k in range(board.rules.players):
        other = board.players[(seat + k) % board.rules.players]
        numbers += [float(other.last == action) for action in range(6)]
    return [*numbers, board.time / board.rules.horizon]


def even(choices: list[int]) -> list[Fraction]:
    return [Fraction(choices.count(a), len(choices)) for a in range(6)]


def nearest_drift(board: Board, seat: int) -> list[Fraction]:
    """ND: remove, else to a random one of the nearest drifts by a random shortening move."""
    here = board.players[seat].cell
    if not board.drifts:
        return even(legal_actions(board, seat))
    if here in board.drifts:
        return even([REMOVE])

    def length(start: Cell, end: Cell) -> int:
        return path_lengths(board.rules.height, board.rules.width, board.walls, start)[end]

    least = min(length(here, cell) for cell in board.drifts)
    nearest = [cell for cell in board.drifts if length(here, cell) == least]
    chances = [Fraction(0)] * 6
    for cell in nearest:
        moves = [
            move
            for move in DIRECTIONS
            if open_cell(board, moved(here, move)) and length(moved(here, move), cell) < least
        ]
        for move in moves:
            chances[move] += Fraction(1, len(nearest) * len(moves))
    return chances


def exploiter(board: Board, seat: int) -> list[Fraction]:
    return even([a for a in legal_actions(board, seat) if a != REMOVE])
