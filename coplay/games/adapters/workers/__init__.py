"""Environments in worker processes: seats, shared memory, workers, the pool.
Nothing here imports JAX: workers must start quickly."""
