"""A player meets co-players it does not know: protocol, scores, suites, best responses.
Not here: how results are shown."""
