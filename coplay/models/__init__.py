"""Models of others and of the world: beliefs, opponent models, goal codes and their inference, the
world model, imagination.
Not here: how a player acts by them, and how a run trains them."""
