"""What board games share: cells, walls, moves, ego views, pictures.
Not here: the rules of any one game."""
