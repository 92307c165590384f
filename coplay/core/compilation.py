"""How programs are compiled: JAX's persistent cache, on by default in the user's cache folder."""

import os
from pathlib import Path

import jax

from coplay.core.errors import UserError

QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""Compiler options for programs that run a few times only: optimising takes most of the time of
compiling."""


def check_backend() -> None:
    """An error if JAX is set so that nothing can be computed here. Of several devices the first is
    used."""
    if jax.config.values.get("jax_enable_x64"):
        raise UserError(
            "JAX computes in 64 bits (JAX_ENABLE_X64), coplay in 32: set JAX_ENABLE_X64=0, or "
            "jax.config.update('jax_enable_x64', False)"
        )
    try:
        jax.devices()
    except RuntimeError as error:
        platforms = jax.config.values.get("jax_platforms")
        reason = str(error).splitlines()[0].partition(" (set JAX")[0]
        raise UserError(
            f"JAX has no device for JAX_PLATFORMS={platforms}: {reason}; leave it unset, or set it "
            "to cpu"
        ) from error


def use_cache() -> None:
    """Keep compiled programs between processes; a second start of the same work is much quicker.
    Before any work, so it also refuses a setting of JAX that cannot do any (`check_backend`).

    A cache folder that was set already (by the environment or in code) stays as it is;
    `COPLAY_CACHE=off` switches ours off.
    """
    check_backend()
    if os.environ.get("COPLAY_CACHE") == "off" or jax.config.values.get(
        "jax_compilation_cache_dir"
    ):
        return
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    jax.config.update("jax_compilation_cache_dir", str(home / "coplay" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
