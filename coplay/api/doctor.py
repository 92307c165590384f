"""What is installed on this machine, and whether it computes."""

import os
import platform
import re
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from coplay.core.archive import memory
from coplay.core.compilation import use_cache
from coplay.core.errors import UserError, how_to_install
from coplay.core.version import VERSION

NEEDED = (
    *("jax", "jaxlib", "equinox", "optax", "jaxtyping", "numpy", "tyro", "rich", "matplotlib"),
    *("tensorboardX", "pillow", "pyyaml"),
)
"""Packages without which nothing runs, those that decide what a run computes first."""

EXTRAS = {
    "mctx": "another backend of the search",
    "jaxmarl": "JaxMARL's games: MPE, SMAX, Overcooked, …",
    "pettingzoo": "environments of PettingZoo, in worker processes",
    "sweep": "Optuna for coplay sweep: --sampler optuna, --prune",
    "ray": "runs on a Ray cluster: --on ray",
    "tune": "coplay as a trainable of Ray Tune",
    "web": "coplay serve: runs and seats in the browser",
    "wandb": "metrics to Weights & Biases (--log wandb)",
    "mlflow": "metrics to MLflow (--log mlflow)",
    "hub": "coplay export and import: players on the Hugging Face hub",
    "docs": "building this site",
    "dev": "running the tests",
}
"""Optional parts -> what they are for."""


def doctor() -> dict[str, Any]:
    """Versions, devices, threads, memory, cache and optional parts.

    problem: why nothing can be computed here; None if it can. first_program: seconds from an empty
    function to its first result, compiled.

        found = coplay.doctor()
        print(found["devices"], found["optional"]["mctx"]["installed"])
    """
    problem, devices, seconds = None, [], None
    try:
        use_cache()
        kinds = [(one.platform, one.device_kind) for one in jax.devices()]
        devices = [name if name == kind else f"{name} {kind}" for name, kind in kinds]
        began = time.perf_counter()
        jax.jit(lambda x: jnp.sum(jnp.sin(x)))(jnp.arange(7.0)).block_until_ready()
        seconds = round(time.perf_counter() - began, 2)
    except (UserError, RuntimeError) as error:
        problem = str(error)
    return {
        "problem": problem,
        "coplay": VERSION,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {name: installed(name) for name in NEEDED},
        "devices": devices,
        "first_program": seconds,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "memory_gb": round(memory() / 2**30, 1),
        "settings": {
            name: os.environ[name]
            for name in ("XLA_FLAGS", "JAX_PLATFORMS", "COPLAY_CACHE", "OMP_NUM_THREADS")
            if name in os.environ
        },
        "cache": cache(),
        "optional": {name: optional(name) for name in EXTRAS},
    }


def installed(name: str) -> str | None:
    """The version of a package; None: it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def requirements(extra: str) -> list[str]:
    """The packages that an optional part needs, by coplay's own metadata."""
    try:
        stated = metadata.requires("coplay") or []
    except metadata.PackageNotFoundError:
        return []
    mine = [text for text in stated if re.search(rf"extra == ['\"]{extra}['\"]", text)]
    names = [re.match(r"[\w.-]+", text) for text in mine]
    return sorted({found.group() for found in names if found and found.group() != "coplay"})


def optional(extra: str) -> dict[str, Any]:
    """What an optional part is for, what of it is missing, and how to get it."""
    missing = [name for name in requirements(extra) if installed(name) is None]
    return {
        "for": EXTRAS[extra],
        "installed": not missing,
        "missing": missing,
        "get": how_to_install(extra) if missing else None,
    }


def cache() -> dict[str, Any]:
    """Where compiled programs are kept, how many, and their size; folder None: nowhere."""
    folder = jax.config.values.get("jax_compilation_cache_dir")
    if not folder:
        return {"folder": None, "programs": 0, "megabytes": 0.0}
    sizes = [path.stat().st_size for path in Path(folder).glob("*-cache")]
    return {
        "folder": str(folder),
        "programs": len(sizes),
        "megabytes": round(sum(sizes) / 1e6, 1),
    }


def print_doctor(found: dict[str, Any]) -> None:
    """A line for each thing; what is wrong first."""
    if found["problem"] is not None:
        print(f"nothing can be computed: {found['problem']}")
    else:
        where = ", ".join(found["devices"])
        print(f"it computes: {where}; a first program took {found['first_program']:.2f} s")
    print(f"coplay {found['coplay']}, Python {found['python']}, {found['system']}")
    versions = found["versions"].items()
    print(", ".join(f"{name} {version or 'missing'}" for name, version in versions))
    cores = "" if found["cores"] is None else f"{found['cores']} cores, "
    print(f"{cores}{found['memory_gb']} GB of memory")
    for name, value in found["settings"].items():
        print(f"set: {name}={value}")
    kept = found["cache"]
    if kept["folder"] is None:
        print("compiled programs are not kept (COPLAY_CACHE=off)")
    else:
        size = f"{kept['programs']} programs, {kept['megabytes']} MB"
        print(f"compiled programs: {kept['folder']} ({size})")
    print("optional parts:")
    for name, part in found["optional"].items():
        state = "installed" if part["installed"] else f"not installed: {part['get']}"
        print(f"  {name:12} {part['for']}: {state}")
