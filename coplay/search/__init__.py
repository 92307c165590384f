"""Tree search, a library inside the library: trees, selection rules, closed and open loop, the mctx
backend, and the planning model that a search steps.
Not here: learned models of others, and players."""
