"""Wall maps: connected, of the pieces, and with path lengths."""

from collections import Counter

import numpy as np

from coplay.games.stag_hunt import StagHunt, StagHuntConfig
from tests.games import reference


def turns(piece: set[reference.Cell]) -> set[frozenset[reference.Cell]]:
    """A piece in all rotations and as seen in a mirror, each with its least row and column 0."""
    found = set()
    for _ in range(2):
        for _ in range(4):
            piece = {(column, -row) for row, column in piece}
            top, left = min(r for r, _ in piece), min(c for _, c in piece)
            found.add(frozenset((r - top, c - left) for r, c in piece))
        piece = {(row, -column) for row, column in piece}
    return found


KINDS = {
    "straight-3": turns({(0, 0), (1, 0), (2, 0)}),
    "L-3": turns({(0, 0), (1, 0), (1, 1)}),
    "straight-4": turns({(0, 0), (1, 0), (2, 0), (3, 0)}),
    "L-4": turns({(0, 0), (1, 0), (2, 0), (2, 1)}),
}
PIECES = [sorted(piece) for pieces in KINDS.values() for piece in pieces]


def made_of_pieces(walls: frozenset[reference.Cell], pieces: int) -> bool:
    """Whether the walls can be cut into at most so many pieces."""
    if not walls:
        return True
    if pieces == 0:
        return False
    row, column = min(walls)
    for piece in PIECES:
        # The least wall cell must be the least cell of the piece that covers it.
        covered = {(r + row - piece[0][0], c + column - piece[0][1]) for r, c in piece}
        if covered <= walls and made_of_pieces(walls - covered, pieces - 1):
            return True
    return False


def wall_cells(game: StagHunt) -> list[frozenset[reference.Cell]]:
    width = game.config.width
    maps = np.asarray(game.maps.walls)
    return [frozenset(divmod(int(c), width) for c in np.flatnonzero(walls)) for walls in maps]


def test_wall_maps_are_connected_and_made_of_the_pieces() -> None:
    game = StagHunt(StagHuntConfig(height=8, width=8, walls=5, wall_maps=200))
    maps = wall_cells(game)
    assert len(maps) == 200 and len(set(maps)) > 190
    assert max(len(walls) for walls in maps) > 15, "five pieces hardly ever fitted"
    for walls in maps:
        free = {(r, c) for r in range(8) for c in range(8)} - walls
        assert set(reference.path_lengths(8, 8, walls, min(free))) == free
        assert len(free) >= 9
        assert made_of_pieces(walls, 5)


def test_one_piece_is_of_each_kind_as_often_and_turned_every_way() -> None:
    game = StagHunt(StagHuntConfig(height=6, width=6, walls=1, wall_maps=2000))
    kinds: Counter = Counter()
    shapes = set()
    for walls in wall_cells(game):
        top, left = min(r for r, _ in walls), min(c for _, c in walls)
        shape = frozenset((r - top, c - left) for r, c in walls)
        (kind,) = [kind for kind, turned in KINDS.items() if shape in turned]
        kinds[kind] += 1
        shapes.add(shape)
    # A straight piece of four can cut nothing off on 6x6, nor can the others but in a corner: L-3
    # and L-4 can enclose one cell there, which is drawn again.
    assert all(400 < kinds[kind] < 600 for kind in KINDS), kinds
    assert len(shapes) == 2 + 4 + 2 + 4


def test_tight_boards_keep_enough_free_cells() -> None:
    config = StagHuntConfig(walls=3, wall_maps=50, hares=6, stags=2)
    maps = wall_cells(StagHunt(config))
    assert all(16 - len(walls) >= 12 for walls in maps)


def test_distances_are_path_lengths() -> None:
    game = StagHunt(StagHuntConfig(height=6, width=7, walls=4, wall_maps=8))
    distance = np.asarray(game.maps.distance)
    for index, walls in enumerate(wall_cells(game)):
        free = sorted({(r, c) for r in range(6) for c in range(7)} - walls)
        for begin in free:
            lengths = reference.path_lengths(6, 7, walls, begin)
            ours = [distance[index, begin[0] * 7 + begin[1], r * 7 + c] for r, c in free]
            assert ours == [lengths[cell] for cell in free]
