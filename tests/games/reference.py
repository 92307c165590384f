"""Markov Stag Hunt in plain Python: the written rules, one player and one cell at a time.

Nothing here is fast. It shares no code, no array layout and no trick with the compiled game, so
that the two can only agree where both follow the rules.
"""

from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

UP, DOWN, LEFT, RIGHT, STAY, HUNT_STAG, HUNT_HARE = range(7)
DIRECTIONS = {UP: (-1, 0), DOWN: (1, 0), LEFT: (0, -1), RIGHT: (0, 1)}

Cell = tuple[int, int]  # (row, column)


@dataclass(frozen=True)
class Rules:
    """The parameters of the game; their defaults are part of the rules."""

    height: int = 4
    width: int = 4
    players: int = 4
    stags: int = 1
    hares: int = 4
    horizon: int = 35
    stag_reward: float = 10
    hare_reward: float = 1
    time_reward: float = 0
    walls: int = 0
    strength: tuple[float, ...] = ()
    end_after_first_hunt: int | None = None
    view: int | None = None

    def strength_of(self, seat: int) -> float:
        return self.strength[seat] if self.strength else 1


@dataclass
class Player:
    """One player; `cell` is where it stands, or stood when it left."""

    cell: Cell
    in_game: bool = True
    last: int = STAY


@dataclass
class Board:
    """A situation. `stags` and `hares` are the cells of those not caught yet."""

    rules: Rules
    players: list[Player]
    stags: set[Cell]
    hares: set[Cell]
    walls: frozenset[Cell] = frozenset()
    time: int = 0
    first_hunt_at: int | None = None


@dataclass
class Result:
    """What a step brought; `catches` lists (kind, number of hunters) for each prey caught."""

    executed: list[int]
    rewards: list[float]
    left: list[bool]
    truncated: bool
    catches: list[tuple[str, int]] = field(default_factory=list)

    def over(self, board: Board) -> bool:
        return self.truncated or not any(player.in_game for player in board.players)


def open_cell(board: Board, cell: Cell) -> bool:
    """Whether a player can stand there: on the board and no wall."""
    row, column = cell
    on_board = 0 <= row < board.rules.height and 0 <= column < board.rules.width
    return on_board and cell not in board.walls


def moved(cell: Cell, direction: int) -> Cell:
    down, right = DIRECTIONS[direction]
    return cell[0] + down, cell[1] + right


def legal_actions(board: Board, seat: int) -> list[int]:
    """In ascending order; for a player that left, only to stay."""
    player = board.players[seat]
    if not player.in_game:
        return [STAY]
    found = [move for move in DIRECTIONS if open_cell(board, moved(player.cell, move))]
    found.append(STAY)
    if player.cell in board.stags:
        found.append(HUNT_STAG)
    if player.cell in board.hares:
        found.append(HUNT_HARE)
    return found


def step(board: Board, actions: list[int]) -> Result:
    """Plays one step; changes the board in place."""
    rules = board.rules
    seats = range(rules.players)
    # What is legal is decided for everybody before anything happens.
    executed = [a if a in legal_actions(board, s) else STAY for s, a in enumerate(actions)]
    rewards = [float(rules.time_reward) if board.players[s].in_game else 0.0 for s in seats]
    left = [False for _ in seats]
    catches = []

    for seat in seats:
        player = board.players[seat]
        if player.in_game:
            player.last = executed[seat]
            if executed[seat] in DIRECTIONS:
                player.cell = moved(player.cell, executed[seat])

    hunts = [
        ("stag", board.stags, HUNT_STAG, 2, rules.stag_reward),
        ("hare", board.hares, HUNT_HARE, 1, rules.hare_reward),
    ]
    for kind, prey, hunt, needed, worth in hunts:
        for cell in sorted(prey):
            hunters = [
                seat
                for seat in seats
                if board.players[seat].in_game
                and executed[seat] == hunt
                and board.players[seat].cell == cell
            ]
            if len(hunters) < needed:
                continue
            catches.append((kind, len(hunters)))
            prey.remove(cell)
            total = sum(rules.strength_of(seat) for seat in hunters)
            for seat in hunters:
                if total > 0:
                    rewards[seat] += worth * rules.strength_of(seat) / total
                else:
                    rewards[seat] += worth / len(hunters)
                left[seat] = True

    for seat in seats:
        if left[seat]:
            board.players[seat].in_game = False
    board.time += 1
    if catches and board.first_hunt_at is None:
        board.first_hunt_at = board.time

    cut = board.time >= rules.horizon
    if rules.end_after_first_hunt is not None and board.first_hunt_at is not None:
        cut = cut or board.time - board.first_hunt_at >= rules.end_after_first_hunt
    somebody = any(player.in_game for player in board.players)
    return Result(executed, rewards, left, cut and somebody, catches)


# --- observation -----------------------------------------------------------------------------


def ego_order(board: Board, seat: int) -> list[int]:
    """The seat itself, then the next ones round the table."""
    return [(seat + k) % board.rules.players for k in range(board.rules.players)]


def observe_planes(board: Board, seat: int) -> list[list[list[int]]]:
    """[row][column][plane]: players ego-first, walls, stags, hares."""
    rules = board.rules
    centre_row, centre_column = board.players[seat].cell
    if rules.view is None:
        rows, columns = list(range(rules.height)), list(range(rules.width))
    else:
        rows = list(range(centre_row - rules.view, centre_row + rules.view + 1))
        columns = list(range(centre_column - rules.view, centre_column + rules.view + 1))
    players = [board.players[s] for s in ego_order(board, seat)]
    standing = [player.cell if player.in_game else None for player in players]
    seen = []
    for row in rows:
        line = []
        for column in columns:
            cell = (row, column)
            here = [int(place == cell) for place in standing]
            here.append(int(not open_cell(board, cell)))
            here.append(int(cell in board.stags))
            here.append(int(cell in board.hares))
            line.append(here)
        seen.append(line)
    return seen


def observe_features(board: Board, seat: int) -> list[float]:
    """The last executed action of every player, ego-first and one-hot, then the time."""
    numbers: list[float] = []
    for other in ego_order(board, seat):
        numbers += [float(board.players[other].last == action) for action in range(7)]
    return [*numbers, board.time / board.rules.horizon]


# --- scripted players ------------------------------------------------------------------------


@cache
def path_lengths(height: int, width: int, walls: frozenset[Cell], start: Cell) -> dict[Cell, int]:
    """Steps from a cell to every cell that can be reached, by breadth-first search."""
    lengths = {start: 0}
    queue = deque([start])
    while queue:
        row, column = queue.popleft()
        for cell in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
            inside = 0 <= cell[0] < height and 0 <= cell[1] < width
            if inside and cell not in walls and cell not in lengths:
                lengths[cell] = lengths[(row, column)] + 1
                queue.append(cell)
    return lengths


def random_player(board: Board, seat: int) -> list[Fraction]:
    """[action] uniform over the legal actions."""
    legal = legal_actions(board, seat)
    return [Fraction(1, len(legal)) if a in legal else Fraction(0) for a in range(7)]


def towards(board: Board, seat: int, prey: set[Cell], hunt: int) -> list[Fraction]:
    """[action] on prey hunt it; else to a random one of the nearest by a random shortening move."""
    chances = [Fraction(0)] * 7
    here = board.players[seat].cell
    if here in prey:
        chances[hunt] = Fraction(1)
        return chances

    def length(start: Cell, end: Cell) -> int:
        return path_lengths(board.rules.height, board.rules.width, board.walls, start)[end]

    least = min(length(here, cell) for cell in prey)
    nearest = [cell for cell in prey if length(here, cell) == least]
    for cell in nearest:
        moves = [
            move
            for move in DIRECTIONS
            if open_cell(board, moved(here, move)) and length(moved(here, move), cell) < least
        ]
        for move in moves:
            chances[move] += Fraction(1, len(nearest) * len(moves))
    return chances


def nearest_hare(board: Board, seat: int) -> list[Fraction]:
    """NH; a player that left can only stay."""
    if not board.hares or not board.players[seat].in_game:
        return random_player(board, seat)
    return towards(board, seat, board.hares, HUNT_HARE)


def nearest_stag(board: Board, seat: int) -> list[Fraction]:
    """NS; a player that left can only stay."""
    if not board.stags or not board.players[seat].in_game:
        return nearest_hare(board, seat)
    return towards(board, seat, board.stags, HUNT_STAG)
