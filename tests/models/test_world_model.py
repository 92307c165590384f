"""The world model: classes that can say every true step, boards and faults against plain loops."""

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.core.errors import UserError
from coplay.games.registry import make_game
from coplay.matches.dataset import Samples, samples_of
from coplay.matches.world_model_quality import (
    FAULTS,
    figures,
    impossible,
    open_loop,
    psnr,
    step_errors,
)
from coplay.models.world_model import (
    MOVES,
    UNKNOWN,
    Transition,
    WorldModel,
    WorldModelConfig,
    WorldPrediction,
    expected_board,
    likely_board,
    refuse_unseen,
    reward_class,
    true_moves,
    with_rewards,
    world_loss,
)
from coplay.training.collect import collect
from coplay.training.pretrain_world import reward_values

GAMES: dict[str, tuple[str, dict[str, Any], str]] = {
    "stag-hunt": ("stag-hunt", {"height": 3, "width": 3, "players": 3, "hares": 2}, "ns,nh,random"),
    "walls": ("stag-hunt", {"height": 5, "width": 5, "walls": 2, "wall_maps": 8}, "ns,nh,random"),
    "snowdrift": ("snowdrift", {"height": 3, "width": 4, "drifts": 3}, "nd,random"),
}
RNG = np.random.default_rng(0)


@cache
def played(name: str) -> tuple[Any, Samples]:
    game_name, fields, mix = GAMES[name]
    game = make_game(game_name, horizon=10, **fields)
    return game, samples_of(collect(game_name, game.config, mix, 400, 0))  # type: ignore[attr-defined]


def random_model(name: str) -> WorldModel:
    game, samples = played(name)
    config = WorldModelConfig(channels=6, width=5, reward_values=12)
    values = reward_values(samples.reward, 12)
    shapes = eqx.filter_eval_shape(
        lambda key: WorldModel(config, samples.planes.shape[-1], game.seats, game.actions, key),
        jax.random.key(0),
    )
    leaves = [
        jnp.asarray(np.random.default_rng(i).normal(size=x.shape) / 3, jnp.float32)
        for i, x in enumerate(jax.tree.leaves(shapes))
    ]
    model = jax.tree.unflatten(jax.tree.structure(shapes), leaves)
    return eqx.tree_at(lambda m: m.values, model, jnp.asarray(values))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(GAMES))
def test_classes_can_say_every_true_step(name: str) -> None:
    game, samples = played(name)
    planes, following = (jnp.asarray(x, jnp.float32) for x in (samples.planes, samples.next_planes))

    @jax.jit
    def said(planes: jax.Array, following: jax.Array) -> tuple:
        """Ways, whether they are known, and boards of someone who is sure of the truth."""
        way, known = true_moves(planes, following, game.seats)
        beliefs = WorldPrediction(
            move=20.0 * (2.0 * (way[..., None] == jnp.arange(6)) - 1),
            there=20.0 * (2 * following[..., game.seats :] - 1),
            reward=jnp.zeros((way.shape[0], 1)),
            leaves=jnp.zeros(way.shape[0]),
        )
        boards = likely_board(planes, beliefs), expected_board(planes, beliefs)
        return way, known, *boards, impossible(planes, following, game.seats)

    way, known, likely, raw, faults = map(np.asarray, said(planes, following))
    there = np.asarray(samples.planes[..., : game.seats]).any((1, 2))
    np.testing.assert_array_equal(known, there)  # whoever is on the board goes some way
    if name != "snowdrift":
        gone = (way == len(MOVES)) & there
        np.testing.assert_array_equal(gone[:, 0], samples.terminated)
    np.testing.assert_array_equal(likely, following)
    np.testing.assert_allclose(raw, following, atol=1e-6)
    assert not faults.any()
    values = jnp.asarray(reward_values(samples.reward, 48))
    near = np.asarray(values)[np.asarray(reward_class(values, jnp.asarray(samples.reward)))]
    np.testing.assert_allclose(near, samples.reward, atol=1e-3)


def test_boards_like_plain_loops() -> None:
    height, width, seats, kinds = 3, 4, 2, 2
    planes = np.zeros((height, width, seats + kinds), np.float32)
    spots = [(0, 0), (2, 2)]
    for seat, spot in enumerate(spots):
        planes[*spot, seat] = 1
    logits = RNG.normal(size=(seats, 6)).astype(np.float32)
    there = RNG.normal(size=(height, width, kinds)).astype(np.float32)
    beliefs = WorldPrediction(jnp.asarray(logits), jnp.asarray(there), jnp.zeros(1), jnp.zeros(()))
    wanted = np.zeros_like(planes)
    for seat, (row, column) in enumerate(spots):
        probs = np.exp(logits[seat]) / np.exp(logits[seat]).sum()
        for index, (down, right) in enumerate(MOVES):
            at = (row + down, column + right)
            if 0 <= at[0] < height and 0 <= at[1] < width:
                wanted[*at, seat] += probs[index]
    wanted[..., seats:] = 1 / (1 + np.exp(-there))
    np.testing.assert_allclose(expected_board(jnp.asarray(planes), beliefs), wanted, atol=1e-5)
    likely = np.asarray(likely_board(jnp.asarray(planes), beliefs))
    np.testing.assert_array_equal(likely[..., seats:], there > 0)
    for seat in range(seats):
        down, right = MOVES[best] if (best := int(logits[seat].argmax())) < 5 else (9, 9)
        at = (spots[seat][0] + down, spots[seat][1] + right)
        inside = 0 <= at[0] < height and 0 <= at[1] < width
        assert likely[..., seat].sum() == inside
        assert not inside or likely[*at, seat] == 1


def test_every_fault_is_found_alone() -> None:
    seats = 2
    board = np.zeros((1, 3, 3, 5), np.float32)  # two players, walls, stags, hares
    board[0, 0, 0, 0] = board[0, 1, 2, 2] = board[0, 2, 0, 4] = 1
    spoil = {
        "jumped": lambda x: (x.__setitem__((0, 0, 0, 0), 0), x.__setitem__((0, 2, 2, 0), 1)),
        "vanished": lambda x: x.__setitem__((0, 0, 0, 0), 0),
        "appeared": lambda x: x.__setitem__((0, 1, 1, 1), 1),
        "doubled": lambda x: x.__setitem__((0, 0, 1, 0), 1),
        "moved thing": lambda x: (x.__setitem__((0, 2, 0, 4), 0), x.__setitem__((0, 2, 1, 4), 1)),
    }
    assert not np.asarray(impossible(jnp.asarray(board), jnp.asarray(board), seats)).any()
    for index, fault in enumerate(FAULTS):
        after = board.copy()
        spoil[fault](after)
        found = np.asarray(impossible(jnp.asarray(board), jnp.asarray(after), seats))[0]
        assert found[index] and found.sum() == 1, fault
    # A hunter may leave with its prey; a wall is no place to stand.
    board[0, 0, 0, 4] = 1
    hunted = board.copy()
    hunted[0, 0, 0, [0, 4]] = 0
    assert not np.asarray(impossible(jnp.asarray(board), jnp.asarray(hunted), seats)).any()
    board[0, 0, 1, 2] = 1
    walled = board.copy()
    walled[0, 0, 0, 0], walled[0, 0, 1, 0] = 0, 1
    assert np.asarray(impossible(jnp.asarray(board), jnp.asarray(walled), seats))[0, 0]


def transition(samples: Samples, alive: np.ndarray) -> Transition:
    return Transition(
        planes=jnp.asarray(samples.planes),
        action=jnp.asarray(samples.action),
        following=jnp.asarray(samples.next_planes),
        reward=jnp.asarray(samples.reward),
        leaves=jnp.asarray(samples.terminated),
        legal=jnp.asarray(samples.legal),
        alive=jnp.asarray(alive),
    )


@pytest.mark.slow
def test_loss_counts_steps_in_the_mask_and_moves_every_part() -> None:
    model, (_, samples) = random_model("stag-hunt"), played("stag-hunt")
    mask = RNG.random(len(samples.time)) < 0.5
    picked = jax.tree.map(lambda x: x[mask], samples)
    run = jax.jit(jax.value_and_grad(lambda m, s: world_loss(m, s)[0]))
    value, slope = run(model, transition(samples, mask))
    alone = world_loss(model, transition(picked, np.ones(mask.sum(), bool)))[0]
    np.testing.assert_allclose(value, alone, rtol=1e-5)
    for name in (
        *("surroundings", "cell", "move", "there", "outcome", "reward_sum"),
        *("reward_precision", "legal_surroundings", "legal_head"),
    ):
        assert all(np.abs(x).max() > 0 for x in jax.tree.leaves(getattr(slope, name))), name
    assert not np.asarray(slope.values).any()


@pytest.mark.slow
def test_players_are_told_apart_by_where_they_stand_and_what_they_do() -> None:
    """Other players renumbered: the same board, their ways renumbered with them."""
    model, (_, samples) = random_model("stag-hunt"), played("stag-hunt")
    planes, action = jnp.asarray(samples.planes[:50], jnp.float32), jnp.asarray(samples.action[:50])
    order, all_planes = np.array([0, 2, 1]), np.array([0, 2, 1, 3, 4, 5])
    one, other = model(planes, action), model(planes[..., all_planes], action[:, order])
    np.testing.assert_allclose(one.move[:, order], other.move, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(one.there, other.there, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(one.reward, other.reward, rtol=1e-4, atol=1e-5)
    mine = model(planes, action.at[:, 0].set((action[:, 0] + 1) % 7))
    assert np.abs(mine.reward - one.reward).max() > 1e-3


@pytest.mark.slow
def test_rewards_are_near_the_amount_that_cells_add_up_to() -> None:
    model, (_, samples) = random_model("snowdrift"), played("snowdrift")
    planes, action = jnp.asarray(samples.planes[:50], jnp.float32), jnp.asarray(samples.action[:50])
    known = np.array([0.0, 6.0, 12.0, 5.0], np.float32)
    values = jnp.full_like(model.values, UNKNOWN).at[: len(known)].set(known)
    for wanted in known:
        # Classes that say nothing: the amount alone decides.
        gain, amount = jax.tree.map(jnp.zeros_like, (model.outcome[1], model.reward_sum))
        amount = eqx.tree_at(lambda one: one.bias, amount, jnp.full(1, wanted + 0.3))
        given = eqx.tree_at(
            lambda one: (one.outcome[1], one.reward_sum, one.values),
            model,
            (gain, amount, values),
        )
        np.testing.assert_array_equal(given.likely_reward(given(planes, action)), wanted)


def test_new_rewards_become_known_as_long_as_there_is_room() -> None:
    values = jnp.full(4, UNKNOWN)
    reward = jnp.array([0.0, 5.0, 0.0, 1.0, 9.0, 7.0, 8.0])
    mask = jnp.array([True, True, True, True, False, False, False])
    values = with_rewards(values, reward, mask)
    assert sorted(np.asarray(values))[:3] == [0, 1, 5] and (values >= UNKNOWN).sum() == 1
    again = with_rewards(values, reward + 1e-4, mask)
    np.testing.assert_array_equal(again, values)
    full = np.asarray(with_rewards(values, reward, jnp.ones(7, bool)))
    assert (full < UNKNOWN).all() and set(full) - {0, 1, 5} < {7, 8, 9}


def test_psnr_is_pooled_and_capped() -> None:
    assert psnr(np.array([1e-4, 3e-4])) == pytest.approx(-10 * np.log10(2e-4))
    assert psnr(np.zeros(3)) == 100.0


@pytest.mark.slow
def test_judging_goes_through_all_rows_and_far_imagination_begins_as_one_step() -> None:
    model, (_, samples) = random_model("stag-hunt"), played("stag-hunt")
    judged = step_errors(model, samples)
    assert len(judged.exact) == len(samples.time) == 400
    found = figures(judged, samples)
    assert found["exact"] == pytest.approx(judged.exact.mean())
    far = open_loop(model, samples, 4, 400)
    np.testing.assert_array_equal(far.exact[:, 0], judged.exact)
    np.testing.assert_allclose(far.squared[:, 0], judged.squared.mean(1), rtol=1e-4, atol=1e-6)
    goes_on = np.diff(samples.segment, append=-1) == 0
    np.testing.assert_array_equal(far.alive[:, 1], goes_on)


def test_partial_views_are_refused() -> None:
    with pytest.raises(UserError, match="see in full"):
        refuse_unseen(make_game("stag-hunt", view=1))
