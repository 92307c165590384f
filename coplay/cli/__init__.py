"""The command line: one module per command, each a typed dataclass that `--help` explains.
Not here: anything that Python cannot do too."""
