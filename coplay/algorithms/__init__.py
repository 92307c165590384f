"""Players. Each learner is a package that reads from top to bottom: configuration, learner, player.
Scripted players are in `scripted`, the table of learners by name is `registry`.
Not here: runs, files, and who sits where."""
