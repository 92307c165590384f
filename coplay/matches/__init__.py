"""Playing and measuring: rollouts, matches, datasets of episodes, statistics, measures of models.
Training and evaluation both need it.
Not here: learning, and folders of runs."""
