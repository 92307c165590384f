"""HOP: beliefs replayed by hand, what is learned from, variants, whole runs."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.algorithms.hop.config import HOPConfig
from coplay.algorithms.hop.learner import HOP, HOPState
from coplay.algorithms.hop.player import HOPMemory, HOPPlayer
from coplay.core.config import with_fields
from coplay.core.errors import UserError
from coplay.core.group import Group
from coplay.core.player import View
from coplay.core.trajectory import Trajectory
from coplay.evaluation.audits.wiring import Course, data_check, learn_twice, quick
from coplay.games.registry import make_game
from coplay.games.stag_hunt import HUNT_STAG, StagHunt, StagHuntConfig
from coplay.matches.rollout import Table, new_table, rollout
from coplay.models.opponent_model import predict
from coplay.models.personas import PersonaSeed
from coplay.nn.networks import view_shape
from coplay.training.config import RunConfig, TrainConfig
from coplay.training.phases import load_parts, plan_phases
from coplay.training.players import make_player
from coplay.training.run import RunFolder, load_learners, make_game_of

GAME = StagHunt(StagHuntConfig(height=2, width=3, players=3, stags=1, hares=2, horizon=6))
SHAPE, SEATS, ACTIONS, COPIES, STEPS = view_shape(GAME), 3, 7, 6, 20
TINY: dict[str, Any] = {
    "network.hidden": (8,),
    "search.simulations": 3,
    "search.draws": 2,
    "search.depth": 2,
    "replay.capacity": 256,
    "replay.updates": 3,
    "replay.batch": 16,
}


def learner(
    active: tuple[int, ...] = (1,), fields: Mapping[str, Any] = MappingProxyType({})
) -> HOP:
    config = with_fields(HOPConfig(), TINY | fields)  # type: ignore[operator]
    return HOP(config=config, shape=SHAPE, game_seats=SEATS, seats=active, active=active)


@cache
def state_of(hop: HOP) -> HOPState:
    """Networks whose heads are not nearly even."""
    state = jax.jit(lambda: hop.init(jax.random.key(3), jnp.arange(SEATS)))()
    louder = jax.tree.map(lambda x: 3.0 * x, state.networks)
    return state._replace(networks=louder)


@cache
def played(hop: HOP) -> tuple[Table, Trajectory]:
    """HOP, acting without search, in its active seats among NS and NH."""
    quiet = dataclasses.replace(hop, config=dataclasses.replace(hop.config, planner="none"))
    free = [seat for seat in range(SEATS) if seat not in hop.active]
    others = tuple(
        Group(make_player(name, GAME), (seat,), True)
        for seat, name in zip(free, ("ns", "nh"), strict=False)
    )

    def run(game: StagHunt, state: HOPState) -> tuple[Table, Trajectory]:
        groups = (quiet.group(state), *others)
        table = new_table(game, groups, jax.random.key(1), COPIES)
        return rollout(game, groups, table, jax.random.key(2), STEPS, jnp.arange(SEATS))

    return jax.tree.map(np.asarray, jax.jit(run)(GAME, state_of(hop)))


def at(tree: Any, *index: Any) -> Any:
    return jax.tree.map(lambda x: x[index], tree)


@pytest.mark.slow
def test_declared_data_change_what_is_learned() -> None:
    hop = learner()
    table, trajectory = jax.tree.map(jnp.asarray, played(hop))
    watched = jax.jit(hop.training_data)(GAME, trajectory)
    course = Course(state_of(hop), state_of(hop), table, watched)
    update = quick(lambda *given: learn_twice(hop, *given), course.state, watched)
    check = data_check(hop, course, update)
    assert check.passed, check.detail


# --- beliefs -----------------------------------------------------------------------------------


def by_hand(
    hop: HOP, trajectory: Trajectory, copy: int, seat: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Weights, counts and belief about one co-player after a rollout, one step at a time; and how
    often it took each action without a goal, and how often it would have at rate 1."""
    config, me = hop.config.belief, hop.active[0]
    offset = (seat - me) % SEATS - 1
    row = offset if hop.config.opponents == "separate" else 0
    model = at(state_of(hop).networks.opponents, 0, row)
    seen = at(trajectory.observation, slice(None), copy, seat)
    view, last = jax.tree.map(jnp.asarray, seen), trajectory.after.last
    probs = [np.exp(predict(model, view, jnp.tile(goal, (STEPS, 1)))) for goal in jnp.eye(2)]
    chances = np.stack([p[np.arange(STEPS), last[:, copy, seat]] for p in probs], axis=1)
    n = 2
    if config.random_goal:
        n, chances = 3, np.concatenate([chances, np.ones((STEPS, 1))], axis=1)
    taken, expected = np.zeros(ACTIONS), np.zeros(ACTIONS)
    weights = np.full(n, 0.0 if config.prior == "dirichlet" else 1 / n / (1 - config.keep))
    counts, belief = np.zeros(n), np.full(n, 1 / n)
    for t in range(STEPS):
        before, after = at(trajectory.state, t, copy), at(trajectory.after, t, copy)

        def prior(state: Any, weights: np.ndarray = weights) -> np.ndarray:
            extra = config.concentration if config.prior == "dirichlet" else 0.0
            habits = (weights + extra) / (weights + extra).sum()
            possible = np.array(
                [state.prey_alive[0] and state.alive.sum() > 1, any(state.prey_alive[1:])]
            )
            possible = possible | (not possible.any())
            goals = habits[:2] * possible / (habits[:2] * possible).sum()
            return np.append(goals * habits[:2].sum(), habits[2:])

        if before.time == 0 or not config.intra:
            belief = prior(before)
        legal, action = np.asarray(seen.legal[t]), last[t, copy, seat]
        if config.random_goal:
            rates = (taken + 1) / (expected + 1) * legal if config.action_rates else legal
            chances[t, 2] = rates[action] / rates.sum()
        if config.intra and before.alive[seat]:
            belief = belief * chances[t] / (belief * chances[t]).sum()
            belief = (1 - config.goal_change) * belief + config.goal_change * prior(before)
        if config.random_goal and before.alive[seat]:
            taken[action] += belief[2]
            expected += belief[2] * legal / rates.sum()
        if before.alive[seat] and not after.alive[seat]:
            counts[0 if after.last[seat] == HUNT_STAG else 1] += 1
            new = prior(after)
            trait = belief[2:]
            belief = np.append(new[:2] / new[:2].sum() * (1 - trait.sum()), trait)
        else:
            ruled = belief * (prior(after) > 0)
            belief = ruled / ruled.sum() if ruled.sum() > 0 else prior(after)
        if trajectory.over[t, copy]:
            kept = config.keep if config.inter else 0.0
            taken, expected = kept * taken, kept * expected
            if config.inter:
                without_goal = belief[2] if config.random_goal else 0.0
                shown = counts * (1 - without_goal)
                shown[-1] += without_goal
                weights = (1 - (1 - config.keep) * shown.sum()) * weights + shown
            counts = np.zeros(n)
    return weights, counts, belief, taken, expected


@pytest.mark.parametrize(
    "fields",
    [
        {},
        pytest.param(
            {
                "opponents": "shared",
                "belief.prior": "exponential",
                "belief.keep": 0.995,
                "belief.random_goal": False,
            },
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {
                "belief.intra": False,
                "belief.inter": False,
                "belief.goal_change": 0.0,
                "belief.action_rates": False,
            },
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.slow
def test_beliefs_as_worked_out_by_hand(fields: dict[str, Any]) -> None:
    hop = learner(fields=fields)
    table, trajectory = played(hop)
    memory: HOPMemory = at(table.memory[0], 0)
    assert trajectory.over.sum() > COPIES, "several episodes in most copies"
    for copy in range(COPIES):
        for other in range(SEATS - 1):
            seat = (hop.active[0] + 1 + other) % SEATS
            weights, counts, belief, *acted = by_hand(hop, trajectory, copy, seat)
            np.testing.assert_allclose(memory.weights[copy, other], weights, rtol=1e-4)
            np.testing.assert_array_equal(memory.counts[copy, other], counts)
            np.testing.assert_allclose(memory.belief[copy, other], belief, atol=1e-4)
            if memory.acted is not None:
                for found, counted in zip(memory.acted, acted, strict=True):
                    np.testing.assert_allclose(found[copy, other], counted, atol=1e-3)
    if not hop.config.belief.inter:
        assert (memory.weights == 0).all()


@pytest.mark.slow
def test_a_belief_becomes_sure_of_a_hare_hunter_and_its_habit_is_remembered() -> None:
    """With a model that knows NS and NH, the true goal gets over 0.9 within three steps, and the
    prior of later episodes begins there."""
    game = StagHunt(StagHuntConfig(height=5, width=5, players=2, stags=1, hares=1, horizon=12))

    class Exact(HOPPlayer):
        """The likelihoods are those of NS and NH themselves."""

        def likelihood(self, game: Any, state: Any, action: Any, rates: Any) -> Any:
            ego = jax.vmap(game.ego_state, (0, None))(state, 1)
            probs = [jax.vmap(game.scripted[name], (None, 0))(game, ego) for name in ("ns", "nh")]
            stacked = jnp.stack(probs, axis=1)[:, None]  # [copy, other, goal, action]
            chosen = action[..., None, None] == jnp.arange(7)
            return jnp.log(jnp.sum(jnp.where(chosen, stacked, 0.0), axis=-1) + 1e-3)

    shape = view_shape(game)
    quiet = TINY | {"planner": "none", "belief.random_goal": False}
    config = with_fields(HOPConfig(), quiet)
    hop = HOP(config=config, shape=shape, game_seats=2, seats=(0,), active=(0,))
    networks = jax.tree.map(lambda x: x[0], hop.init(jax.random.key(0), jnp.arange(2)).networks)
    player = Exact(*networks, PersonaSeed(jnp.uint32(0), jnp.uint32(0)), hop.settings, shape, 2)  # type: ignore[call-arg]
    groups = (Group(player, (0,), True), Group(make_player("nh", game), (1,), True))
    copies = 64

    def run(game: StagHunt, table: Table, key: Any) -> Table:
        return rollout(game, groups, table, key, 1, jnp.arange(2))[0]

    table = new_table(game, groups, jax.random.key(0), copies)
    step = jax.jit(run)
    for t in range(3):
        table = step(game, table, jax.random.key(t))
    going = np.asarray(table.state.alive)[:, 1] & (np.asarray(table.time) == 3)
    belief = np.asarray(table.memory[0].belief)[0, :, 0, 1]
    assert going.sum() > 15 and np.median(belief[going]) > 0.9
    for t in range(3, 60):
        table = step(game, table, jax.random.key(t))
    episodes = np.asarray(table.episode)
    habits = np.asarray(player.habits(at(table.memory[0], 0)))[:, 0, 1]
    assert (habits[episodes >= 4] > 0.8).all() and (episodes >= 4).mean() > 0.9


# --- learning ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_goals_in_hindsight_by_hand() -> None:
    hop = learner()
    _, trajectory = played(hop)
    rows, own, _ = hop.training_data(GAME, jax.tree.map(jnp.asarray, trajectory))
    assert own.alive.shape == (STEPS, COPIES, 1)
    goal = np.asarray(rows.goal).reshape(STEPS, COPIES, SEATS, 2)
    known = np.asarray(rows.labelled).reshape(STEPS, COPIES, SEATS)
    seen = set()
    for copy in range(COPIES):
        for seat in range(SEATS):
            for t in range(STEPS):
                if not trajectory.alive[t, copy, seat]:
                    continue
                later = t
                while later < STEPS and not trajectory.terminated[later, copy, seat]:
                    if trajectory.over[later, copy]:
                        later = STEPS
                    later += 1
                if later >= STEPS:
                    assert not known[t, copy, seat]
                    seen.add("nothing")
                    continue
                stag = trajectory.after.last[later, copy, seat] == HUNT_STAG
                assert known[t, copy, seat]
                assert goal[t, copy, seat].tolist() == [float(stag), float(not stag)]
                seen.add("stag" if stag else "hare")
    assert seen >= {"hare", "nothing"}


def updated(hop: HOP, trajectory: Any, times: int = 1) -> tuple[HOPState, dict[str, Any]]:
    run = jax.jit(hop.update)
    state = state_of(hop)
    for index in range(times):
        state, metrics = run(jax.random.key(index), state, trajectory, jnp.float32(0))
    return jax.tree.map(np.asarray, (state, metrics))


@pytest.mark.slow
def test_what_is_not_alive_is_learned_from_by_nobody() -> None:
    hop = learner()
    rows, *own = hop.training_data(GAME, jax.tree.map(jnp.asarray, played(hop)[1]))
    spoilt = rows._replace(
        action=jnp.where(rows.alive, rows.action, 6).astype(jnp.int8),
        labelled=rows.labelled | ~rows.alive,
        goal=jnp.where(rows.alive[..., None], rows.goal, 9.0),
        policy=jnp.where(rows.alive[:, 1:2, None], rows.policy, 0.3),
    )
    assert not bool(jnp.all(rows.alive))
    first, again = updated(hop, (rows, *own)), updated(hop, (spoilt, *own))
    jax.tree.map(np.testing.assert_array_equal, first[0].networks, again[0].networks)
    jax.tree.map(np.testing.assert_array_equal, first[1], again[1])


@pytest.mark.slow
def test_targets_are_returns_within_the_episode() -> None:
    """To a seat with a persona only the persona's rewards count."""
    fields = {"personas.share": 0.7, "personas.first_episode": 1, "personas.episodes": 1}
    hop = learner(fields=fields)
    _, trajectory = played(hop)
    state, _ = updated(hop, hop.training_data(GAME, jax.tree.map(jnp.asarray, trajectory)))
    shape = (STEPS, COPIES)
    target = state.replay.target[-STEPS * COPIES :].reshape(shape)
    who = state.replay.persona[-STEPS * COPIES :, 1].reshape(shape)
    assert set(who.ravel().tolist()) == {-1, 0, 1, 2}
    caught = trajectory.terminated[:, :, 1] & trajectory.alive[:, :, 1]
    stag = trajectory.after.last[:, :, 1] == HUNT_STAG
    unwanted = caught & (((who == 0) & ~stag) | ((who == 1) & stag))
    assert unwanted.any()
    reward = np.where(unwanted, 0.0, trajectory.reward[:, :, 1])
    checked = 0
    for copy in range(COPIES):
        for t in range(STEPS):
            total, factor, later = 0.0, 1.0, t
            while later < STEPS:
                total += factor * reward[later, copy]
                factor *= hop.config.discount
                if trajectory.terminated[later, copy, 1] or trajectory.over[later, copy]:
                    break
                later += 1
            if later < STEPS and trajectory.alive[t, copy, 1] and who[t, copy] != 2:
                np.testing.assert_allclose(target[t, copy], total, rtol=1e-4, atol=1e-5)
                checked += 1
    assert checked > 50


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [{}, {"parameters": "separate"}, {"parameters": "shared", "opponents": "shared"}],
)
def test_learning_brings_models_actor_and_critic_closer(fields: dict[str, Any]) -> None:
    # Without personas, so that the models are asked about all that was played.
    more = {"replay.updates": 40, "replay.batch": 64, "optimiser.learning_rate": 0.01}
    hop = learner((0, 1), more | {"personas.share": 0.0} | fields)
    trajectory = played(hop)[1]
    watched = hop.training_data(GAME, jax.tree.map(jnp.asarray, trajectory))
    _, before = updated(hop, watched)
    _, after = updated(hop, watched, times=6)
    oracle = np.exp(trajectory.log_policy.max(-1)).reshape(-1, SEATS)
    seen = np.asarray(watched[0].alive & watched[0].labelled)
    for seat in (0, 1):
        others = [other for other in range(SEATS) if other != seat]
        best = oracle[:, others][seen[:, others]].mean()
        np.testing.assert_allclose(before["opponent_oracle_top1"][seat], best, rtol=1e-5)
    for name in ("policy_loss", "value_loss", "opponent_loss"):
        assert before[name].shape == (2,) and (after[name] < before[name]).all(), name
    assert (after["opponent_top1"] >= before["opponent_top1"]).all()
    assert after["opponent_recall"].shape == (2, ACTIONS)


@pytest.mark.slow
def test_switches_keep_networks_as_they_are() -> None:
    hop = learner(fields={"learn_policy": False})
    watched = hop.training_data(GAME, jax.tree.map(jnp.asarray, played(hop)[1]))
    start, end = state_of(hop).networks, updated(hop, watched)[0].networks
    jax.tree.map(np.testing.assert_array_equal, start.actor, end.actor)
    assert any(
        not np.array_equal(a, b)
        for a, b in zip(
            jax.tree.leaves(start.opponents), jax.tree.leaves(end.opponents), strict=True
        )
    )


# --- acting ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_planner_prefers_what_its_values_say_and_never_the_illegal() -> None:
    """On a hare with nobody else near, the hare is worth 1 and everything else less."""
    search = {"simulations": 12, "draws": 2, "depth": 3, "normalise_q": False, "beta": 50.0}
    hop = learner(fields={"search": search})
    networks = at(state_of(hop).networks, 0)
    silent = networks._replace(critic=jax.tree.map(jnp.zeros_like, networks.critic))
    seed = PersonaSeed(jnp.uint32(0), jnp.uint32(0))
    player = HOPPlayer(*silent, seed, hop.settings, SHAPE, SEATS)  # type: ignore[call-arg]
    state = GAME.reset(jax.random.key(0))._replace(
        cell=jnp.array([5, 0, 0], jnp.int16), prey=jnp.array([1, 5, 3], jnp.int16)
    )
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (4, *x.shape)), state)
    seen = at(jax.vmap(GAME.observe)(states), slice(None), 0)
    none = jnp.zeros(4, jnp.int32)
    view = View(seen, jnp.ones(4, bool), states, none, none, none - 1, jnp.zeros(4))
    act = jax.jit(lambda game, view: player.act(game, jax.random.key(0), view, player.start(4)))
    logits, memory = act(GAME, view)
    assert (np.argmax(np.where(seen.legal, logits, -np.inf), axis=1) == 6).all()
    np.testing.assert_allclose(memory.belief.sum(-1), 1.0, rtol=1e-5)


@pytest.mark.parametrize(
    ("game", "fields", "message"),
    [
        (make_game("stag-hunt", view=1), {}, "--game.view None"),
        (StagHunt(StagHuntConfig(players=1)), {}, "at least two seats"),
    ],
)
def test_games_it_cannot_play(game: Any, fields: dict[str, Any], message: str) -> None:
    config = TrainConfig("hop", "stag-hunt", HOPConfig(**fields), game.config, RunConfig())
    with pytest.raises(UserError, match=message):
        plan_phases(config, game)


# --- runs --------------------------------------------------------------------------------------

RUN = {
    "game_fields": {"height": 2, "width": 3, "players": 3, "hares": 2, "horizon": 6},
    "copies": 4,
    "rollout": 8,
    "block": 1,
    "episodes": 4,
    "checkpoint_every": 32,
}


def learned(path: Path) -> Any:
    folder = RunFolder(path)
    config = folder.read_config()
    return jax.tree.map(np.asarray, load_learners(folder, config, make_game_of(config), False)[0])


@pytest.mark.slow
def test_a_run_resumes_exactly_and_its_player_plays_with_or_without_search(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    # A linear schedule ends with the steps a run was given: a longer run learns otherwise.
    fields = RUN | TINY | {"seating": "hop,ns,hop", "optimiser.schedule": "constant"}
    summary = coplay.train("hop", out=whole, steps=96, **fields, pictures=False)
    assert summary["steps"] == 96
    coplay.train("hop", out=parts, steps=64, **fields, pictures=False)
    coplay.train("hop", out=parts, resume=True, steps=96, pictures=False)
    jax.tree.map(np.testing.assert_array_equal, learned(whole), learned(parts))
    rows = (whole / "metrics.jsonl").read_text().splitlines()
    assert '"opponent_recall_hunt_hare/seat_2"' in rows[-1]
    game = make_game("stag-hunt", **RUN["game_fields"])
    for entry in (
        f"{whole}@seat=0",
        f"{whole}@seat=2@planner=none",
        f"{whole}@seat=0@search.draws=1",
    ):
        record = coplay.play(game, ["nh", entry, "random"], episodes=4)
        assert record["seats"][1]["player"] == entry
    with pytest.raises(UserError, match="planner"):
        coplay.play(game, ["nh", f"{whole}@seat=0@planer=none", "random"], episodes=4)


@pytest.mark.slow
def test_a_run_starts_from_ppo(tmp_path: Path) -> None:
    fields = RUN | {"minibatches": 1, "network.kind": "centred", "network.hidden": (8,)}
    coplay.train("ppo", out=tmp_path / "ppo", steps=32, **fields, pictures=False)
    hop_fields = {"warm_start": str(tmp_path / "ppo"), "parameters": "separate"}
    hop = learner((0, 1, 2), hop_fields)
    parts = load_parts(hop.config, GAME)
    state = jax.jit(lambda: hop.init(jax.random.key(0), jnp.arange(SEATS), parts))()
    ppo = learned(tmp_path / "ppo")[0]
    jax.tree.map(
        lambda a, b: np.testing.assert_array_equal(a[tuple(slice(n) for n in b[0].shape)], b[0]),
        state.networks.actor,
        ppo.actor,
    )
    assert not np.asarray(state.networks.actor.layers[0].weight)[..., -hop._context_size :].any()
    for different in ({"network.hidden": (4,)}, {"network.kind": "mlp"}):
        other = learner((0,), hop_fields | different)
        with pytest.raises(UserError, match=r"other shapes \(network=centred"):
            jax.eval_shape(
                lambda other=other: other.init(jax.random.key(0), jnp.arange(SEATS), parts)
            )
    shared = learner((0, 1, 2), hop_fields | {"parameters": "shared"})
    with pytest.raises(UserError, match="train ppo with --parameters shared"):
        jax.eval_shape(lambda: shared.init(jax.random.key(0), jnp.arange(SEATS), parts))
