"""Shared by all tests: shape checks of every annotated function, and one compilation cache."""

import os
import tempfile
from pathlib import Path

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
