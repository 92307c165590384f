"""Training from Python: fields by their paths, own players in seats, progress and pictures."""

import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest

import coplay
from coplay.algorithms import registry
from coplay.api.training import make_config, train

SMALL: dict[str, Any] = {
    "copies": 4,
    "rollout": 4,
    "block": 1,
    "network.hidden": (4,),
    "minibatches": 1,
    "epochs": 1,
    "episodes": 4,
    "steps": 16,
}


class Stubborn(coplay.Player):
    """Always the same."""

    def act(self, game, key, view, memory):
        logits = jnp.arange(game.actions) * 9.0
        return jnp.broadcast_to(logits, view.observation.legal.shape), memory


def test_fields_by_their_paths() -> None:
    nested = make_config("ppo", "identity", {}, {"game.players": 3, "steps": 5, "clip": 0.1})
    assert (nested.game.players, nested.run.steps, nested.learner.clip) == (3, 5, 0.1)
    with pytest.raises(coplay.UserError, match="did you mean 'clip'"):
        make_config("ppo", "identity", {}, {"clipp": 0.1})
    with pytest.raises(coplay.UserError, match="did you mean 'players'"):
        make_config("ppo", "identity", {"playres": 3}, {})


@pytest.mark.slow
def test_own_players_sit_in_a_run(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(registry, "_UNREGISTERED", set())
    out, seating = tmp_path / "run", ["ppo", Stubborn()]
    summary = train("ppo", "identity", out, game_fields={"players": 2}, seating=seating, **SMALL)
    assert summary["folder"] == str(out) and summary["seats"][1]["player"] == "Stubborn"
    assert summary["seats"][1]["reward"] == 4, "it always does what pays"
    shown = capsys.readouterr().err
    assert "steps/s" in shown and "Stubborn is not registered" in shown
    assert (out / "learning_curve.png").exists()
    assert json.loads((out / "config.json").read_text())["run"]["seating"] == "ppo,Stubborn"
    longer = train(out=out, resume=True, steps=32, quiet=True, pictures=False)
    assert longer["steps"] == 32 and "steps/s" not in capsys.readouterr().err
    # Another process does not know the object: it says what to do.
    monkeypatch.delitem(registry.PLAYERS, "Stubborn")
    with pytest.raises(coplay.UserError, match=r"'Stubborn'.*coplay.register_player"):
        train(out=out, resume=True, steps=48, quiet=True)
    coplay.register_player("Stubborn", Stubborn)
    assert train(out=out, resume=True, steps=48, quiet=True, pictures=False)["steps"] == 48


@pytest.mark.slow
def test_own_players_among_strangers(tmp_path: Path) -> None:
    small: dict[str, Any] = {"steps": 16, "last": 16, "seeds": 1, "normalise": False, "quiet": True}
    with pytest.raises(coplay.UserError, match="cannot be renumbered"):
        coplay.adapt("random", ["random"] * 3, game="identity", out=tmp_path, **small)
    game = coplay.make_game("stag-hunt", height=3, width=3, players=2, horizon=4)
    result = coplay.adapt(Stubborn, [Stubborn()], game=game, out=tmp_path / "a", **small)
    assert result["player"] == result["against"] == "Stubborn"
    met = coplay.cross_play(game, [Stubborn(), "random"], episodes=8)
    assert met["players"] == ["Stubborn", "random"]
