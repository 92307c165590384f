"""Environments in worker processes. Nothing here imports JAX: workers must start quickly."""
