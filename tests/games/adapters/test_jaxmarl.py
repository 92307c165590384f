"""JaxMARL's environments as games: the whole registry, and stepping that equals JaxMARL's own."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.bench import jaxmarl as bench
from coplay.cli.main import run
from coplay.core.compilation import QUICK
from coplay.core.errors import UserError
from coplay.core.group import group_players
from coplay.games.adapters.jaxmarl import JaxmarlGame, import_jaxmarl, quiet
from coplay.games.adapters.jaxmarl_kinds import KINDS, REFUSED, EnvStep, nav_gone, smax_gone
from coplay.games.check import check_game
from coplay.matches.rollout import new_table, rollout
from coplay.training.players import make_player
from coplay.training.run import RunFolder, make_game_of

jaxmarl = pytest.importorskip("jaxmarl")

# environment -> actions of each seat, planes of a view, features of a view
SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], int]] = {
    "MPE_simple_v3": ((5,), (0, 0, 0), 4),
    "MPE_simple_tag_v3": ((5,) * 4, (0, 0, 0), 16),
    "MPE_simple_world_comm_v3": ((20, 5, 5, 5, 5, 5), (0, 0, 0), 34),
    "MPE_simple_spread_v3": ((5,) * 3, (0, 0, 0), 18),
    "MPE_simple_crypto_v3": ((4,) * 3, (0, 0, 0), 8),
    "MPE_simple_speaker_listener_v4": ((3, 5), (0, 0, 0), 11),
    "MPE_simple_push_v3": ((5,) * 2, (0, 0, 0), 19),
    "MPE_simple_adversary_v3": ((5,) * 3, (0, 0, 0), 10),
    "MPE_simple_reference_v3": ((50,) * 2, (0, 0, 0), 21),
    "switch_riddle": ((3,) * 3, (0, 0, 0), 2),
    "SMAX": ((10,) * 10, (0, 0, 0), 127),
    "HeuristicEnemySMAX": ((10,) * 5, (0, 0, 0), 127),
    "storm": ((5,) * 2, (5, 5, 16), 5),
    "storm_2p": ((5,) * 2, (5, 5, 10), 6),
    "storm_np": ((8,) * 2, (5, 5, 14), 0),
    "hanabi": ((21,) * 2, (0, 0, 0), 658),
    "overcooked": ((6,) * 2, (4, 5, 26), 0),
    "overcooked_v2": ((6,) * 2, (4, 5, 30), 0),
    "coin_game": ((5,) * 2, (3, 3, 4), 0),
    "jaxnav": ((15,) * 2, (0, 0, 0), 205),
}


def made(name: str, **fields: Any) -> JaxmarlGame:
    game = coplay.make_game(name, **fields)
    assert isinstance(game, JaxmarlGame)
    return game


# --- the registry ------------------------------------------------------------------------------


def test_every_environment_is_known() -> None:
    registered = import_jaxmarl().registered_envs
    assert sorted([*KINDS, *REFUSED]) == sorted(registered)
    assert sorted(SHAPES) == sorted(KINDS)


@pytest.mark.parametrize("environment", SHAPES)
@pytest.mark.slow
def test_shapes(environment: str) -> None:
    """By tracing alone: a step fits together with what came before it, and the sizes are known."""
    counts, planes, features = SHAPES[environment]
    game = made(f"jaxmarl:{environment}")
    assert game.counts == counts and len(game.action_names) == max(counts)
    assert len(set(game.action_names)) == max(counts)

    def play(key: jax.Array) -> Any:
        state = game.reset(key)
        following, outcome = game.step(key, state, jnp.zeros(game.seats, jnp.int32))
        return state, following, outcome, game.observe(following), game.global_state(following)

    state, following, outcome, view, global_state = jax.eval_shape(play, jax.random.key(0))
    types = [jax.tree.map(lambda x: (x.shape, str(x.dtype)), tree) for tree in (state, following)]
    assert types[0] == types[1]
    seats = len(counts)
    assert outcome.reward.shape == (seats,) and outcome.reward.dtype == jnp.float32
    assert view.planes.shape == (seats, *planes) and view.features.shape == (seats, features)
    assert view.legal.shape == (seats, max(counts)) and global_state.ndim == 1


@pytest.mark.parametrize("environment", REFUSED)
def test_refused(environment: str) -> None:
    with pytest.raises(UserError, match="cannot be played: it") as error:
        coplay.make_game(f"jaxmarl:{environment}")
    assert environment in str(error.value)


def test_zealots_against_zerglings_on_open_ground() -> None:
    game = made("smax:6z_vs_24zg_flat")
    state = game.reset(jax.random.key(0))
    kinds = np.asarray(state.env.state.unit_types)
    names = [game.env._env.unit_type_names[kind] for kind in kinds]
    assert names == ["zealot"] * 6 + ["zergling"] * 24
    assert (game.seats, game.actions) == (6, 5 + 24)


@pytest.mark.parametrize("scenario", ["5m_vs_6m", "smacv2_5_units"])
@pytest.mark.parametrize("enemies", ["heuristic", "players"])
@pytest.mark.slow
def test_smax_scenarios(scenario: str, enemies: str) -> None:
    game = made(f"smax:{scenario}", enemies=enemies)
    allies, others = (5, 6) if scenario == "5m_vs_6m" else (5, 5)
    both = (5 + others,) * allies + (5 + allies,) * others
    assert game.counts == (both if enemies == "players" else both[:allies])
    view = jax.eval_shape(lambda key: game.observe(game.reset(key)), jax.random.key(0))
    assert view.legal.shape == (game.seats, 5 + others)


# --- what a user may get wrong ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("jaxmarl:MPE_simple_spred_v3", {}, "did you mean 'MPE_simple_spread_v3'"),
        ("smax:4m", {}, "unknown scenario of SMAX '4m'"),
        ("jaxmarl:MPE_simple_spread_v3", {"options": ("num_agent=4",)}, "'num_agents'"),
        ("jaxmarl:MPE_simple_spread_v3", {"options": ("num_agents",)}, "expected name=value"),
        ("jaxmarl:MPE_simple_spread_v3", {"options": ("local_ratio=7",)}, "between 0.0 and 1.0"),
        ("jaxmarl:MPE_simple_v3", {"options": ("action_type=Continuous",)}, "discrete actions"),
        ("jaxmarl:overcooked", {"options": ("layout=ring",)}, "'coord_ring'"),
    ],
)
def test_errors(name: str, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        coplay.make_game(name, **fields)


def test_options_reach_jaxmarl() -> None:
    game = made("jaxmarl:MPE_simple_spread_v3", options=("num_agents=4", "local_ratio=0.25"))
    assert game.seats == 4 and game.env.local_ratio == 0.25
    matrix = [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    storm = made("jaxmarl:storm_2p", options=(f"payoff_matrix={matrix}", "num_inner_steps=9"))
    assert storm.env.num_inner_steps == 9
    assert made("jaxmarl:overcooked", options=("layout=coord_ring",)).env.width == 5


def test_the_same_arguments_share_programs() -> None:
    """Compiled programs hang on the static parts of a game, which must be equal."""
    alike = {jax.tree.structure(made("smax:3m")) for _ in range(2)}
    assert len(alike) == 1
    assert jax.tree.structure(made("smax:3m", dead="stay")) not in alike


@pytest.mark.slow
def test_nothing_is_imported_or_printed_unasked() -> None:
    script = (
        "import sys, coplay, coplay.cli.main, coplay.games.registry\n"
        "assert 'jaxmarl' not in sys.modules and 'flax' not in sys.modules\n"
        "coplay.make_game('jaxmarl:MPE_simple_v3')"
    )
    command = [sys.executable, "-c", script]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b""


def test_without_jaxmarl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jaxmarl", None)
    with pytest.raises(UserError, match=r"pip install -e '\.\[jaxmarl\]'"):
        coplay.make_game("jaxmarl:MPE_simple_spread_v3", options=("num_agents=7",))


# --- stepping ----------------------------------------------------------------------------------


def played_both(game: JaxmarlGame, steps: int, copies: int = 4) -> tuple[Any, Any, Any]:
    """The same random actions with the same keys: our states, views and outcomes, and what
    JaxMARL's `step_env` gives; [copy, time, ...]. No resets."""

    def both(key: jax.Array) -> Any:
        reset_key, key = jax.random.split(key)
        state = game.reset(reset_key)
        theirs = game.env.reset(reset_key)[1]

        def one(carry: Any, key: jax.Array) -> Any:
            state, theirs = carry
            act_key, step_key = jax.random.split(key)
            legal = game.observe(state).legal
            action = jax.random.categorical(act_key, jnp.where(legal, 0.0, -1e9))
            given = {agent: action[seat] for seat, agent in enumerate(game.env.agents)}
            state, outcome = game.step(step_key, state, action)
            view, theirs, reward, done, _ = game.env.step_env(step_key, theirs, given)
            ours = (state, game.observe(state), outcome)
            return (state, theirs), (ours, (view, theirs, reward, done), action)

        return jax.lax.scan(one, (state, theirs), jax.random.split(key, steps))[1]

    with quiet():
        keys = jax.random.split(jax.random.key(3), copies)
        played = jax.jit(jax.vmap(both), compiler_options=QUICK)(keys)
        return jax.tree.map(np.asarray, played)


@pytest.mark.parametrize(
    ("name", "fields", "steps"),
    [
        pytest.param("jaxmarl:MPE_simple_speaker_listener_v4", {}, 12, marks=pytest.mark.slow),
        pytest.param("smax:3m", {"dead": "stay"}, 30, marks=pytest.mark.slow),
        ("jaxmarl:coin_game", {"options": ("num_inner_steps=4", "num_outer_steps=3")}, 12),
        pytest.param(
            "jaxmarl:hanabi",
            {"options": ("num_agents=3", "num_colors=2", "hand_size=2")},
            20,
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "jaxmarl:storm", {"options": ("num_inner_steps=10",)}, 10, marks=pytest.mark.slow
        ),
    ],
)
@pytest.mark.slow
def test_steps_are_those_of_jaxmarl(name: str, fields: dict[str, Any], steps: int) -> None:
    """Until the episode ends; after its end JaxMARL's own states are of no account."""
    game = made(name, **fields)
    (state, view, outcome), (theirs_view, theirs, reward, done), _ = played_both(game, steps)
    over = np.cumsum(done["__all__"], axis=1) > 0
    before = np.concatenate([np.zeros_like(over[:, :1]), over[:, :-1]], axis=1)
    for one, other in zip(jax.tree.leaves(state.env), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_array_equal(one[~before], other[~before])
    ended = outcome.truncated | ~state.alive.any(-1)
    np.testing.assert_array_equal(ended[~before], done["__all__"][~before])
    for seat, agent in enumerate(game.env.agents):
        due = np.asarray(reward[agent] if isinstance(reward, dict) else reward[..., seat], "f4")
        np.testing.assert_array_equal(outcome.reward[..., seat][~before], due[~before])
        if name == "jaxmarl:storm":
            seen = [theirs_view["inventory"][..., seat], theirs_view["observations"][:, :, seat]]
        else:
            seen = [theirs_view[agent]]
        for array in seen:
            if array.ndim == 5:
                np.testing.assert_array_equal(view.planes[:, :, seat][~before], array[~before])
            else:
                size = array.shape[-1]
                np.testing.assert_array_equal(
                    view.features[:, :, seat, :size][~before], array[~before]
                )
                assert not view.features[:, :, seat, size:].any()
        count = game.counts[seat]
        assert not view.legal[:, :, seat, count:].any()
        if KINDS[game.environment].legal is None:
            assert view.legal[:, :, seat, :count].all()


# --- deaths ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def battle() -> tuple[JaxmarlGame, Any, Any, Any]:
    """Random allies, who all die before long."""
    game = made("smax:3m")
    return game, *played_both(game, 40, copies=16)


@pytest.mark.slow
def test_the_dead_leave(battle: Any) -> None:
    game, (state, view, outcome), (_, theirs, reward, _), _ = battle
    standing = theirs.state.unit_alive[..., :3]
    decided = ~standing.any(-1) | ~theirs.state.unit_alive[..., 3:].any(-1)
    decided = np.cumsum(decided, axis=1) > 0
    expected = standing & ~decided[..., None]
    np.testing.assert_array_equal(state.alive, expected)
    before = np.concatenate([np.ones_like(expected[:, :1]), expected[:, :-1]], axis=1)
    np.testing.assert_array_equal(outcome.terminated, before & ~expected)
    assert not outcome.truncated.any() and decided[:, -1].any()
    # JaxMARL goes on paying the dead their share of the side's reward; a seat that left gets none.
    team = np.stack([reward[agent] for agent in game.env.agents], axis=-1)
    assert (team * ~before).any()
    np.testing.assert_array_equal(outcome.reward, np.where(before, team, 0))
    dead = np.array([action == "stop" for action in game.action_names])
    assert (view.legal[~standing] == dead).all()


def test_masks_are_those_of_jaxmarl(battle: Any) -> None:
    game, (_, view, _), (_, theirs, _, _), _ = battle
    with quiet():
        masks = jax.vmap(jax.vmap(game.env.get_avail_actions))(theirs)
    for seat, agent in enumerate(game.env.agents):
        np.testing.assert_array_equal(view.legal[:, :, seat], masks[agent].astype(bool))
    assert view.legal[..., 5:].any(), "somebody was in range of an enemy"


def test_a_won_battle_is_told() -> None:
    game = made("smax:3m")
    state = game.reset(jax.random.key(0))
    assert game.scores(state)["won"] == 0
    for alive, won in ([0, 1, 0, 0, 0, 0], 1), ([0, 0, 0, 0, 0, 0], 0), ([0, 0, 0, 1, 0, 0], 0):
        units = state.env.state.replace(unit_alive=jnp.array(alive, bool))
        after = state._replace(env=state.env.replace(state=units))
        assert game.scores(after)["won"] == won


@pytest.mark.parametrize(
    ("standing", "gone"),
    [([1, 0, 1, 1], [0, 1]), ([1, 0, 0, 0], [1, 1]), ([0, 0, 1, 0], [1, 1])],
)
def test_a_decided_battle_is_over_for_everyone(standing: list[int], gone: list[int]) -> None:
    alive = jnp.array(standing, bool)
    env, after = SimpleNamespace(num_allies=2), SimpleNamespace(unit_alive=alive)
    found = smax_gone(env, EnvStep(None, jnp.zeros(2, jnp.int32), after, ~alive[:2]))
    assert found.tolist() == [bool(seat) for seat in gone]


def test_arrived_and_crashed_leave() -> None:
    """JaxNav: only those that JaxMARL takes out, and of those nobody for whom time was up."""
    after = SimpleNamespace(
        goal_reached=jnp.array([True, False, False, True]),
        move_term=jnp.array([False, True, False, False]),
    )
    done = jnp.array([True, True, True, False])
    gone = nav_gone(None, EnvStep(None, jnp.zeros(4, jnp.int32), after, done))
    assert gone.tolist() == [True, True, False, False]


# --- time --------------------------------------------------------------------------------------


def steps_to_the_end(game: JaxmarlGame, actions: list[int]) -> tuple[int, list[bool], bool]:
    """How long an episode lasts with fixed actions, and how it ends: terminated, truncated."""
    state = game.reset(jax.random.key(1))
    step = jax.jit(lambda g, *given: g.step(*given), compiler_options=QUICK)
    for number in range(100):
        state, outcome = step(game, jax.random.key(number), state, jnp.array(actions))
        if outcome.truncated or not state.alive.any():
            return number + 1, outcome.terminated.tolist(), bool(outcome.truncated)
    raise AssertionError("no end")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fields", "actions", "end"),
    [
        # JaxMARL compares the clock with the limit before the clock moves on.
        ("jaxmarl:MPE_simple_v3", {"options": ("max_steps=3",)}, [0], (4, [False], True)),
        ("smax:3m", {"max_steps": 2}, [4] * 3, (3, [False] * 3, True)),
        ("jaxmarl:switch_riddle", {}, [0] * 3, (6, [False] * 3, True)),
        ("jaxmarl:switch_riddle", {}, [2] * 3, (1, [True] * 3, False)),
        ("jaxmarl:coin_game", {"options": ("num_inner_steps=2", "num_outer_steps=3")}, [4] * 2,
         (6, [False] * 2, True)),
    ],
)  # fmt: skip
def test_time_truncates(name: str, fields: dict[str, Any], actions: list[int], end: Any) -> None:
    assert steps_to_the_end(made(name, **fields), actions) == end


# --- as games ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["jaxmarl:MPE_simple_spread_v3", "smax:3m", "jaxmarl:coin_game"])
@pytest.mark.slow
def test_check_game(name: str) -> None:
    check_game(made(name), copies=8, steps=40)


@pytest.mark.slow
def test_rollouts_begin_again_after_the_limit() -> None:
    """Episodes of four steps follow each other; what was seen last is kept for the values."""
    game = made("jaxmarl:MPE_simple_v3", options=("max_steps=3",))
    groups = group_players([make_player("random", game)])
    table = new_table(game, groups, jax.random.key(0), 2)
    played = jax.jit(rollout, static_argnames="steps", compiler_options=QUICK)
    _, trajectory = played(game, groups, table, jax.random.key(1), 9, jnp.arange(1))
    assert trajectory.over[:, 0].tolist() == [False] * 3 + [True] + [False] * 3 + [True, False]
    np.testing.assert_array_equal(trajectory.truncated[..., 0], trajectory.over)
    assert not trajectory.terminated.any()
    # A fresh state stands still; the one at the end of an episode does not.
    speed = np.abs(trajectory.observation.features[4, :, 0, :2]).sum(-1)
    assert (speed == 0).all() and (np.abs(trajectory.final.features[3, :, 0, :2]) > 0).any()


@pytest.mark.slow
def test_world_states() -> None:
    game = made("smax:3m")
    view, _ = game.env.reset(jax.random.key(0))
    state = game.reset(jax.random.key(0))
    np.testing.assert_array_equal(game.global_state(state), view["world_state"])
    coins = made("jaxmarl:coin_game")
    state = coins.reset(jax.random.key(0))
    np.testing.assert_array_equal(
        coins.global_state(state), coins.observe(state).planes.reshape(-1)
    )


def test_pictures() -> None:
    for name in ("jaxmarl:MPE_simple_tag_v3", "smax:3m"):
        game = made(name)
        state = game.reset(jax.random.key(0))
        picture = game.draw(state, 10)
        assert picture.shape == (80, 80, 3) and len(np.unique(picture.reshape(-1, 3), axis=0)) > 5
        text = game.text(state)
        assert all(str(seat) in text for seat in range(game.seats)) and "o" in text
        layout = game.layout(state)
        assert len(layout.players) == game.seats and None not in layout.players and layout.things
        assert all(0 <= value <= layout.width for thing in layout.things for value in thing[1:3])


def test_an_agent_far_away_is_in_the_picture() -> None:
    game = made("jaxmarl:MPE_simple_spread_v3")
    state = game.reset(jax.random.key(0))
    away = state.env.replace(p_pos=state.env.p_pos.at[0].set(jnp.array([9.0, -9.0])))
    rows = game.text(state._replace(env=away)).splitlines()
    assert rows[-1].endswith("0"), "right below"


@pytest.mark.slow
def test_training(tmp_path: Path) -> None:
    """From the command to the film; the run's folder tells how to make the game again."""
    arguments = "--steps 64 --copies 4 --rollout 8 --block 1 --minibatches 2 --episodes 4"
    game = "--game jaxmarl:MPE_simple_v3 --game.options max_steps=4 num_landmarks=2"
    out = ["--out", str(tmp_path / "run")]
    assert run(["train", "ppo", *arguments.split(), *game.split(), *out]) == 0
    assert (tmp_path / "run" / "episode.gif").exists()
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["game"] == "jaxmarl:MPE_simple_v3" and summary["seats"][0]["steps"] == 5
    again = make_game_of(RunFolder(tmp_path / "run").read_config())
    assert isinstance(again, JaxmarlGame)
    assert again.env.max_steps == 4 and again.env.num_landmarks == 2


@pytest.mark.slow
def test_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both programs of a row play; a game that is not JaxMARL's has no such row."""
    monkeypatch.setattr(bench, "COPIES", 2)
    monkeypatch.setattr(bench, "STEPS", 2)
    for work in bench.jaxmarl_stepping("jaxmarl:MPE_simple_v3"):
        assert work.amount == 4
        jax.jit(work.function, compiler_options=QUICK)(*work.arguments)
    with pytest.raises(UserError, match="no game of JaxMARL"):
        bench.jaxmarl_stepping("stag-hunt")


def test_no_pictures_of_other_environments() -> None:
    game = made("jaxmarl:coin_game")
    with pytest.raises(NotImplementedError):
        game.draw(game.reset(jax.random.key(0)))
