"""Goal codes: windows, divergences and the selector against plain loops; codes know only the
past."""

from dataclasses import replace
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.core.errors import UserError
from coplay.core.game import Observation
from coplay.games.registry import make_game
from coplay.matches.dataset import samples_of
from coplay.models.goal_codes import (
    GoalModel,
    GoalModelConfig,
    Steps,
    check_content,
    new_goal_model,
    recent,
)
from coplay.models.goal_inference import Code, Prototypes, kl_codes
from coplay.models.goal_loss import goal_loss, select
from coplay.nn.conditioned import centred
from coplay.nn.networks import view_shape
from coplay.training.collect import collect
from coplay.training.pretrain_goals import ChunkedSamples, chunk_samples, predict_samples

GAME = make_game("stag-hunt", height=2, width=3, players=3, stags=1, hares=1, horizon=5)
RNG = np.random.default_rng(0)


def random_model(**fields: Any) -> GoalModel:
    """Random numbers in all places; an orthogonal start takes long to compile."""
    config = GoalModelConfig(
        dim=3, prototypes=4, width=4, opponent_hidden=(6, 6), horizon=3, **fields
    )
    shapes = eqx.filter_eval_shape(
        lambda key: GoalModel(config, view_shape(GAME), 3, key), jax.random.key(0)
    )
    leaves = [
        jnp.asarray(np.random.default_rng(i).normal(size=x.shape) / 2, jnp.float32)
        for i, x in enumerate(jax.tree.leaves(shapes))
    ]
    return jax.tree.unflatten(jax.tree.structure(shapes), leaves)


@cache
def some_segments() -> ChunkedSamples:
    return chunk_samples(
        samples_of(collect("stag-hunt", GAME.config, "ns,nh,random", 120, 0)),  # type: ignore[attr-defined]
        5,
        random_model(),
    )


def steps() -> Steps:
    return jax.jit(some_segments().steps)(jnp.arange(some_segments().slots.shape[0]))


def test_windows_are_the_board_around_the_player() -> None:
    height, width = 3, 4
    planes = RNG.random((height, width, height, width, 2)).astype(np.float32)
    for row in range(height):
        for column in range(width):
            planes[row, column, ..., 0] = 0
            planes[row, column, row, column, 0] = 1
    ours = np.asarray(centred(jnp.asarray(planes)))
    assert ours.shape == (height, width, 2 * height - 1, 2 * width - 1, 3)
    for row in range(height):
        for column in range(width):
            window = np.zeros((2 * height - 1, 2 * width - 1, 3), np.float32)
            for r in range(height):
                for c in range(width):
                    at = (r - row + height - 1, c - column + width - 1)
                    window[at] = [*planes[row, column, r, c], 1]
            np.testing.assert_array_equal(ours[row, column], window)
    planes[..., 0] = 0
    assert not np.asarray(centred(jnp.asarray(planes))).any()


def test_divergence_of_codes_by_integration() -> None:
    x = np.linspace(-12, 12, 20001)

    def density(mean: float, log_variance: float) -> np.ndarray:
        spread = np.exp(log_variance)
        return np.exp(-((x - mean) ** 2) / (2 * spread)) / np.sqrt(2 * np.pi * spread)

    mean, spread = RNG.normal(size=(2, 2, 3)) * 0.7
    wanted = [0.0, 0.0]
    for k in range(3):
        p, q = density(mean[0, k], spread[0, k]), density(mean[1, k], spread[1, k])
        for index, other in enumerate((q, density(0, 0))):
            wanted[index] += np.trapezoid(p * (np.log(p + 1e-300) - np.log(other + 1e-300)), x)
    first, second = (
        Code(jnp.asarray(m), jnp.asarray(s)) for m, s in zip(mean, spread, strict=True)
    )
    np.testing.assert_allclose([kl_codes(first, second), kl_codes(first)], wanted, rtol=1e-4)


@pytest.mark.parametrize("optimistic", [True, False])
def test_selector_like_plain_python(optimistic: bool) -> None:
    chunks, slots, horizon = 4, 7, 3
    mean = RNG.normal(size=(chunks, slots, 2)).astype(np.float32)
    weight = RNG.normal(size=(chunks, slots, 2)).astype(np.float32)
    left = np.array([[3, 2, 1, 0, 2, 1, 0]] * chunks)  # two segments
    ours = select(
        lambda code: jnp.sum(code * weight, axis=-1),
        jnp.asarray(mean),
        jnp.asarray(left),
        horizon,
        optimistic,
    )
    for chunk in range(chunks):
        for slot in range(slots):
            open_ = range(slot, slot + min(horizon, left[chunk, slot] + 1))
            worth = [float(mean[chunk, k] @ weight[chunk, slot]) for k in open_]
            best = np.argmax(worth) if optimistic else np.argmin(worth)
            assert int(ours[chunk, slot]) == slot + best


INFERENCE = pytest.mark.parametrize("inference", ["prototypes", "gru"])


@pytest.mark.slow
@INFERENCE
def test_codes_know_the_past_only(inference: Any) -> None:
    model, real = random_model(inference=inference), steps()

    def both(steps: Steps) -> Any:
        return model.codes(steps)[1].mean, model.memories(model.see(steps.observation), steps)

    run = jax.jit(both)
    before, memory = map(np.asarray, run(real))
    at = 2
    joint = np.array(real.joint)
    joint[:, at:] = (joint[:, at:] + 1) % 7
    other = real._replace(joint=jnp.asarray(joint), following=~real.following)
    changed, new_memory = map(np.asarray, run(other))
    np.testing.assert_array_equal(before[:, : at + 1], changed[:, : at + 1])
    goes_on = np.asarray(real.alive & ~real.first)[:, at + 1]
    # An action that all prototypes find impossible says nothing of any.
    moved = np.abs(memory - new_memory)[goes_on, at + 1].max(-1) > 1e-4
    assert moved.mean() > 0.8
    # Of the few hidden units behind the memory all may be silent in single chunks.
    moved = np.abs(before - changed)[goes_on, at + 1].max(-1) > 1e-4
    assert moved.mean() > 0.8
    # A segment knows nothing of the one before it in its chunk.
    new = np.asarray(real.first & real.alive)[:, at + 1]
    assert new.any()
    np.testing.assert_allclose(before[new, at + 1], changed[new, at + 1], rtol=1e-6)


@pytest.mark.slow
@INFERENCE
def test_remembering_step_by_step_is_the_same(inference: Any) -> None:
    model, real = random_model(inference=inference), steps()
    seen = model.see(real.observation)
    chunks = np.asarray(jax.jit(lambda *a: model.memories(*a))(seen, real))
    remember = jax.jit(lambda *a: model.remember(*a))
    memory = jnp.zeros((seen.shape[0], 4))
    for slot in range(seen.shape[1]):
        memory = jnp.where(real.first[:, slot, None], 0.0, memory)
        alive = np.asarray(real.alive)[:, slot]
        np.testing.assert_allclose(chunks[alive, slot], memory[alive], rtol=1e-4, atol=1e-6)
        memory = remember(memory, seen[:, slot], real.joint[:, slot])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inference", "loss"),
    [("prototypes", "action"), ("prototypes", "reconstruction"), ("gru", "action")],
)
def test_empty_slots_are_in_no_loss_and_every_part_learns(inference: Any, loss: Any) -> None:
    model, real = random_model(inference=inference, loss=loss), steps()
    assert not np.asarray(real.alive).all()
    key = jax.random.key(0)
    run = jax.jit(jax.value_and_grad(lambda m, s: goal_loss(m, s, key, 1.0)[0]))
    empty = ~real.alive

    def spoiled(x: Any) -> Any:
        mask = empty.reshape(*empty.shape, *(1,) * (x.ndim - 2))
        return jnp.where(mask, ~x if x.dtype == bool else x + 3, x).astype(x.dtype)

    view = real.observation
    other = Observation(spoiled(view.planes), spoiled(view.features), view.legal)
    changed = real._replace(
        observation=other, following=spoiled(real.following), target=spoiled(real.target)
    )
    (value, slope), (again, _) = run(model, real), run(model, changed)
    np.testing.assert_allclose(value, again, rtol=1e-6)
    parts = {name: getattr(slope, name) for name in ("board", "decoder", "opponent", "value")}
    for name, part in (parts | vars(slope.inference)).items():
        moved = [np.abs(np.asarray(x)).max() > 0 for x in jax.tree.leaves(part)]
        assert all(moved) and bool(moved) == (name != "decoder" or loss == "reconstruction"), name


def test_options_of_a_run_replace_those_a_model_was_made_with() -> None:
    model, real, key = random_model(), steps(), jax.random.key(0)
    options = replace(model.config, kl_weight=0.5, inference_kl_weight=0.25)
    run = jax.jit(lambda options: goal_loss(model, real, key, 1.0, options), static_argnums=0)
    (mine, terms), (plain, _) = run(options), run(None)
    more = (0.5 - model.config.kl_weight) * terms["goal_kl"]
    more += (0.25 - model.config.inference_kl_weight) * terms["inferred_kl"]
    assert abs(more) > 0.01
    np.testing.assert_allclose(mine - plain, more, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("expects", [False, True], ids=["", "with what was known before"])
def test_prototypes_are_weighed_as_bayes_says(expects: bool) -> None:
    model, real = random_model(), steps()
    assert isinstance(model.inference, Prototypes)
    begin = np.zeros((*real.alive.shape, model.memory_size))
    if expects:
        begin = -np.random.default_rng(0).uniform(0, 1, begin.shape)
        begin -= begin.max(axis=-1, keepdims=True)
        real = real._replace(begin=jnp.asarray(begin))
    seen, legal = model.see(real.observation), np.asarray(real.observation.legal)

    @jax.jit
    def predict_actions(z: Any) -> Any:
        every = jnp.broadcast_to(z, (*seen.shape[:2], 3))
        return jnp.exp(model.predict_actions(seen, every, real.observation.legal))

    probs = np.stack([np.asarray(predict_actions(z)) for z in model.inference.codes], axis=-2)
    assert (probs[~np.broadcast_to(legal[:, :, None], probs.shape)] == 0).all()
    prior = np.asarray(jax.nn.softmax(model.inference.prior))
    code = jax.jit(lambda steps: model.codes(steps)[1])(real)
    run = jax.jit(
        lambda steps: model.inference.loss(model.evidence(seen, steps.joint), steps.past)[
            "prototype_loss"
        ]
    )
    alive, first = np.asarray(real.alive), np.asarray(real.first)
    codes = np.asarray(model.inference.codes)
    total = 0.0
    for chunk in range(alive.shape[0]):
        weight = prior
        for slot in np.flatnonzero(alive[chunk]):
            if first[chunk, slot]:
                weight = prior * np.exp(begin[chunk, slot])
                weight = weight / weight.sum()
            share = weight / weight.sum()
            mean = share @ codes
            np.testing.assert_allclose(code.mean[chunk, slot], mean, rtol=1e-3, atol=1e-4)
            wide = np.exp(-3 + 7 * np.tanh(np.asarray(model.inference.spread) / 7))
            apart = share @ np.square(codes - mean)
            np.testing.assert_allclose(
                np.exp(code.log_variance[chunk, slot]), wide + apart, rtol=2e-2, atol=1e-3
            )
            weight = weight * probs[chunk, slot, :, int(real.joint[chunk, slot, 0])]
            if int(real.left[chunk, slot]) == 0:
                total -= np.log(weight.sum())
    np.testing.assert_allclose(run(real), total / alive.sum(), rtol=1e-4)
    # A chunk that begins within a segment goes on with what was remembered of it.
    late = real._replace(first=jnp.zeros_like(real.first), start=real.start.at[:, 1].set(-8.0))
    likely = np.asarray(model.evidence(seen, real.joint))
    begun = np.log(prior) + np.asarray(late.start)
    begun -= np.logaddexp.reduce(begun, axis=1, keepdims=True)
    whole = np.where(alive[..., None], likely, 0).sum(1)
    wanted = -np.logaddexp.reduce(begun + whole, axis=1).sum() / alive.sum()
    np.testing.assert_allclose(run(late), wanted, rtol=1e-4)


def test_players_may_change() -> None:
    proto = Prototypes(2, 3, jax.random.key(0))
    memory = jnp.zeros(2)
    for likely in [(-0.1, -3.0)] * 50 + [(-3.0, -0.1)] * 4:
        memory = proto.update(memory, jnp.asarray(likely))
    assert memory[1] > memory[0]
    # One impossible action is a strong word, and no verdict for ever.
    memory = proto.update(memory, jnp.asarray((-0.1, -1e30)))
    assert np.isfinite(memory).all() and memory[0] > memory[1]


@pytest.mark.slow
def test_codes_of_a_gru_must_predict_the_actions_that_follow() -> None:
    model, real = random_model(inference="gru"), steps()
    # Codes without spread, so that the loss can be computed from means.
    head = model.inference.inferred.head  # type: ignore[attr-defined]
    still = head.bias.at[3:].set(-1e3)
    still_weight = head.weight.at[3:].set(0.0)
    model = eqx.tree_at(
        lambda m: (m.inference.inferred.head.bias, m.inference.inferred.head.weight),
        model,
        (still, still_weight),
    )

    @jax.jit
    def both(model: GoalModel, real: Steps) -> Any:
        seen, code = model.codes(real)
        legal = real.observation.legal
        later = jnp.stack(
            [
                model.predict_actions(seen, jnp.roll(code.mean, by, axis=1), legal)
                for by in (0, 1, 2)
            ]
        )
        return later, goal_loss(model, real, jax.random.key(0), 1.0)[1]

    log_probs, terms = both(model, real)
    losses: dict[int, list[float]] = {0: [], 1: [], 2: []}
    for chunk, slot in np.argwhere(np.asarray(real.alive)):
        for by in range(min(2, int(real.left[chunk, slot])) + 1):
            action = int(real.joint[chunk, slot + by, 0])
            losses[by].append(-float(log_probs[by, chunk, slot + by, action]))
    assert len(losses[2]) > 5
    np.testing.assert_allclose(terms["opponent_loss"], np.mean(losses[0]), rtol=2e-2)
    later = np.mean(losses[1] + losses[2])
    np.testing.assert_allclose(terms["opponent_later_loss"], later, rtol=2e-2)


@pytest.mark.slow
def test_rows_come_back_in_their_order() -> None:
    model, chunks = random_model(), some_segments()
    found = predict_samples(model, chunks)
    real = steps()
    code = jax.jit(lambda steps: model.codes(steps)[1])(real)
    flat = np.asarray(code.mean).reshape(-1, 3)
    slots = np.asarray(chunks.slots).reshape(-1)
    np.testing.assert_allclose(
        found.code[slots[slots >= 0]], flat[slots >= 0], rtol=1e-4, atol=1e-6
    )
    probs = np.exp(found.action)
    np.testing.assert_allclose(probs.sum(1), 1, rtol=1e-5)
    assert (probs[~np.asarray(chunks.samples.legal)] == 0).all()
    blind = predict_samples(model, chunks, no_goal=True)
    assert np.abs(np.exp(blind.action) - probs).max() > 1e-3


def test_a_segment_is_the_last_steps_of_the_same_episode() -> None:
    real = steps()
    numbers = RNG.normal(size=(*real.alive.shape, 2)).astype(np.float32)
    found = recent(jnp.asarray(numbers), real, 3)
    first, alive = np.asarray(real.first), np.asarray(real.alive)
    for chunk, slot in np.argwhere(alive):
        rows, place = [], slot
        while place >= 0 and slot - place < 3:
            rows.append(numbers[chunk, place])
            if first[chunk, place]:
                break
            place -= 1
        np.testing.assert_allclose(found[chunk, slot], np.mean(rows, axis=0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("content", ["state", "state-time", "state-time-reward", "segment"])
def test_a_goal_is_made_of_what_was_asked_for(content: str) -> None:
    model, real = random_model(content=content), steps()
    found = model.content(real)
    assert found.shape[-1] == model.board.layers[0].weight.shape[1]
    cells = real.following[0, 0].size
    assert real.outcome is not None
    other = real._replace(outcome=real.outcome.at[..., -1].add(1.0))
    differs = (np.asarray(model.content(other)) != np.asarray(found)).any()
    assert differs == (content in ("state-time-reward", "segment"))
    later = real._replace(outcome=real.outcome.at[..., :-1].add(1.0))
    differs = (np.asarray(model.content(later)) != np.asarray(found)).any()
    assert differs == (content != "state") and found.shape[-1] >= cells


@pytest.mark.slow
def test_what_is_done_far_from_all_things_tells_nothing() -> None:
    open_, gated = random_model(), random_model(gate=1, gate_weight=0.25)
    real = steps()
    seen = open_.see(real.observation)
    planes = np.asarray(real.observation.planes)
    free, held = (model.evidence(seen, real.joint) for model in (open_, gated))
    near = np.zeros(real.alive.shape, bool)
    for place in np.ndindex(*near.shape):
        own = np.argwhere(planes[place][..., 0])
        things = np.argwhere(planes[place][..., GAME.seats + 1 :].any(-1))
        if len(own):
            near[place] = (np.abs(things - own[0]).sum(-1) <= 1).any()
    assert near.any() and not near.all()
    np.testing.assert_array_equal(gated.near(seen), near)
    np.testing.assert_allclose(held, np.where(near[..., None], free, 0.25 * np.asarray(free)))


@pytest.mark.slow
def test_the_selector_takes_the_candidate_of_the_best_value() -> None:
    real = steps()
    chosen = {}
    for selector in ("optimistic", "conservative"):
        model = random_model(inference="vae", candidates=5, selector=selector)
        seen = model.see(real.observation)
        memory = jnp.zeros((*real.alive.shape, model.memory_size))
        plain = model.inference.infer(memory, seen)
        z = model.infer(memory, seen).mean
        chosen[selector] = np.asarray(model.value(seen, z))[..., 0]
        chosen["mean"] = np.asarray(model.value(seen, plain.mean))[..., 0]
    assert (chosen["optimistic"] >= chosen["mean"] - 1e-5).all()
    assert (chosen["conservative"] <= chosen["mean"] + 1e-5).all()
    assert (chosen["optimistic"] > chosen["conservative"] + 1e-3).any()


@pytest.mark.slow
def test_games_without_a_board_have_models_too() -> None:
    game, key = make_game("matrix:prisoners-dilemma", rounds=4), jax.random.key(0)
    shape = view_shape(game)
    assert not shape.on_grid
    model = new_goal_model(GoalModelConfig(dim=2, width=4, opponent_hidden=(4,)), shape, 2, key)
    state = game.reset(key)
    after, _ = game.step(key, state, jnp.array([0, 1]))
    other, _ = game.step(key, state, jnp.array([0, 0]))
    seen = [model.see(game.observe(now)) for now in (after, other)]
    z = jnp.ones((2, 2))
    found = [model.predict_actions(x, z, jnp.ones((2, 2), bool)) for x in seen]
    np.testing.assert_allclose(np.exp(found[0]).sum(-1), 1.0, rtol=1e-5)
    # What was done last is all that a co-player goes by here.
    assert (np.asarray(found[0]) != np.asarray(found[1])).any()
    with pytest.raises(UserError, match="belong to the state"):
        check_content(GoalModelConfig(content="state-time"), shape)
    with pytest.raises(UserError, match="no board"):
        check_content(GoalModelConfig(gate=2), shape)
