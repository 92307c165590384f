"""The library from Python: all that the command line does, by the same functions. `coplay` itself
has the names; this package is where they are written."""
