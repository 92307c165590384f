"""The best plan against scripted players of matrix games: closed forms, and all plans tried."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.core.errors import UserError
from coplay.evaluation.best_plan import best_plan, best_plans


@pytest.mark.parametrize(
    ("name", "reward", "actions"),
    [
        ("tit-for-tat", 49 * 3 + 5, [["cooperate", 49], ["defect", 1]]),
        ("grim", 49 * 3 + 5, [["cooperate", 49], ["defect", 1]]),
        ("always-defect", 50, [["defect", 50]]),
        ("always-cooperate", 250, [["defect", 50]]),
        # It defects first: cooperating once buys 48 rounds of cooperation and a last defection.
        ("suspicious", 0 + 48 * 3 + 5, [["cooperate", 49], ["defect", 1]]),
    ],
)
def test_fifty_known_rounds_of_the_dilemma(name: str, reward: float, actions: list) -> None:
    game: Any = coplay.make_game("matrix:prisoners-dilemma", rounds=50)
    for seat in range(2):
        found = best_plan(game, seat, game.scripted[name])
        assert found == {"reward": pytest.approx(reward), "actions": actions}


def test_a_continuation_discounts_and_a_mixture_is_answered() -> None:
    """Against tit-for-tat that goes on with probability c cooperation is worth 3 / (1 - c) in the
    long run. Heads with 0.9: tails wins 0.8 a round for the one who wants them to differ."""
    dilemma: Any = coplay.make_game("matrix:prisoners-dilemma", continuation=0.9, rounds=400)
    found = best_plan(dilemma, 0, dilemma.scripted["tit-for-tat"])
    assert found["reward"] == pytest.approx(30, abs=1e-6)
    pennies: Any = coplay.make_game("matrix:matching-pennies", rounds=10, noise=0.25)
    found = best_plan(pennies, 1, pennies.scripted["mixture-90"])
    assert found["reward"] == pytest.approx(10 * 0.8 * 0.25) and found["actions"] == [["tails", 10]]


@pytest.mark.slow
def test_all_plans_tried() -> None:
    """Against a deterministic player a plan is a sequence of actions: the best of all 2^6."""
    game: Any = coplay.make_game("matrix:chicken", rounds=6)
    step = jax.jit(game.step)
    for name in ("win-stay-lose-shift", "grim", "suspicious"):
        policy = jax.jit(lambda state, name=name: game.scripted[name](game, state))
        best = -np.inf
        for plan in itertools.product(range(2), repeat=6):
            state, total = game.reset(jax.random.key(0)), 0.0
            for action in plan:
                answer = int(jnp.argmax(policy(game.permute_seats(state, jnp.array([1, 0])))))
                both = jnp.array([action, answer])
                state, outcome = step(jax.random.key(0), state, both)
                total += float(outcome.reward[0])
            best = max(best, total)
        assert best_plan(game, 0, game.scripted[name])["reward"] == pytest.approx(best)


def test_plans_are_for_two() -> None:
    three: Any = coplay.make_game("matrix:public-goods", players=3)
    with pytest.raises(UserError, match="two players"):
        best_plan(three, 0, three.scripted["grim"])
    assert best_plans(three, ["grim"] * 3) == [None] * 3
    two = coplay.make_game("matrix:chicken")
    assert [plan is None for plan in best_plans(two, ["grim", "runs/ppo"])] == [True, False]
