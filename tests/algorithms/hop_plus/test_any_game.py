"""HOP+ in every game of the registry: it learns, or says before the run why it cannot."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from coplay.algorithms.hop_plus.learner import HopPlus
from coplay.algorithms.hop_plus.partial import PartialHopPlus
from coplay.api.training import make_config
from coplay.core.errors import UserError
from coplay.core.learner import Learner
from coplay.games.registry import GAMES, make_game
from coplay.matches.rollout import new_table, rollout
from coplay.training.learners import plan_learners
from coplay.training.preparation import check_taught

SMALL: dict[str, Any] = {
    "copies": 4,
    "rollout": 4,
    "minibatches": 2,
    "epochs": 1,
    "network.hidden": (4,),
    "goals.dim": 2,
    "goals.width": 4,
    "goals.opponent_hidden": (8,),
    "goals.prototypes": 3,
    "models.chunk_length": 4,
    "models.buffer_chunks": 4,
    "models.batch_chunks": 4,
    "history.units": 4,
}

FULL, OWN = HopPlus, PartialHopPlus
KINDS: dict[str, tuple[dict[str, Any], Any]] = {
    "stag-hunt": ({}, FULL),
    "snowdrift": ({}, FULL),
    "coin-game": ({}, FULL),
    "foraging": ({}, FULL),
    "predator-prey": ({}, FULL),
    "harvest": ({}, OWN),
    "cleanup": ({}, OWN),
    "identity": ({}, "no scripted players"),
    "hidden-target": ({}, "no scripted players"),
    "hidden-kind": ({}, OWN),
    "dispersion": ({}, OWN),
    "matrix:prisoners-dilemma": ({}, FULL),
    "matrix:matching-pennies": ({}, FULL),
    "matrix:public-goods": ({}, FULL),
    "stag-hunt view=1": ({"view": 1}, OWN),
    "foraging view=2": ({"view": 2}, OWN),
    "jaxmarl:coin_game": ({}, "no scripted players"),
}
"""Game -> its fields, and what learns it, or what is said."""


def learner_of(name: str, fields: dict[str, Any], **more: Any) -> tuple[Any, Learner]:
    """The game, and the learner of a small run of HOP+."""
    name = name.split(" ")[0]
    if name.startswith("jaxmarl"):
        pytest.importorskip("jaxmarl")
    game = make_game(name, **fields)
    config = make_config("hop-plus", name, fields, SMALL | more)
    check_taught(config, game)
    return game, plan_learners(config, game)["hop-plus"]


def trace(game: Any, learner: Learner) -> dict[str, Any]:
    """The shapes of the metrics of an update after a rollout; nothing is compiled."""
    streams = jnp.arange(game.seats)

    def update(key: Any) -> Any:
        state = learner.init(key, streams)
        groups = (learner.group(state),)
        table = new_table(game, groups, key, 4)
        _, trajectory = rollout(game, groups, table, key, 4, streams)
        data = learner.training_data(game, trajectory)
        return learner.update(key, state, data, jnp.float32(0))[1]

    return jax.eval_shape(update, jax.random.key(0))


def test_every_game_of_the_registry_is_in_the_table() -> None:
    assert set(GAMES) <= set(KINDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_it_learns_or_says_why_not(name: str) -> None:
    fields, expected = KINDS[name]
    if isinstance(expected, str):
        with pytest.raises(UserError, match=expected):
            learner_of(name, fields)
        # The options that the errors name work.
        by_itself: dict[str, Any] = {"recordings.samples": 0, "models.learn_opponents": True}
        game, learner = learner_of(name, fields, **by_itself, **{"imagination.strangers": 0.0})
    else:
        game, learner = learner_of(name, fields)
        assert type(learner) is expected
    found = trace(game, learner)
    assert found["opponent_loss" if isinstance(learner, PartialHopPlus) else "opponent_top1"]
