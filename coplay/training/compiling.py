"""A block of a run as a compiled program, for the devices and the memory that there are."""

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Int, Key

from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.training.block import Counts, TrainState, make_block, state_shapes
from coplay.training.config import RunConfig, TrainConfig
from coplay.training.devices import Devices
from coplay.training.learners import copies_unit
from coplay.training.memory import as_gb, needed, refuse_too_large, refuse_too_much
from coplay.training.phases import Phase


def block_program(devices: Devices, config: TrainConfig, phase: Phase) -> Any:
    """The block as `jax.jit` gives it: one program, which takes over the memory of the state."""
    run = config.run
    return jax.jit(devices.spread(make_block(phase, run.rollout, run.block)), donate_argnums=2)


def compile_block(
    devices: Devices,
    config: TrainConfig,
    phase: Phase,
    game: Game,
    state: TrainState,
    keys: Key[Array, " seed"],
    streams: Int[Array, " seat"],
    say: Callable[[str], None],
) -> Callable[..., tuple[TrainState, Counts]]:
    """The block of `make_block` for arguments like these. Of later arguments the state and the
    three numbers count. An error if it needs more memory than there is.

    state: may be shapes alone. say: is told how long it took and what it needs."""
    begun = time.perf_counter()
    run, number = config.run, np.int32(0)
    block = block_program(devices, config, phase)
    rest = (keys, number, number, number, streams)

    def need(other: RunConfig) -> int:
        if devices.count > 1:
            raise UserError("shapes are placed on one device only")
        shapes = state_shapes(dataclasses.replace(config, run=other), game, phase)
        return needed(block.lower(game, phase.others, shapes, *rest).compile())

    unit = math.lcm(*(copies_unit(one.config) for one in phase.learners))
    refuse_too_large(run, game, need, unit)
    program, run_block = devices.compile(block, game, phase.others, state, *rest)
    bytes_ = needed(program)
    refuse_too_much(bytes_, run, need, unit)
    told = f"; it needs {as_gb(bytes_)} of memory" if bytes_ else ""
    say(f"compiled in {time.perf_counter() - begun:.1f} s{told}")
    return lambda *given: run_block(given[2], *given[4:7])
