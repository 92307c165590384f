"""One run over several devices: every device trains its share of the seeds.

A seed's program is the same on one device and on several, so its numbers are the same bits.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec

from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.games.adapters.worker_game import WorkerGame
from coplay.training.config import RunConfig

T = TypeVar("T")
SEED = "seed"  # the axis of the devices


class Devices:
    """The devices of a run. count: how many; with one nothing is placed anywhere."""

    def __init__(self, run: RunConfig, game: Game):
        self.count = run.devices
        if self.count == 1:
            return
        if isinstance(game, WorkerGame):
            raise UserError(f"{game.name} is stepped by worker processes: leave out --devices")
        if run.seeds % self.count:
            near = max(self.count, run.seeds // self.count * self.count)
            raise UserError(
                f"--devices {self.count} share the seeds evenly: {run.seeds} seeds do not divide; "
                f"give --seeds {near} or {near + self.count}"
            )
        there = jax.local_devices()
        if self.count > len(there):
            raise UserError(
                f"--devices {self.count}: JAX has {len(there)} here; a CPU has as many as the "
                "variable XLA_FLAGS says, by xla_force_host_platform_device_count"
            )
        self.mesh = Mesh(there[: self.count], (SEED,))

    def spread(self, block: Callable[..., Any]) -> Callable[..., Any]:
        """A block of `make_block` in which every device has its share of the states and keys
        [seed, ...], and all else whole."""
        if self.count == 1:
            return block
        whole, mine = Spec(), Spec(SEED)
        return jax.shard_map(
            block,
            mesh=self.mesh,
            in_specs=(whole, whole, mine, mine, whole, whole, whole, whole),
            out_specs=(mine, Spec(None, SEED)),
            check_vma=False,
        )

    def placed(self, game: Any, others: Any, state: Any, keys: Any, *rest: Any) -> tuple[Any, ...]:
        """The arguments of a block where they belong."""
        if self.count == 1:
            return (game, others, state, keys, *rest)
        whole, mine = (NamedSharding(self.mesh, spec) for spec in (Spec(), Spec(SEED)))
        shared = jax.device_put((state, keys), mine)
        return (*jax.device_put((game, others), whole), *shared, *jax.device_put(rest, whole))

    def of_seed(self, tree: T, index: int) -> T:
        """The part of one seed, on the first device."""
        one = jax.tree.map(lambda x: x[index], tree)
        return one if self.count == 1 else jax.device_put(one, self.mesh.devices.flat[0])
