"""Throughput, measured beside its limits in one run.
Not here: tests; no test measures time."""
