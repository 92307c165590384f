"""HOP+ by the own view alone: what is hidden changes nothing, codes are those of the others."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.algorithms.hop_plus.config import HopPlusConfig
from coplay.algorithms.hop_plus.learner import HopPlus
from coplay.algorithms.hop_plus.partial import PartialHopPlus
from coplay.core.config import with_fields
from coplay.core.errors import UserError
from coplay.core.player import View
from coplay.games.registry import make_game
from coplay.matches.rollout import new_table, rollout
from coplay.nn.networks import view_shape

SMALL: dict[str, Any] = {
    "network.hidden": (4,),
    "goals.dim": 2,
    "goals.width": 4,
    "goals.opponent_hidden": (8,),
    "goals.prototypes": 3,
    "history.units": 4,
    "minibatches": 1,
    "epochs": 1,
    "recordings.samples": 0,
    "models.learn_opponents": True,
}
GAME = make_game("stag-hunt", height=5, width=5, players=2, stags=1, hares=1, horizon=4, view=1)


def made(game: Any, **fields: Any) -> Any:
    return HopPlus.made(
        config=with_fields(HopPlusConfig(), SMALL | fields),
        shape=view_shape(game),
        game_seats=game.seats,
        seats=tuple(range(game.seats)),
        active=tuple(range(game.seats)),
    )


def test_weights_of_losses_are_those_that_it_has() -> None:
    """The wiring audit halves them: what the other kind of view alone has would count as dead."""
    full = make_game("stag-hunt", height=5, width=5, players=2, stags=1, hares=1, horizon=4)
    own = {"history.view_weight", "history.code_weight"}
    kl = {"goals.kl_weight", "goals.inference_kl_weight"}
    both = {"value_weight", "entropy_weight", "goals.gate_weight"}
    assert set(made(full).coefficients) == both | kl
    assert set(made(full, views="own").coefficients) == both | own
    assert set(made(GAME).coefficients) == both | own


def test_what_is_hidden_changes_no_decision() -> None:
    learner = made(GAME)
    assert isinstance(learner, PartialHopPlus)
    state = GAME.reset(jax.random.key(0))
    # Oneself in a corner; the other and the prey out of sight, twice; then the other beside.
    cells = {"far": (0, 24, 22, 23), "elsewhere": (0, 14, 12, 13), "beside": (0, 6, 22, 23)}

    def situation(name: str) -> Any:
        cell = jnp.array(cells[name], state.cell.dtype)
        strength = jnp.array([1.0, 2.0 if name == "elsewhere" else 1.0])
        return state._replace(cell=cell[:2], prey=cell[2:], strength=strength)

    player = eqx.filter_eval_shape(
        lambda key: learner.player(learner.init(key, jnp.arange(2)), 0), jax.random.key(0)
    )
    numbers = np.random.default_rng(0)
    player = jax.tree.map(lambda x: jnp.asarray(numbers.normal(size=x.shape), x.dtype), player)

    @jax.jit
    def logits(player: Any, now: Any) -> Any:
        key = jax.random.key(0)
        seen = jax.tree.map(lambda x: x[None], (GAME.observe(now), now))
        view = View(
            observation=jax.tree.map(lambda x: x[:, 0], seen[0]),
            alive=jnp.ones(1, bool),
            state=seen[1],
            time=jnp.ones(1, int),
            episode=jnp.zeros(1, int),
            last_action=jnp.ones(1, int),
            last_reward=jnp.ones(1),
        )
        decided, memory = player.act(GAME, key, view, player.start(1) + 0.1)
        return decided, memory, player.insight(GAME, view, memory).action

    found = {name: logits(player, situation(name)) for name in cells}
    for far, elsewhere in zip(found["far"], found["elsewhere"], strict=True):
        np.testing.assert_array_equal(far, elsewhere)
    assert any((a != b).any() for a, b in zip(found["far"], found["beside"], strict=True))


def test_what_it_cannot_do_is_said_before_the_run() -> None:
    whole = make_game("stag-hunt", height=3, width=3, players=2, stags=1, hares=1)
    assert type(made(whole)) is HopPlus
    assert isinstance(made(whole, views="own"), PartialHopPlus)
    for fields, words in (
        ({"imagination.share": 0.2}, "strangers alone"),
        ({"goals.inference": "gru", "imagination.strangers": 0.0}, "own history"),
        ({"goals.use": "zero"}, "must be inferred"),
    ):
        with pytest.raises(UserError, match=words):
            made(GAME, **fields).check(GAME)


@pytest.mark.slow
def test_codes_are_learned_from_what_the_others_saw() -> None:
    learner = made(GAME)
    streams = jnp.arange(2)

    @jax.jit
    def learn(key: Any) -> Any:
        state = learner.init(key, streams)
        groups = (learner.group(state),)
        table = new_table(GAME, groups, key, 6)
        _, trajectory = rollout(GAME, groups, table, key, 8, streams)
        data = learner.training_data(GAME, trajectory)
        states, found = [state], []
        for step in range(12):
            new, metrics = learner.update(
                jax.random.fold_in(key, step), states[-1], data, jnp.float32(0)
            )
            states.append(new)
            found.append(metrics)
        return states[0], states[-1], jax.tree.map(lambda *x: jnp.stack(x), *found), data.others

    before, after, metrics, others = learn(jax.random.key(0))
    assert others.view.shape[:4] == (8, 6, 2, 1)
    for name in ("others_view_loss", "others_action_loss", "opponent_loss"):
        course = np.asarray(metrics[name]).mean(-1)
        assert np.isfinite(course).all() and course[-1] < course[0], name
    assert np.isfinite(np.asarray(metrics["strangers_reward"])).all()
    for part in ("encoder", "decoder"):
        pair = (getattr(state.model, part) for state in (before, after))
        changed = [(a != b).any() for a, b in zip(*map(jax.tree.leaves, pair), strict=True)]
        assert any(changed), part


@pytest.mark.slow
def test_the_horizon_is_an_end_with_a_partial_view_too() -> None:
    """What was seen at the horizon is worth nothing: learning is the same whatever it was."""
    learner = made(GAME)
    streams = jnp.arange(2)

    @jax.jit
    def learn(key: Any) -> Any:
        state = learner.init(key, streams)
        groups = (learner.group(state),)
        table = new_table(GAME, groups, key, 6)
        _, trajectory = rollout(GAME, groups, table, key, 8, streams)
        data = learner.training_data(GAME, trajectory)
        other = jax.tree.map(jnp.ones_like, data.own.final)
        changed = data._replace(own=data.own._replace(final=other))
        learned = [learner.update(key, state, x, jnp.float32(0))[0] for x in (data, changed)]
        return learned, data.own.truncated

    (one, same), truncated = learn(jax.random.key(0))
    assert truncated.any()
    for network in ("actor", "critic"):
        pair = (getattr(state, network) for state in (one, same))
        jax.tree.map(np.testing.assert_array_equal, *pair)
