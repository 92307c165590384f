"""Learners with networks for sets of entities: each starts and learns, or says why not."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.algorithms.registry import LEARNERS, new_learner
from coplay.api.training import make_config
from coplay.core.config import with_fields
from coplay.core.errors import UserError
from coplay.nn.entities import EntityEncoder
from coplay.nn.networks import view_shape
from coplay.training.block import one_iteration, state_shapes
from coplay.training.phases import plan_phases
from coplay.training.run import make_game_of

FIELDS = {"height": 5, "width": 5, "players": 3, "foods": 2, "show": "lists"}
SETS = {"network.kind": "entities", "network.hidden": (8,), "network.entity_width": 4}
SMALL: dict[str, dict[str, Any]] = {
    "hop": {"search.simulations": 2, "search.draws": 1},
    "hop-plus": {"recordings.samples": 0, "models.chunk_length": 4},
    "mappo": {"memory.chunk_length": 4},
    "hyper-mappo": {"memory.chunk_length": 4},
}
RUN = {"copies": 8, "rollout": 4, "steps": 64}
NEEDS_PARTNERS = {"plastic"}
"""Learns only with a pack; its networks are those of ppo."""


def with_sets(parameters: Any) -> list[Any]:
    """The encoders of entities in a state."""
    leaves = jax.tree.leaves(parameters, is_leaf=lambda x: isinstance(x, EntityEncoder))
    return [leaf for leaf in leaves if isinstance(leaf, EntityEncoder)]


@pytest.mark.slow
@pytest.mark.parametrize("player", [name for name in LEARNERS if name not in NEEDS_PARTNERS])
def test_an_iteration_fits_together(player: str) -> None:
    """Traced and not compiled."""
    config = make_config(player, "foraging", FIELDS, RUN | SETS | SMALL.get(player, {}))
    game = make_game_of(config)
    phase = plan_phases(config, game)[0]
    shapes = state_shapes(config, game, phase)
    one = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), shapes)
    assert len(with_sets(one)) >= 2, "actor and critic"

    def iterate(state: Any, key: Any) -> Any:
        return one_iteration(phase, game, state, key, jnp.float32(0), 4, jnp.arange(game.seats))[0]

    after = jax.eval_shape(iterate, one, jax.random.key(0))
    assert jax.tree.map(lambda x: x.shape, after) == jax.tree.map(lambda x: x.shape, one)


@pytest.mark.slow
def test_a_run_learns_all_parts_and_plays_on(tmp_path: Path) -> None:
    fields: Any = RUN | SETS | {"episodes": 2, "minibatches": 1}
    out = tmp_path / "run"
    found = coplay.train("ppo", "foraging", out, game_fields=FIELDS, quiet=True, **fields)
    assert np.isfinite(found["team_mean"])
    game = coplay.make_game("foraging", **FIELDS)
    played = coplay.play(game, f"{out},able,able", episodes=2, copies=2)
    assert len(played["seats"]) == 3


@pytest.mark.parametrize(("name", "option"), [("stag-hunt", "cnn"), ("matrix:chicken", "mlp")])
def test_a_game_without_lists_is_refused(name: str, option: str) -> None:
    game = coplay.make_game(name)
    given = {"shape": view_shape(game), "game_seats": game.seats, "seats": (0,), "active": (0,)}
    for kind, learner in LEARNERS.values():
        config = with_fields(kind(), {"network.kind": "entities"})
        with pytest.raises(UserError, match=rf"none: give --network\.kind {option}"):
            new_learner(learner, config=config, **given)


def test_it_is_refused_before_the_run(tmp_path: Path) -> None:
    fields: Any = SETS
    with pytest.raises(UserError, match=r"none: give --network\.kind"):
        coplay.train("ppo", "foraging", tmp_path / "run", quiet=True, **fields)
    assert not list(tmp_path.iterdir())
