"""One file per game, the table of games by name, and `check_game`.
What board games share is in `board`, games of other libraries are in `adapters`.
Not here: players that learn. This file imports nothing: worker processes must start quickly."""
