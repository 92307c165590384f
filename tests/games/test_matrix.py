"""Iterated matrix games: agreement with a plain game, and closed forms of scripted meetings."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.core.compilation import QUICK
from coplay.core.errors import UserError
from coplay.games.check import check_game
from coplay.games.matrix import MatrixGame
from coplay.games.matrix_players import GENEROSITY
from tests.games import matrix_reference as reference

R, S, T, P = 3.0, 0.0, 5.0, 1.0


def made(name: str, **fields: Any) -> MatrixGame:
    game = coplay.make_game(f"matrix:{name}", **fields)
    assert isinstance(game, MatrixGame)
    return game


def meet(game: MatrixGame, pairs: list[tuple[str, str]], copies: int) -> tuple[Any, Any]:
    """Scripted players in two seats: rewards [pair, copy, time, seat], probabilities of all
    scripted players and actions as executed [pair, copy, time, seat, ...]."""
    names = list(game.scripted)
    chosen = jnp.array([[names.index(name) for name in pair] for pair in pairs])

    def episode(game: MatrixGame, who: Any, key: Any) -> Any:
        def step(state: Any, key: Any) -> Any:
            egos = [game.ego_state(state, seat) for seat in range(2)]
            policies = game.scripted.values()
            probs = jnp.stack([jnp.stack([one(game, ego) for one in policies]) for ego in egos])
            draw, play = jax.random.split(key)
            mine = probs[jnp.arange(2), who]
            following, outcome = game.step(play, state, jax.random.categorical(draw, jnp.log(mine)))
            return following, (outcome.reward, (probs, following.last))

        return jax.lax.scan(step, game.reset(key), jax.random.split(key, game.config.rounds))[1]

    keys = jax.random.split(jax.random.key(0), copies)
    run = jax.vmap(jax.vmap(episode, (None, None, 0)), (None, 0, None))
    found = jax.jit(run, compiler_options=QUICK)(game, chosen, keys)
    return jax.tree.map(np.asarray, found)


def test_players_and_pay_offs_agree_with_the_plain_game_and_meet_in_closed_form() -> None:
    """The iterated prisoner's dilemma of n rounds with pay-offs R, S, T, P."""
    n = 12
    game = made("prisoners-dilemma", rounds=n)
    tft, no, yes, pavlov = "tit-for-tat", "always-defect", "always-cooperate", "win-stay-lose-shift"
    exact = {
        (tft, tft): (R * n, R * n),
        (tft, no): (S + P * (n - 1), T + P * (n - 1)),
        (tft, "suspicious"): ((S + T) * n / 2, (S + T) * n / 2),
        ("grim", "suspicious"): (S + T + P * (n - 2), T + S + P * (n - 2)),
        ("grim", yes): (R * n, R * n),
        (pavlov, no): ((S + P) * n / 2, (T + P) * n / 2),
        (pavlov, "suspicious"): ((S + T + P) * n / 3, (S + T + P) * n / 3),
        (yes, no): (S * n, T * n),
    }
    by_chance = {
        ("generous", no): (
            S + (n - 1) * (GENEROSITY * S + (1 - GENEROSITY) * P),
            T + (n - 1) * (GENEROSITY * T + (1 - GENEROSITY) * P),
        ),
        ("mixture-25", "mixture-90"): (
            n * (0.225 * R + 0.025 * S + 0.675 * T + 0.075 * P),
            n * (0.225 * R + 0.675 * S + 0.025 * T + 0.075 * P),
        ),
    }
    copies = 200
    rewards, (probs, actions) = meet(game, [*exact, *by_chance], copies)
    totals = rewards.sum(axis=2)  # [pair, copy, seat]
    for pair, (total, expected) in enumerate(zip(totals, exact.values(), strict=False)):
        np.testing.assert_allclose(total.mean(axis=0), expected, atol=1e-4, err_msg=str(pair))
    for total, expected in zip(totals[len(exact) :], by_chance.values(), strict=True):
        spread = total.std(axis=0) / copies**0.5
        assert (np.abs(total.mean(axis=0) - expected) < 4.5 * spread).all()

    for pair in range(len(totals)):
        history: reference.History = []
        for t in range(n):
            for seat in range(2):
                chances = [reference.policy(name, history, seat) for name in game.scripted]
                np.testing.assert_allclose(probs[pair, 0, t, seat], np.array(chances, float))
            joint = tuple(int(action) for action in actions[pair, 0, t])
            history.append(joint)
            assert rewards[pair, 0, t].tolist() == [reference.pay(joint, seat) for seat in range(2)]


@pytest.mark.slow
def test_with_noise_tit_for_tat_meets_itself_in_every_way_alike() -> None:
    """What two tit-for-tats do is a Markov chain: each copies the other and slips with e."""
    noise, n = 0.2, 10
    rewards, _ = meet(
        made("prisoners-dilemma", rounds=n, noise=noise), [("tit-for-tat",) * 2], 1000
    )
    slip = np.array([[1 - noise, noise], [noise, 1 - noise]])
    chance = np.outer(slip[0], slip[0])  # [own, other's] in the first round
    expected = []
    for _ in range(n):
        expected.append((chance * [[R, S], [T, P]]).sum())
        chance = np.einsum("ab,bc,ad->cd", chance, slip, slip)
    found = rewards[0, :, :, 0]
    assert (np.abs(found.mean(axis=0) - expected) < 4.5 * found.std(axis=0) / 1000**0.5).all()


@pytest.mark.slow
def test_continuation_ends_an_episode_by_chance_and_hides_the_time() -> None:
    game = made("prisoners-dilemma", rounds=60, continuation=0.8)
    rewards, _ = meet(game, [("tit-for-tat", "always-defect")], 1000)
    total = rewards[0].sum(axis=1)
    # 1 / (1 - 0.8) = 5 rounds are expected, the first one among them.
    expected = np.array([S + 4 * P, T + 4 * P])
    assert (np.abs(total.mean(axis=0) - expected) < 4.5 * total.std(axis=0) / 1000**0.5).all()
    later = game.reset(jax.random.key(0))._replace(time=np.int16(9))
    assert game.observe(later).features[0, -1] == 0
    state, outcome = game.step(
        jax.random.key(0), later._replace(time=np.int16(59)), jnp.zeros(2, int)
    )
    assert bool(outcome.truncated) == bool(game.alive(state).any())


def test_tables_of_two_places_and_of_many_players() -> None:
    pennies = made("matching-pennies", rounds=3)
    state = pennies.reset(jax.random.key(0))
    for actions, expected in (([0, 0], [1, -1]), ([1, 0], [-1, 1]), ([1, 1], [1, -1])):
        state, outcome = pennies.step(jax.random.key(0), state, jnp.array(actions))
        assert outcome.reward.tolist() == expected
    assert outcome.terminated.all() and not outcome.truncated
    goods = made("public-goods", players=4, multiplier=2.0)
    _, outcome = goods.step(
        jax.random.key(0), goods.reset(jax.random.key(0)), jnp.array([0, 0, 1, 0])
    )
    np.testing.assert_allclose(outcome.reward, [0.5, 0.5, 1.5, 0.5])
    three = made("", payoff=(0, 1, 2, 3, 4, 5, 6, 7, 8))
    assert three.action_names == ("0", "1", "2") and "always-2" in three.scripted
    assert three.pay(jnp.arange(2), jnp.array([1, 2])).tolist() == [5, 7]


@pytest.mark.parametrize(
    ("name", "fields", "words"),
    [
        ("", {}, "needs a pay-off table"),
        ("", {"payoff": (1, 2, 3)}, "has 3 numbers; two players"),
        ("", {"payoff": (1, 2, 3, 4), "players": 3}, "3 players need two rows of 3"),
        ("chicken", {"players": 3}, "a pay-off table for 2 players, not 3"),
        ("chiken", {}, "chicken"),
    ],
)
def test_errors_say_what_fits(name: str, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        made(name, **fields)


def test_text_and_picture_show_what_was_done() -> None:
    game = made("chicken")
    state = game.reset(jax.random.key(0))
    before = game.draw(state)
    state = state._replace(last=np.array([0, 1], np.int8), time=np.int16(1))
    assert game.text(state).splitlines()[1:] == ["0: swerve       +1", "1: dare         +4"]
    after = game.draw(state)
    assert before.shape == after.shape and (before != after).any()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("matching-pennies", {"noise": 0.3, "rounds": 20}),
        ("public-goods", {"noise": 0.3, "continuation": 0.9, "rounds": 20}),
    ],
)
def test_keeps_to_the_protocol(name: str, fields: dict[str, Any]) -> None:
    check_game(made(name, **fields), copies=8, steps=50)
