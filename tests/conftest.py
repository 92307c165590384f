"""Shared by all tests: shape checks of every annotated function, and one compilation cache."""

import ctypes
import gc
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

# Programs compiled by one test process serve the others, also those that tests start.
CACHE = Path(tempfile.gettempdir()) / f"coplay-test-cache-{os.getuid()}"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
# Most of the time of the tests is compiling: what runs once need not be optimised.
QUICK = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICK}"

# Shapes in signatures are checked at run time in tests, and only there.
install_import_hook(
    [
        "coplay.algorithms",
        "coplay.core.game",
        "coplay.core.goals",
        "coplay.core.group",
        "coplay.core.learner",
        "coplay.core.numerics",
        "coplay.core.player",
        "coplay.core.trajectory",
        "coplay.games.board.board_game",
        "coplay.games.board.chance",
        "coplay.games.board.thing_goals",
        "coplay.games.board.walls",
        "coplay.games.cleanup",
        "coplay.games.coin_game",
        "coplay.games.foraging",
        "coplay.games.harvest",
        "coplay.games.matrix",
        "coplay.games.predator_prey",
        "coplay.games.snowdrift",
        "coplay.games.stag_hunt",
        "coplay.matches.dataset",
        "coplay.matches.match",
        "coplay.matches.partitioned_player",
        "coplay.matches.population",
        "coplay.matches.rollout",
        "coplay.matches.worker_rollout",
        "coplay.models",
        "coplay.nn",
        "coplay.rl",
        "coplay.search",
        "coplay.training",
        "coplay.evaluation.adaptation.protocol",
    ],
    "beartype.beartype",
)

MUCH = 3 * 2**30
"""Bytes of memory above which a test process forgets its compiled programs."""


@pytest.fixture(scope="module", autouse=True)
def programs_are_forgotten() -> Iterator[None]:
    """After a module, where memory is short: thousands of programs take gigabytes, and those that
    are needed again come from the cache on disk."""
    yield
    statm = Path("/proc/self/statm")
    if statm.exists() and int(statm.read_text().split()[1]) * os.sysconf("SC_PAGESIZE") > MUCH:
        import jax  # not before the settings above

        jax.clear_caches()
        gc.collect()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
        if trim:
            trim(0)
