"""Training runs: the compiled block, the loop around it, phases, seatings, folders, checkpoints,
logs, and pretraining of models.
Not here: numerics of learning (`rl`, `algorithms`), tables and pictures (`reports`)."""
