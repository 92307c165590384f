"""How programs are compiled: JAX's persistent cache, on by default in the user's cache folder."""

import os
from pathlib import Path

import jax

QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""Compiler options for programs that run a few times only: optimising takes most of the time of
compiling."""


def use_cache() -> None:
    """Keep compiled programs between processes; a second start of the same work is much quicker.

    A cache folder that was set already (by the environment or in code) stays as it is;
    `COPLAY_CACHE=off` switches ours off.
    """
    if os.environ.get("COPLAY_CACHE") == "off" or jax.config.values.get(
        "jax_compilation_cache_dir"
    ):
        return
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    jax.config.update("jax_compilation_cache_dir", str(home / "coplay" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
