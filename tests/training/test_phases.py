"""Training with the partners of a pack."""

import json
import shutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.algorithms.ppo.learner import PPO
from coplay.algorithms.registry import learner_parts
from coplay.core.config import with_fields
from coplay.core.errors import UserError
from coplay.games.diagnostic import HiddenKind
from coplay.matches.rollout import rollout
from coplay.training.block import groups_of, init_state
from coplay.training.config import RunConfig, TrainConfig
from coplay.training.phases import plan_phases
from coplay.training.players import make_player
from coplay.training.run import RunFolder, load_run
from tests.training.kinds import CONFIG, kinds_pack

SMALL: dict[str, Any] = {"network.hidden": (8,), "minibatches": 2, "epochs": 1}


@pytest.mark.parametrize(
    ("player", "game", "fields", "words"),
    [
        ("ppo", "hidden-kind", {"seating": "ppo,random"}, "leave out seating"),
        ("ppo", "identity", {}, "whose seats can be renumbered"),
        ("ppo", "stag-hunt", {}, "other views or actions"),
        ("plastic", "hidden-kind", {}, "--library 3"),
        ("plastic", "hidden-kind", {"library": 3, "copies": 32}, "times library"),
        ("plastic", "hidden-kind", {"library": 3, "copies": 48, "company": "mixed"}, "one kind"),
        ("plastic", "hidden-kind", {"partners": ""}, "give a pack by --partners"),
        ("ppo", "hidden-kind", {"partners": "nowhere"}, "holds no partners"),
    ],
)
def test_what_cannot_be_trained_is_said_before(
    tmp_path: Path, player: str, game: str, fields: dict[str, Any], words: str
) -> None:
    pack = kinds_pack(tmp_path / "pack")
    fields = {"partners": str(pack.folder)} | fields
    with pytest.raises(UserError, match=words):
        coplay.train(player, game, tmp_path / "run", quiet=True, **fields)
    assert not (tmp_path / "run").exists()


def test_a_learner_that_cannot_meet_partners_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PPO, "meets_partners", False)
    pack = kinds_pack(tmp_path / "pack")
    with pytest.raises(UserError, match="does not train with --partners"):
        coplay.train("ppo", "hidden-kind", tmp_path / "run", quiet=True, partners=str(pack.folder))


def test_the_learner_takes_the_seats_of_the_game_in_turn(tmp_path: Path) -> None:
    pack = kinds_pack(tmp_path / "pack")
    config = TrainConfig(
        "ppo",
        "hidden-kind",
        learner_parts("ppo")[0](),
        CONFIG,
        RunConfig(partners=str(pack.folder), company="mixed", meeting_episodes=4),
    )
    (phase,) = plan_phases(config, HiddenKind(CONFIG))
    assert phase.learners[0].active == (0,) and phase.others[0].seats == (1,)
    assert phase.meeting == 4 and not phase.others[0].player.alike  # type: ignore[attr-defined]
    np.testing.assert_array_equal(phase.order(4, 2), [[0, 1], [1, 0], [0, 1], [1, 0]])


@pytest.mark.slow
def test_a_run_names_its_partners_and_goes_on_with_no_others(tmp_path: Path) -> None:
    pack = kinds_pack(tmp_path / "pack")
    short = {"partners": str(pack.folder), "copies": 8, "rollout": 8, "episodes": 8} | SMALL
    given: dict[str, Any] = {"quiet": True, "pictures": False}
    coplay.train("ppo", "hidden-kind", tmp_path / "whole", steps=256, **given, **short)
    run = tmp_path / "run"
    coplay.train("ppo", "hidden-kind", run, steps=128, **given, **short)
    stated = json.loads((run / "config.json").read_text())["partners"]
    assert stated == RunFolder(run).partners() and stated["path"] == str(pack.folder)
    assert load_run(run).learned == [0, 1]
    coplay.train("ppo", "hidden-kind", run, steps=256, resume=True, **given)
    states = [load_run(folder).states for folder in (run, tmp_path / "whole")]
    assert jax.tree.all(jax.tree.map(np.array_equal, *states))
    game = HiddenKind(CONFIG)
    players = [make_player(str(run), game, seat) for seat in range(2)]
    assert jax.tree.all(jax.tree.map(np.array_equal, *players))
    shutil.rmtree(pack.folder)
    kinds_pack(tmp_path / "pack", seed=1)
    with pytest.raises(UserError, match="does not hold the partners"):
        coplay.train("ppo", "hidden-kind", run, steps=512, resume=True, **given)


@pytest.mark.slow
@pytest.mark.parametrize(
    "player", ["ppo-gru", "rl2", "liam", "varibad", "plastic", "mappo", "hyper-mappo"]
)
def test_learning_begins_with_the_policy_that_acted(tmp_path: Path, player: str) -> None:
    """Also where partners changed within a rollout and memories were emptied."""
    pack = kinds_pack(tmp_path / "pack")
    more: dict[str, dict[str, Any]]
    more = {"plastic": {"library": 3}, "mappo": {"memory.kind": "gru", "memory.chunk_length": 8}}
    more["hyper-mappo"] = {"memory.chunk_length": 8}
    settings = with_fields(learner_parts(player)[0](), SMALL | more.get(player, {}))
    run = RunConfig(partners=str(pack.folder), meeting_episodes=3, copies=6, rollout=16)
    config = TrainConfig(player, "hidden-kind", settings, CONFIG, run)
    game, streams = HiddenKind(CONFIG), jnp.arange(2)
    (phase,) = plan_phases(config, game)
    (learner,) = phase.learners

    @jax.jit
    def ratio(key: jax.Array) -> Any:
        (state,), table = init_state(phase, game, key, 6, streams)
        # Networks of some size, so that what is remembered matters.
        where = state.parameters if "mappo" in player else state
        actor = jax.tree.map(lambda x: x + 0.5 * jax.random.normal(key, x.shape), where.actor)
        where = where._replace(actor=actor)
        state = state._replace(parameters=where) if "mappo" in player else where
        order, found = phase.order(6, 2), []
        for number in range(2):
            groups, own = groups_of(phase, (state,)), jax.random.fold_in(key, number)
            table, played = rollout(game, groups, table, own, 16, streams, order, meeting=3)
            found.append(learner.first_ratio(state, learner.training_data(game, played)))
        return jnp.stack(found)

    assert float(jnp.max(ratio(jax.random.key(0)))) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("player", "fields", "least", "most"),
    [
        ("ppo", {}, 0.5, 0.85),
        ("rl2", {"memory.units": 32}, 1.5, 2.0),
        ("liam", {"memory.units": 32}, 1.5, 2.0),
        ("varibad", {"memory.units": 32}, 1.5, 2.0),
        ("plastic", {"library": 3}, 1.5, 2.0),
    ],
)
def test_who_remembers_finds_out_whom_it_plays_with(
    tmp_path: Path, player: str, fields: dict[str, Any], least: float, most: float
) -> None:
    """Two steps in an episode, ten episodes in a meeting, three kinds of partners: without memory
    2/3 can be had in an episode; with it close to 2."""
    pack = kinds_pack(tmp_path / "pack")
    summary = coplay.train(
        player,
        "hidden-kind",
        tmp_path / "run",
        partners=str(pack.folder),
        steps=120_000,
        copies=96,
        rollout=40,
        episodes=10_240,
        quiet=True,
        pictures=False,
        **{"network.hidden": (32,), "optimiser.learning_rate": 2e-3, "minibatches": 4} | fields,
    )
    assert least < summary["seats"][0]["reward"] <= most
