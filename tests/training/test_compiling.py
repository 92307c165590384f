"""A block of every learner is one program that any device can run.

No GPU is needed: blocks are traced and exported for CUDA, which gives StableHLO and no more. That
they compile and run there is not shown.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from coplay.algorithms.registry import LEARNERS
from coplay.api.training import make_config
from coplay.core.game import Game
from coplay.training import trainer
from coplay.training.block import make_block, state_shapes
from coplay.training.compiling import block_program
from coplay.training.config import TrainConfig
from coplay.training.devices import Devices
from coplay.training.phases import Phase, plan_phases
from coplay.training.run import make_game_of
from coplay.training.trainer import Trainer, Watcher

SMALL = {"copies": 8, "rollout": 4, "steps": 64, "block": 2, "seeds": 2}
OWN: dict[str, dict[str, Any]] = {
    "hop": {"search.simulations": 2},
    "hop-plus": {
        "search.simulations": 2,
        "recordings.samples": 0,
        "models.learn_opponents": True,
        "models.chunk_length": 4,
    },
}


def planned(player: str) -> tuple[TrainConfig, Game, Phase]:
    config = make_config(
        player, "stag-hunt", {"height": 3, "width": 3}, SMALL | OWN.get(player, {})
    )
    game = make_game_of(config)
    return config, game, plan_phases(config, game)[0]


def arguments(config: TrainConfig, game: Game, phase: Phase) -> tuple[Any, ...]:
    """What a block is given; of the state the shapes only."""
    keys = jax.random.split(jax.random.key(0), config.run.seeds)
    number = np.int32(0)
    state = state_shapes(config, game, phase)
    return (game, phase.others, state, keys, number, number, number, np.arange(game.seats))


def operations(jaxpr: Any) -> Iterator[str]:
    """Names of all operations, those of loops and branches among them."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for value in equation.params.values():
            for part in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(part, "jaxpr", part)
                if hasattr(inner, "eqns"):
                    yield from operations(inner)


@pytest.mark.slow
@pytest.mark.parametrize("player", sorted(LEARNERS))
def test_a_block_is_one_program_for_gpus_too(player: str) -> None:
    config, game, phase = planned(player)
    program = block_program(Devices(config.run, game), config, phase)
    given = arguments(config, game, phase)
    called = {name for name in operations(program.trace(*given).jaxpr) if "callback" in name}
    assert not called, "a program that calls back into Python waits for it in every step"

    exported = export.export(program, platforms=["cuda"])(*given)
    text = exported.mlir_module()
    assert not re.search(r"tensor<[^>]*\?", text), "a shape that depends on data"
    public = next(line for line in text.splitlines() if "func.func public @main" in line)
    given_up = public.count("tf.aliasing_output") + public.count("jax.buffer_donor")
    assert given_up == len(jax.tree.leaves(given[2])), "memory of the state is not taken over"


@pytest.mark.slow
def test_a_block_is_called_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def never_compiled(devices: Devices, config: TrainConfig, phase: Phase, *rest: Any) -> Any:
        block = make_block(phase, config.run.rollout, config.run.block)

        def run(*given: Any) -> Any:
            calls.append(given)
            shapes = jax.eval_shape(block, *given)[1]
            return given[2], jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)

        return run

    monkeypatch.setattr(trainer, "compile_block", never_compiled)
    for name in ("_evaluate_if_due", "_save"):
        monkeypatch.setattr(Trainer, name, lambda self: None)
    config = make_config("ppo", "stag-hunt", {"height": 3, "width": 3}, SMALL | {"steps": 320})
    training = Trainer(config, tmp_path / "run", Watcher())
    training._run_phase()
    training.logs.close(None)
    # 320 steps are 10 iterations of 8 copies x 4 steps, two to a block.
    assert len(calls) == 5
