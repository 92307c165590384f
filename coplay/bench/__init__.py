"""Throughput, measured beside its limits in one run."""
