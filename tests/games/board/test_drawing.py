"""Pictures and text of boards: what stands on a cell shows there, and only there."""

import jax
import numpy as np
import pytest

from coplay.games.drawing import SEAT_COLOURS, seat_colour
from coplay.games.stag_hunt import StagHunt, StagHuntConfig, StagHuntState

CELL = 48
MARGIN = CELL // 6


@pytest.fixture(scope="module")
def game() -> StagHunt:
    return StagHunt(StagHuntConfig(height=4, width=5, players=4, stags=1, hares=2))


def make_state(game: StagHunt, cell: list[int], prey: list[int]) -> StagHuntState:
    state = game.reset(jax.random.key(0))
    return state._replace(cell=np.array(cell, np.int16), prey=np.array(prey, np.int16))


def patch(picture: np.ndarray, game: StagHunt, cell: int) -> np.ndarray:
    """The pixels of one cell."""
    row, column = divmod(cell, game.config.width)
    top, left = MARGIN + row * CELL, MARGIN + column * CELL
    return picture[top : top + CELL, left : left + CELL]


def changed(game: StagHunt, one: StagHuntState, other: StagHuntState) -> set[int]:
    """The cells where two states look different."""
    first, second = game.draw(one, CELL), game.draw(other, CELL)
    assert first.shape == second.shape
    cells = range(game.config.height * game.config.width)
    return {c for c in cells if not np.array_equal(patch(first, game, c), patch(second, game, c))}


def strip(picture: np.ndarray, game: StagHunt) -> np.ndarray:
    """What is beneath the board."""
    return picture[MARGIN + game.config.height * CELL + 2 :]


def has_colour(pixels: np.ndarray, colour: str, at_least: int = 20) -> bool:
    rgb = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return int((pixels == rgb).all(-1).sum()) >= at_least


def test_picture_is_uint8_rgb_and_scales_with_the_cell(game: StagHunt) -> None:
    state = make_state(game, [0, 1, 2, 3], [10, 11, 12])
    small, large = game.draw(state, 24), game.draw(state, 48)
    assert small.dtype == np.uint8
    assert small.ndim == 3 and small.shape[2] == 3
    assert large.shape[1] == 2 * small.shape[1] == 5 * 48 + 2 * MARGIN


def test_a_player_shows_in_its_colour_on_its_cell_only(game: StagHunt) -> None:
    here = make_state(game, [0, 6, 7, 8], [10, 11, 12])
    there = make_state(game, [3, 6, 7, 8], [10, 11, 12])
    assert changed(game, here, there) == {0, 3}
    picture = game.draw(here, CELL)
    for seat, cell in enumerate([0, 6, 7, 8]):
        assert has_colour(patch(picture, game, cell), SEAT_COLOURS[seat])
        assert not has_colour(patch(picture, game, 4), SEAT_COLOURS[seat], 1)


def test_prey_shows_on_its_cell_until_it_is_caught_and_kinds_look_different(game: StagHunt) -> None:
    state = make_state(game, [0, 1, 2, 3], [10, 14, 18])
    for prey, cell in enumerate([10, 14, 18]):
        caught = state._replace(prey_alive=np.arange(3) != prey)
        assert changed(game, state, caught) == {cell}
    picture = game.draw(state, CELL)
    stag, hare, other_hare = (patch(picture, game, cell) for cell in (10, 14, 18))
    assert np.array_equal(hare, other_hare)
    assert not np.array_equal(stag, hare)


def test_several_players_and_prey_on_one_cell_are_all_visible(game: StagHunt) -> None:
    crowd = make_state(game, [7, 7, 7, 7], [7, 11, 12])
    pixels = patch(game.draw(crowd, CELL), game, 7)
    for seat in range(4):
        assert has_colour(pixels, SEAT_COLOURS[seat], 10)
    without_stag = crowd._replace(prey_alive=np.array([False, True, True]))
    assert changed(game, crowd, without_stag) == {7}


def test_players_that_left_are_off_the_board_and_in_the_strip(game: StagHunt) -> None:
    state = make_state(game, [0, 6, 7, 8], [10, 11, 12])
    left = state._replace(alive=np.array([True, False, True, True]))
    assert changed(game, state, left) == {6}
    picture = game.draw(left, CELL)
    empty = patch(picture, game, 4)
    assert np.array_equal(patch(picture, game, 6), empty)
    before, after = strip(game.draw(state, CELL), game), strip(picture, game)
    assert not np.array_equal(before, after)
    assert not has_colour(after, SEAT_COLOURS[1], 1), "dimmed, not in full colour"


def test_time_shows_beneath_the_board(game: StagHunt) -> None:
    state = make_state(game, [0, 6, 7, 8], [10, 11, 12])
    later = state._replace(time=np.int16(9))
    assert changed(game, state, later) == set()
    assert not np.array_equal(
        strip(game.draw(state, CELL), game), strip(game.draw(later, CELL), game)
    )


def test_walls_are_dark_where_they_are() -> None:
    game = StagHunt(StagHuntConfig(height=6, width=6, walls=2, wall_maps=3))
    for board in range(3):
        state = game.reset(jax.random.key(board))._replace(board=np.int16(board))
        picture = game.draw(state._replace(alive=np.zeros(4, bool)), CELL)
        walls = np.asarray(game.maps.walls)[board]
        for cell in range(36):
            # Corners of a cell are free of what stands on it.
            corner = patch(picture, game, cell)[2:6, 2:6].mean()
            assert (corner < 100) == walls[cell]
        assert game.text(state).count("#") == 5 * walls.sum()


def test_pictures_of_an_episode_have_one_size_for_any_number_of_seats() -> None:
    for players, width in ((1, 12), (6, 2), (12, 8)):
        game = StagHunt(StagHuntConfig(height=12, width=width, players=players))
        state = game.reset(jax.random.key(0))
        gone = state._replace(alive=np.zeros(players, bool), time=np.int16(35))
        assert game.draw(state, 20).shape == game.draw(gone, 20).shape


def test_text_shows_players_prey_and_who_left(game: StagHunt) -> None:
    state = make_state(game, [7, 7, 0, 19], [7, 11, 12])._replace(
        alive=np.array([True, True, True, False]), time=np.int16(3)
    )
    lines = game.text(state).splitlines()
    cells = [line.strip("│ ").split() for line in lines[1:5]]
    assert cells == [
        ["2", "·", "·", "·", "·"],
        ["·", "·", "S01", "·", "·"],
        ["·", "h", "h", "·", "·"],
        ["·", "·", "·", "·", "·"],
    ]
    assert lines[-1] == "t 3/35   left: 3"
    assert len({len(line) for line in lines[:-1]}) == 1


def test_text_tells_two_digit_seats_apart() -> None:
    game = StagHunt(StagHuntConfig(players=12, height=5, hares=1))
    state = game.reset(jax.random.key(0))
    state = state._replace(
        cell=np.array([0, 0, *[9] * 8, 0, 1], np.int16), prey_alive=np.zeros(2, bool)
    )
    first = game.text(state).splitlines()[1].strip("│ ").split()
    assert first == ["0,1,10", "11", "·", "·"]


def test_seat_colours_differ_for_many_seats() -> None:
    assert [seat_colour(seat) for seat in range(len(SEAT_COLOURS))] == list(SEAT_COLOURS)
    assert len({seat_colour(seat) for seat in range(40)}) == 40


@pytest.mark.slow
def test_a_layout_places_everything_in_its_cell() -> None:
    game = StagHunt(StagHuntConfig(height=4, width=5, players=4, stags=1, hares=2, walls=2))
    state = make_state(game, cell=[0, 7, 7, 19], prey=[7, 0, 3])
    state = state._replace(alive=np.array([True, True, True, False]))
    layout = game.layout(state)
    assert (layout.width, layout.height, layout.grid) == (5, 4, True)
    found = {(look.__name__, int(y) * 5 + int(x)) for look, x, y, _ in layout.things}  # type: ignore
    assert found == {("stag_icon", 7), ("hare_icon", 0), ("hare_icon", 3)}
    places = layout.players
    assert places[3] is None and places[1] is not None and places[2] is not None
    assert [int(p[1]) * 5 + int(p[0]) for p in places[:3] if p is not None] == [0, 7, 7]
    # The two on one cell do not overlap.
    assert abs(places[1][0] - places[2][0]) >= places[1][2] + places[2][2]
    walls = np.flatnonzero(np.asarray(game.maps.walls)[int(state.board)])
    assert sorted(y * 5 + x for x, y in layout.walls) == walls.tolist()
