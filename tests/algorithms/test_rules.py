"""Partners made of rules: each number does what it says."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.algorithms.known_planner import KnownPartner
from coplay.algorithms.rules import RuleMemory, RuleParameters, draw_rules, make_rule_partner
from coplay.core.errors import UserError
from coplay.core.player import View
from coplay.games.stag_hunt import nearest_hare, nearest_stag
from coplay.nn.config import NetworkConfig
from coplay.nn.networks import make_network, view_shape

GAME = coplay.make_game("stag-hunt", height=3, width=3, players=2, hares=2)
COPIES = 6
STAG, HARE = 0, 1


def partner(**changed: Any) -> Any:
    """One that always hunts the stag, unless said otherwise."""
    plain = {"preference": [50.0, 0.0, 0.0, 0.0, 0.0], "patience": np.inf}
    rest = dict.fromkeys(("reciprocity", "change", "laziness", "noise"), 0.0)
    values = plain | rest | changed
    return make_rule_partner(
        GAME, RuleParameters(**{name: np.asarray(value) for name, value in values.items()})
    )


@jax.jit
def begin(keys: Any) -> Any:
    states = jax.vmap(GAME.reset)(keys)
    return states, jax.tree.map(lambda x: x[:, 0], jax.vmap(GAME.observe)(states))


def view(time: int = 0) -> View:
    states, seen = begin(jax.random.split(jax.random.key(3), COPIES))
    number = jnp.full(COPIES, time, jnp.int32)
    nothing = jnp.full(COPIES, -1)
    return View(seen, jnp.ones(COPIES, bool), states, number, number, nothing, jnp.zeros(COPIES))


@jax.jit
def act(player: Any, key: Any, seen: View, memory: RuleMemory) -> Any:
    return player.act(GAME, key, seen, memory)


def acts(player: Any, seen: View, memory: RuleMemory | None = None) -> tuple[np.ndarray, Any]:
    """Probabilities of the actions, and the memory after them."""
    start = player.start(COPIES) if memory is None else memory
    logits, memory = act(player, jax.random.key(0), seen, start)
    return np.asarray(jax.nn.softmax(logits)), memory


def by(policy: Any, seen: View) -> np.ndarray:
    return np.asarray(jax.jit(jax.vmap(lambda state: policy(GAME, state)))(seen.state))


@pytest.mark.slow
def test_what_it_prefers_is_what_it_does() -> None:
    seen = view()
    np.testing.assert_allclose(acts(partner(), seen)[0], by(nearest_stag, seen), atol=1e-6)
    hares = partner(preference=[0.0, 50.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(acts(hares, seen)[0], by(nearest_hare, seen), atol=1e-6)


def test_noise_and_laziness_are_mixed_in() -> None:
    seen, legal = view(), np.asarray(view().observation.legal)
    plain, anything = by(nearest_stag, seen), legal / legal.sum(1, keepdims=True)
    stays = np.eye(GAME.actions)[4]
    found = acts(partner(noise=0.3, laziness=0.2), seen)[0]
    np.testing.assert_allclose(found, 0.7 * (0.8 * plain + 0.2 * stays) + 0.3 * anything, atol=1e-6)


def test_it_gives_up_when_its_patience_ends() -> None:
    player = partner(patience=2.0, preference=[50.0, 20.0, 0.0, 0.0, 0.0])
    memory = player.start(COPIES)
    blocks = []
    for time in range(4):
        _, memory = acts(player, view(time), memory)
        blocks.append(np.asarray(memory.block).tolist())
    assert blocks == [[STAG] * COPIES] * 2 + [[HARE] * COPIES] * 2


def test_it_returns_what_the_others_did_in_the_last_episode() -> None:
    player = partner(preference=[0.0, 0.0, -50.0, -50.0, -50.0], reciprocity=50.0)
    start = player.start(COPIES)
    kind = start._replace(before=jnp.where(jnp.arange(COPIES) < 3, 1.0, -1.0))
    _, memory = acts(player, view(), kind)
    assert memory.block.tolist() == [STAG] * 3 + [HARE] * 3


def test_it_notices_who_cooperated() -> None:
    player, seen = partner(), view()
    # Seat 1 leaves by a stag in the first copy and by a hare in the second.
    last = jnp.full((COPIES, 2), 4, jnp.int8).at[0, 1].set(5).at[1, 1].set(6)
    alive = jnp.ones((COPIES, 2), bool).at[:2, 1].set(False)
    after = seen.state._replace(last=last, alive=alive)
    over = jnp.arange(COPIES) < 3
    memory = player.notice(GAME, seen, after, over, player.start(COPIES))
    assert memory.before[:3].tolist() == [1.0, -1.0, -1.0]
    assert not memory.before[3:].any() and not memory.cooperated.any()
    going = player.notice(GAME, seen, after, ~over, player.start(COPIES))
    assert going.cooperated[:, 0].tolist() == [True, False, False, False, False, False]


def test_partners_are_drawn_by_the_seed_and_differ() -> None:
    drawn, again = draw_rules(GAME, 12, 1), draw_rules(GAME, 12, 1)
    assert all(np.array_equal(a, b) for a, b in zip(drawn, again, strict=True))
    assert not np.array_equal(drawn.preference, draw_rules(GAME, 12, 2).preference)
    assert set(drawn.preference.argmax(1)) == set(range(5))
    assert np.isinf(drawn.patience).any() and np.isfinite(drawn.patience).any()


def test_other_blocks_are_refused() -> None:
    with pytest.raises(UserError, match="3 building blocks cannot play stag-hunt, which has 5"):
        make_rule_partner(GAME, RuleParameters(np.zeros(3), *[np.zeros(())] * 5))


def test_who_does_not_know_the_choice_expects_a_mixture() -> None:
    seen = view()
    likes = [np.log(3.0), 0.0, -50.0, -50.0, -50.0]
    mixed = partner(preference=likes, noise=0.2)
    found = jax.jit(lambda player: player.usual(GAME, seen.state, seen.observation.legal))(mixed)
    legal = np.asarray(seen.observation.legal)
    even = legal / legal.sum(-1, keepdims=True)
    doing = 0.75 * by(nearest_stag, seen) + 0.25 * by(nearest_hare, seen)
    assert np.allclose(jax.nn.softmax(found), 0.8 * doing + 0.2 * even, atol=1e-5)


def test_a_planner_expects_of_its_partner_what_the_partner_does() -> None:
    """The co-player in seat 1 of a state sees it with itself first."""
    key = jax.random.key(5)
    hare_hunter = partner(preference=[0.0, 50.0, 0.0, 0.0, 0.0])
    states = jax.jit(jax.vmap(GAME.reset))(jax.random.split(key, COPIES))

    @jax.jit
    def expected(states: Any) -> Any:
        config, shape = NetworkConfig(hidden=(2,)), view_shape(GAME)
        own = (make_network(config, shape, outputs, key, 1.0) for outputs in (GAME.actions, 1))
        planner = KnownPartner(hare_hunter, *own)
        return planner.others(GAME, jax.vmap(GAME.observe)(states), states, ())

    theirs = jax.vmap(lambda state: nearest_hare(GAME, GAME.ego_state(state, 1)))
    assert np.allclose(np.exp(expected(states))[:, 0], jax.jit(theirs)(states), atol=1e-5)
