"""JaxMARL's usual environments with the learners that fit them: each starts, learns and plays."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import coplay
from coplay.api.training import make_config
from coplay.core.errors import UserError
from coplay.training.block import one_iteration, state_shapes
from coplay.training.phases import plan_phases
from coplay.training.run import make_game_of

pytest.importorskip("jaxmarl")

LIST: dict[str, dict[str, Any]] = {
    "jaxmarl:MPE_simple_spread_v3": {},
    "jaxmarl:MPE_simple_tag_v3": {},
    "jaxmarl:MPE_simple_reference_v3": {},
    "smax:3m": {},
    "jaxmarl:overcooked_v2": {"options": ("layout=cramped_room",)},
    "jaxmarl:coin_game": {},
    "jaxmarl:storm_2p": {},
}
"""Game -> its fields."""
SEEN_IN_FULL = ("jaxmarl:MPE_simple_spread_v3", "jaxmarl:MPE_simple_tag_v3", "jaxmarl:coin_game")
"""Those that HOP can step in its mind: the others show a seat a part of the state."""
SMALL: dict[str, dict[str, Any]] = {
    "ppo": {"network.hidden": (8,), "minibatches": 1, "epochs": 1},
    "mappo": {"network.hidden": (8,), "epochs": 1},
    "hop": {"network.hidden": (8,), "search.simulations": 2, "search.draws": 1},
    "hop-plus": {
        "network.hidden": (8,),
        "recordings.samples": 0,
        "models.learn_opponents": True,
        "models.chunk_length": 4,
        "imagination.strangers": 0.0,
    },
}
"""HOP+ imagines strangers, and records partners, only in games whose seats are alike."""
RUN = {"copies": 8, "rollout": 4, "steps": 64}

PAIRS = [(game, player) for game in LIST for player in SMALL]
PLAYED = [(game, player) for game, player in PAIRS if player != "hop" or game in SEEN_IN_FULL]


def config_of(game: str, player: str) -> Any:
    return make_config(player, game, LIST[game], RUN | SMALL[player])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "player"), PLAYED)
def test_an_iteration_fits_together(name: str, player: str) -> None:
    """Traced and not compiled: what is played is learned from, and the state keeps its shapes."""
    config = config_of(name, player)
    game = make_game_of(config)
    phase = plan_phases(config, game)[0]
    shapes = state_shapes(config, game, phase)
    one = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), shapes)

    def iterate(state: Any, key: Any) -> Any:
        return one_iteration(phase, game, state, key, jnp.float32(0), 4, jnp.arange(game.seats))[0]

    after = jax.eval_shape(iterate, one, jax.random.key(0))
    assert jax.tree.map(lambda x: (x.shape, x.dtype), after) == jax.tree.map(
        lambda x: (x.shape, x.dtype), one
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LIST if name not in SEEN_IN_FULL])
def test_hop_says_before_the_run_why_it_cannot(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="hop-plus"):
        coplay.train(
            "hop", name, tmp_path / "run", game_fields=LIST[name], quiet=True, **SMALL["hop"]
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "player"), PLAYED)
def test_it_trains_and_plays(name: str, player: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    fields: Any = RUN | SMALL[player] | {"episodes": 2}
    coplay.train(
        player, name, game_fields=LIST[name], out=out, quiet=True, pictures=False, **fields
    )
    game = coplay.make_game(name, **LIST[name])
    record = coplay.play(game, ",".join([str(out)] * game.seats), episodes=2, copies=2)
    assert len(record["seats"]) == game.seats
