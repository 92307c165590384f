"""The directions of moves on a grid, in the order of the actions of all board games."""

MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))  # up, down, left, right
