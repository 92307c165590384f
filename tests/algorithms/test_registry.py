"""Own players and learners by name."""

import jax.numpy as jnp
import pytest

from coplay.algorithms import registry
from coplay.algorithms.registry import entry_of, is_unregistered, register_learner, register_player
from coplay.algorithms.scripted import Scripted
from coplay.core.errors import UserError
from coplay.core.player import Player
from coplay.games.registry import make_game
from coplay.training.players import make_player


@pytest.fixture(autouse=True)
def no_players(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "PLAYERS", {})
    monkeypatch.setattr("coplay.training.players.PLAYERS", registry.PLAYERS)
    monkeypatch.setattr(registry, "_UNREGISTERED", set())


class Weighted(Player):
    weight: jnp.ndarray

    def act(self, game, key, view, memory):
        return self.weight * jnp.ones(view.observation.legal.shape), memory


def stay(game, state):
    return jnp.eye(game.actions)[0]


def test_instances_classes_and_functions() -> None:
    game, one = make_game("stag-hunt"), Weighted(jnp.ones(()))
    register_player("one", one)
    register_player("stay", stay)
    assert make_player("one", game) is one
    assert make_player("stay", game) == Scripted(stay)
    mix = make_player("mix:one:stay", game)
    assert mix.players == (one, Scripted(stay))  # type: ignore[attr-defined]


def test_objects_are_named_by_their_class_until_they_are_registered() -> None:
    one, other = Weighted(jnp.ones(())), Weighted(jnp.zeros(()))
    assert [entry_of(x) for x in ("ns", one, other, one, stay)] == [
        *("ns", "Weighted", "Weighted-2", "Weighted", "stay")
    ]
    assert entry_of(Weighted(jnp.ones(()))) == "Weighted", "made of the same values"
    assert is_unregistered("Weighted") and is_unregistered("stay") and not is_unregistered("ns")
    register_player("Weighted", one)
    assert not is_unregistered("Weighted")


@pytest.mark.parametrize("name", ["", "a,b", "a:b", "a@b", "a=b", "a/b", "a b", "random", "mix"])
def test_names_that_a_seating_could_not_read(name: str) -> None:
    with pytest.raises(UserError, match="cannot name a player"):
        register_player(name, stay)
    with pytest.raises(UserError, match="cannot name a player"):
        register_learner(name, int, int)


def test_names_that_mean_something_already() -> None:
    with pytest.raises(UserError, match="is a learner"):
        register_player("ppo", stay)
    register_player("ns", stay)
    with pytest.raises(UserError, match="has a scripted player 'ns' of its own"):
        make_player("ns", make_game("stag-hunt"))
    with pytest.raises(UserError, match=r"must take \(game, state\), but takes \(state\)"):
        register_player("alone", lambda state: state)  # type: ignore[misc]
    with pytest.raises(UserError, match="is no player"):
        registry._as_player(3)
    with pytest.raises(UserError, match="--load FILE_OR_MODULE"):
        make_player("gone", make_game("stag-hunt"))
