"""Protocols and what they speak of: game, goals, player, group, trajectory, learner; configuration,
errors, files. Everything else builds on it.
Not here: any game, network, algorithm or file format of a run."""
