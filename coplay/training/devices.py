"""One run over several devices: each trains its share of the seeds, or of the game copies.

Seeds exchange nothing: each device runs the program of one device, so a seed gives the same bits on
one and on several. (One program divided by `shard_map` rounded otherwise.) Game copies share one
set of parameters: JAX divides one program, each device plays and differentiates its own copies, and
the gradients are summed over all of them. The numbers then agree up to rounding.
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as Spec

from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.trajectory import COPY
from coplay.games.adapters.worker_game import WorkerGame
from coplay.training.block import TrainState
from coplay.training.config import RunConfig
from coplay.training.processes import meet

T = TypeVar("T")
SEED = "seed"  # the axis of devices that share the seeds; those that share copies have COPY
WHOLE = Spec()


class Devices:
    """The devices of a run. count: how many; with one nothing is placed anywhere. axis: what they
    share, the seeds if their number divides, else the game copies. several: they belong to several
    processes (`coplay.training.processes`), so no process has all arrays."""

    def __init__(self, run: RunConfig, game: Game):
        self.count = run.devices
        self.several = jax.process_count() > 1
        if self.count == 1:
            if self.several:
                raise UserError("several processes share the devices of a run: give --devices")
            return
        if isinstance(game, WorkerGame):
            raise UserError(f"{game.name} is stepped by worker processes: leave out --devices")
        self.axis = SEED if run.seeds % self.count == 0 else COPY
        if self.axis == COPY and run.copies % self.count:
            raise UserError(_does_not_divide(run))
        self.mesh = Mesh(_first(self.count), (self.axis,))

    def compile(self, jitted: Any, *given: Any) -> tuple[Any, Callable[..., Any]]:
        """A jitted block that was `spread`, for arguments like these: a compiled program, to be
        asked what it needs, and a function of a state and three numbers."""
        if self.count > 1 and self.axis == SEED:
            programs = self._one_each(jitted, *given)
            return programs[0].compiled, lambda state, *numbers: self._all(programs, state, numbers)
        game, others, state, keys, *rest = self.placed(*given)
        if self.count == 1:
            program = jitted.lower(game, others, state, keys, *rest).compile()
        else:
            with jax.set_mesh(self.mesh):  # parts of the program ask for it (`shared_out`)
                program = jitted.lower(game, others, state, keys, *rest).compile()
        streams = rest[-1]

        def run_block(state: TrainState, *numbers: Any) -> Any:
            meet()
            return program(game, others, self.placed_state(state), keys, *numbers, streams)

        return program, run_block

    def spread(self, block: Callable[..., Any]) -> Callable[..., Any]:
        """A block of `make_block` whose state stays where it belongs; JAX divides the work
        accordingly. Devices that share the seeds run it as it is."""
        if self.count == 1 or self.axis == SEED:
            return block

        def placed_block(*given: Any) -> tuple[TrainState, Any]:
            state, counts = block(*given)
            state = jax.lax.with_sharding_constraint(state, self._of_state(state))
            # Every process reads all counts.
            return state, jax.lax.with_sharding_constraint(counts, self._on(WHOLE))

        return placed_block

    # --- seeds: the program of one device on each, so that a seed gives the same bits -----------

    def _one_each(
        self, jitted: Any, game: Any, others: Any, state: Any, keys: Any, *rest: Any
    ) -> list["OfDevice"]:
        """The program of each device of this process for its share of the seeds."""
        share = keys.shape[0] // self.count

        def of(index: int, device: Any) -> OfDevice:
            here = SingleDeviceSharding(device)
            own = keys[index * share : (index + 1) * share]
            constants = jax.device_put((game, others, own, rest[-1]), here)
            shapes = jax.tree.map(
                lambda x: jax.ShapeDtypeStruct((share, *x.shape[1:]), x.dtype, sharding=here), state
            )
            lowered = jitted.lower(*constants[:2], shapes, constants[2], *rest[:-1], constants[3])
            return OfDevice(lowered.compile(), *constants)

        mine = jax.process_index()
        places = enumerate(self.mesh.devices.flat)
        return [of(index, one) for index, one in places if one.process_index == mine]

    def _all(self, programs: list["OfDevice"], state: TrainState, numbers: Any) -> Any:
        """Run the programs of all devices at once, and put together what they give."""
        leaves, form = jax.tree.flatten(self.placed_state(state))
        parts = [[one.data for one in _data(leaf).addressable_shards] for leaf in leaves]

        def run(index: int) -> Any:
            one = programs[index]
            mine = [_wrapped(part[index], leaf) for part, leaf in zip(parts, leaves, strict=True)]
            own = jax.tree.unflatten(form, mine)
            given = (one.game, one.others, own, one.keys, *numbers, one.streams)
            return jax.block_until_ready(one.compiled(*given))

        with ThreadPoolExecutor(len(programs)) as pool:
            made = list(pool.map(run, range(len(programs))))
        states = [one for one, _ in made]
        joined = jax.tree.map(lambda *x: self._joined(x, 0), *states)
        counts = jax.tree.map(lambda *x: self._joined(x, 1), *(one for _, one in made))
        return joined, self.here(counts)

    def _joined(self, parts: Sequence[Any], axis: int) -> Any:
        """One array of the parts that the devices of this process have, along an axis."""
        raw = [_data(part) for part in parts]
        shape = list(raw[0].shape)
        shape[axis] *= self.count
        spec = Spec(*[None] * axis, SEED)
        whole = jax.make_array_from_single_device_arrays(tuple(shape), self._on(spec), raw)
        return _wrapped(whole, parts[0])

    # --- where arrays belong ---------------------------------------------------------------------

    def placed(self, game: Any, others: Any, state: Any, keys: Any, *rest: Any) -> tuple[Any, ...]:
        """The arguments of a block where they belong."""
        if self.count == 1:
            return (game, others, state, keys, *rest)
        whole = self._on(WHOLE)
        game, others, keys, rest = self._put((game, others, keys, rest), whole)
        return (game, others, self.placed_state(state), keys, *rest)

    def placed_state(self, state: TrainState) -> TrainState:
        """A run's state where it belongs, or its shapes; nothing moves if it is there."""
        if self.count == 1:
            return state
        places = self._of_state(state)
        if isinstance(jax.tree.leaves(state)[0], jax.ShapeDtypeStruct):
            return jax.tree.map(lambda x, to: x.update(sharding=to), state, places)
        return self._put(state, places)

    def _put(self, tree: T, places: Any) -> T:
        """Arrays, the same in all processes, where they belong. places: a tree like it, or one for
        all."""
        if not self.several:
            return jax.device_put(tree, places)
        if isinstance(places, NamedSharding):
            places = jax.tree.map(lambda x: places, tree)

        def put(x: Any, place: NamedSharding) -> Any:
            if isinstance(x, jax.Array) and x.sharding == place:
                return x
            data = np.asarray(_data(x))
            whole = jax.make_array_from_callback(data.shape, place, lambda part: data[part])
            return _wrapped(whole, x)

        return jax.tree.map(put, tree, places)

    def _on(self, spec: Spec) -> NamedSharding:
        return NamedSharding(self.mesh, spec)

    def _of_state(self, state: TrainState) -> TrainState:
        """Where the arrays of a state belong. Learners have a leading [seed] axis, a table has
        [seed, copy, ...], and memories [seed, seat, copy, ...]."""
        if self.axis == SEED:
            return jax.tree.map(lambda x: self._on(Spec(SEED)), state)
        table = jax.tree.map(lambda x: self._on(Spec(None, COPY)), state.table._replace(memory=()))
        memory = jax.tree.map(lambda x: self._on(Spec(None, None, COPY)), state.table.memory)
        learners = jax.tree.map(lambda x: self._on(WHOLE), state.learners)
        return TrainState(learners, table._replace(memory=memory))

    def here(self, tree: T) -> T:
        """Arrays that this process can read whole. All processes must ask at once."""
        if not self.several:
            return tree
        meet()
        whole = jax.jit(_itself, out_shardings=self._on(WHOLE))(tree)
        return jax.tree.map(lambda x: x.addressable_data(0), whole)

    def of_seed(self, tree: T, index: int) -> T:
        """The part of one seed, on the first device."""
        one = jax.tree.map(lambda x: x[index], self.here(tree))
        if self.count == 1 or self.several:
            return one
        return jax.device_put(one, self.mesh.devices.flat[0])


class OfDevice(NamedTuple):
    """The program of one device, and what it is always given."""

    compiled: Any
    game: Any
    others: Any
    keys: Any
    streams: Any


def _data(x: Any) -> Any:
    """An array as plain numbers: keys are not."""
    return jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x


def _wrapped(data: Any, like: Any) -> Any:
    """Plain numbers as keys again, if `like` holds keys."""
    if not jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        return data
    return jax.random.wrap_key_data(data, impl=jax.random.key_impl(like))


def _itself(tree: T) -> T:
    return tree


def _does_not_divide(run: RunConfig) -> str:
    """The error of seeds and copies that the devices cannot share, with the nearest that do."""
    count = run.devices
    copies = run.copies // count * count
    near = " or ".join(str(one) for one in (copies, copies + count) if one)
    seeds = f", or --seeds {math.ceil(run.seeds / count) * count}" if run.seeds > 1 else ""
    return (
        f"--devices {count} share the seeds or the game copies evenly: {run.seeds} seeds and "
        f"{run.copies} copies do not divide; give --copies {near}{seeds}"
    )


def _first(count: int) -> list[Any]:
    """So many devices, of each process as many."""
    there = jax.devices()
    if count > len(there):
        raise UserError(
            f"--devices {count}: JAX has {len(there)} here; a CPU has as many as the "
            "variable XLA_FLAGS says, by xla_force_host_platform_device_count"
        )
    if count % jax.process_count():
        raise UserError(
            f"--devices {count}: {jax.process_count()} processes have as many devices each; give "
            f"--devices {len(there)}"
        )
    each = count // jax.process_count()
    own = [[one for one in there if one.process_index == i] for i in range(jax.process_count())]
    if any(len(mine) < each for mine in own):
        raise UserError(f"--devices {count}: every process needs {each} devices")
    return [one for mine in own for one in mine[:each]]
