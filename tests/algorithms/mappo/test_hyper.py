"""HyperMAPPO is wired: off it is MAPPO, at the start it is MAPPO, and from then on every part acts;
and what would be wrong in its buffer is caught."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coplay
from coplay.algorithms.mappo.data import MAPPOBatch, MAPPOData, MAPPOState
from coplay.algorithms.mappo.hyper import HyperMAPPO
from coplay.algorithms.mappo.hypernetwork import Hypernetwork, warm_started
from coplay.algorithms.mappo.learner import MAPPO
from coplay.core.game import Game, require_horizon
from coplay.core.group import Group, group_players
from coplay.games.registry import make_game
from coplay.matches.rollout import act_all, new_table, rollout
from tests.algorithms.mappo.teams import GAME, STEPS, course, play, team

RICH: dict[str, Any] = {
    "hypernetwork.context": "team",
    "hypernetwork.layers": "all",
    "hypernetwork.accumulation": 0.5,
    "hypernetwork.memory": "lstm",
    "memory.kind": "gru",
}


def flat(fields: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(fields.items()))


def arrays(tree: Any) -> dict[str, np.ndarray]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): np.asarray(x) for path, x in leaves}


# --- 1 and 2: off, and at the start -------------------------------------------------------------


@pytest.mark.slow
def test_off_is_mappo_bit_for_bit() -> None:
    plain = course(MAPPO, 5, flat({"memory.kind": "gru"}))
    off = course(
        HyperMAPPO, 5, flat({"memory.kind": "gru", "parameters": "shared", "align_weight": 0.0})
    )
    for one, other in zip(jax.tree.leaves(plain), jax.tree.leaves(off), strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.abs(np.diff(plain[2], axis=0)).max() > 1e-4  # something was learned


@pytest.mark.slow
def test_at_the_start_it_is_mappo_and_then_it_is_not() -> None:
    fields = {"memory.kind": "gru", "align_weight": 0.0}
    states, _, policies = course(MAPPO, 2, flat(fields))
    hyper_states, metrics, hyper_policies = course(
        HyperMAPPO, 2, flat(fields | {"hypernetwork.layers": "all"})
    )
    start, hyper_start = (
        jax.tree.map(lambda x: x[0], s.parameters) for s in (states, hyper_states)
    )
    for part in ("actor", "critic"):
        mine, theirs = arrays(getattr(start, part)), arrays(getattr(hyper_start, part))
        assert mine.keys() == theirs.keys()
        for name in mine:
            np.testing.assert_array_equal(mine[name], theirs[name])
    np.testing.assert_allclose(hyper_policies[0], policies[0], atol=1e-6)
    assert np.abs(hyper_policies[1] - policies[1]).max() > 1e-4
    assert metrics["increment_norm"][0].min() > 0


@pytest.mark.slow
def test_base_gradients_at_the_start_are_those_of_mappo() -> None:
    plain, hyper = team(), team(kind=HyperMAPPO, align_weight=0.0)
    key, streams = jax.random.key(0), jnp.arange(3)

    def gradients(learner: MAPPO, state: MAPPOState, seen: MAPPOData) -> Any:
        learning, batch, _ = learner.prepare(state, seen)
        one, rows = jax.tree.map(lambda x: x[0], (learning, batch))
        return jax.grad(learner._loss, has_aux=True)(one.parameters, one, rows)[0]

    found = []
    for learner in (plain, hyper):
        played = play(learner, state=jax.jit(learner.init)(key, streams))
        found.append(
            jax.jit(lambda state, seen: gradients(learner, state, seen))(  # noqa: B023
                played.state, played.seen
            )
        )
    one, other = found
    for part in ("actor", "critic"):
        for name, x in arrays(getattr(one, part)).items():
            np.testing.assert_allclose(arrays(getattr(other, part))[name], x, atol=1e-6)
    heads, trunk = arrays(other.hyper.heads), arrays(other.hyper.network)
    assert all(np.abs(x).max() > 0 for x in heads.values())
    # What is multiplied by heads that are zero learns nothing yet.
    assert all(np.abs(x).max() == 0 for x in trunk.values())


# --- 3: every parameter is optimised ------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [
        RICH,
        {"hypernetwork.context": "slow", "hypernetwork.increments": "team"},
        {"hypernetwork.use": "input"},
        {
            "hypernetwork.context": "team",
            "hypernetwork.attention": "transformer",
            "hypernetwork.attention_heads": 2,
            "hypernetwork.memory": "window",
        },
    ],
)
def test_every_parameter_moves(fields: dict[str, Any]) -> None:
    # Chunks as long as an episode: a frozen context learns only where its beginning is seen.
    states, metrics, _ = course(HyperMAPPO, 4, flat(fields | {"memory.chunk_length": STEPS}))
    for part in ("actor", "critic", "hyper"):
        moments = arrays(getattr(states.optimisers, part)[1].mu)
        values = arrays(getattr(states.parameters, part))
        assert moments.keys() == values.keys()
        for name, x in values.items():
            assert np.abs(moments[name][2]).max() > 0, f"{part}{name} gets no gradient"
            assert np.abs(x[3] - x[0]).max() > 0, f"{part}{name} does not move"
    if "hypernetwork.use" not in fields:
        # The increments of a frozen context hang on which one it is: what grows for certain is B.
        heads = arrays(states.parameters.hyper.heads).values()
        size = sum(np.square(x).reshape(len(x), -1).sum(axis=1) for x in heads)
        assert size[0] == 0 < size[1] < size[2] < size[3]
        assert metrics["increment_norm"].min() > 0


# --- 4: the ratio starts at 1, and what would be wrong is caught --------------------------------


def first_ratio(learner: MAPPO, acting: MAPPO | None = None, game: Game = GAME) -> float:
    played = play(acting or learner, game)
    return float(jax.jit(learner.first_ratio)(played.state, played.seen).max())


@pytest.mark.slow
@pytest.mark.parametrize(
    "chunk", [2, *(pytest.param(length, marks=pytest.mark.slow) for length in (3, 12))]
)
def test_ratio_starts_at_one(chunk: int) -> None:
    learner = team(kind=HyperMAPPO, **RICH | {"memory.chunk_length": chunk})
    played = play(learner)
    first, alive = (
        np.asarray(x)
        for x in (played.seen.trajectory.past.first, played.seen.trajectory.alive)  # type: ignore[union-attr]
    )
    inside = first.reshape(STEPS // chunk, chunk, -1)[:, 1:]
    assert inside.any() and not alive.all()
    assert float(jax.jit(learner.first_ratio)(played.state, played.seen).max()) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [
        {"hypernetwork": {"context": "local", "layers": "last", "accumulation": 1.0}},
        {"hypernetwork": {"context": "team", "increments": "team"}, "memory.kind": "lstm"},
        {"hypernetwork.context": "slow", "critic_input": "global"},
        {"hypernetwork": {"use": "input", "ids": False}},
        {"hypernetwork.generate_critic": True},
        {"hypernetwork": {"context": "team", "attention": "transformer", "attention_heads": 2}},
        {"hypernetwork": {"memory": "window", "window": 2}, "perturbation": 0.3},
        {"parameters": "shared+id", "memory.kind": "lstm"},
        {"parameters": "separate", "memory.kind": "gru", "critic_input": "own"},
    ],
)
def test_ratio_starts_at_one_in_every_form(fields: dict[str, Any]) -> None:
    assert first_ratio(team(kind=HyperMAPPO, **fields)) < 1e-5


class ChunkStateZeroed(HyperMAPPO):
    def _chunks(self, *arguments: Any) -> MAPPOBatch:
        batch = super()._chunks(*arguments)
        return batch._replace(memory=jax.tree.map(jnp.zeros_like, batch.memory))


class ResetMissing(HyperMAPPO):
    def _whole(self, *arguments: Any) -> MAPPOBatch:
        batch = super()._whole(*arguments)
        return batch._replace(first=jnp.zeros_like(batch.first))


class PastLostAtChunkStart(HyperMAPPO):
    def _chunks(self, *arguments: Any) -> MAPPOBatch:
        batch = super()._chunks(*arguments)
        known, inputs = batch.context, batch.view.shape[-1]
        past = slice(inputs, inputs + self.shape.actions + 1)
        return batch._replace(context=known.at[:, 0, :, past].set(0.0))


class WithoutRewards(Hypernetwork):
    def inputs(self, *arguments: Any) -> Any:
        known = super().inputs(*arguments)
        return known.at[..., arguments[0].shape[-1] + self.shape.actions].set(0.0)


class RewardsNotFed(HyperMAPPO):
    @property
    def hypernetwork(self) -> Hypernetwork | None:
        return WithoutRewards(self.config, self.shape, self.game_seats)


class TargetActs(HyperMAPPO):
    def group(self, state: MAPPOState) -> Group:
        hyper = jax.tree.map(lambda x: 0.9 * x, state.parameters.hyper)
        return super().group(state._replace(parameters=state.parameters._replace(hyper=hyper)))


class TimeInterleaved(HyperMAPPO):
    """A bare reshape of [time, copy] that mixes the two."""

    def _whole(self, *arguments: Any) -> MAPPOBatch:
        batch = super()._whole(*arguments)
        mix = lambda x: jnp.swapaxes(x, 0, 1).reshape(x.shape)  # noqa: E731
        rest = batch._replace(memory=())
        return jax.tree.map(mix, rest)._replace(memory=batch.memory)


@pytest.mark.slow
@pytest.mark.parametrize(
    "bug",
    [
        ChunkStateZeroed,
        ResetMissing,
        PastLostAtChunkStart,
        RewardsNotFed,
        TargetActs,
        TimeInterleaved,
    ],
)
def test_planted_bugs_are_caught(bug: type[HyperMAPPO]) -> None:
    fields = {"hypernetwork.layers": "all", "hypernetwork.accumulation": 0.5}
    # In Stag Hunt whoever gets a reward leaves: nobody goes on with one in the same episode.
    rewarding = make_game("hidden-target", players=3, choices=3, horizon=5)
    game = rewarding if bug is RewardsNotFed else GAME
    acting = team(game, bug if bug is TargetActs else HyperMAPPO, **fields)
    assert first_ratio(team(game, bug, **fields), acting, game) > 1e-3


@pytest.mark.slow
def test_chance_that_only_acts_is_caught() -> None:
    """A learner that does not count with how its agents act."""
    fields = {"hypernetwork.context": "team", "hypernetwork.layers": "all"}
    acting = team(kind=HyperMAPPO, **fields | {"perturbation": 0.3})
    assert first_ratio(team(kind=HyperMAPPO, **fields), acting) > 1e-3


@pytest.mark.slow
def test_a_window_that_chunks_forget_is_caught() -> None:
    fields = {"hypernetwork.memory": "window", "hypernetwork.layers": "all"}
    assert first_ratio(team(kind=ChunkStateZeroed, **fields)) > 1e-3


# --- 6: the losses, and the target --------------------------------------------------------------


@pytest.mark.slow
def test_loss_weights_change_gradients_and_the_target_never_acts() -> None:
    learner = team(kind=HyperMAPPO, anchor_weight=0.1)
    played = play(learner)
    target = jax.tree.map(lambda x: x + 0.1, played.state.target)
    state = played.state._replace(target=target)

    @jax.jit
    def gradients(state: MAPPOState, seen: MAPPOData) -> list[Any]:
        found = []
        for fields in (
            {},
            {"smooth_weight": 0.0},
            {"align_weight": 0.0},
            {"anchor_weight": 0.2},
        ):
            one = team(kind=HyperMAPPO, **({"anchor_weight": 0.1} | fields))
            learning, batch, _ = one.prepare(state, seen)
            mine, rows = jax.tree.map(lambda x: x[0], (learning, batch))
            # At the start old and new policies are the same, and KL has no gradient there.
            moved = jax.tree.map(lambda x: 1.05 * x, mine.parameters)
            found.append(jax.grad(one._loss, has_aux=True)(moved, mine, rows)[0].hyper)
        return found

    base, *others = gradients(state, played.seen)
    for other in others:
        difference = [
            np.abs(x - y).max()
            for x, y in zip(jax.tree.leaves(base), jax.tree.leaves(other), strict=True)
        ]
        assert max(difference) > 1e-5
    poisoned = played.state._replace(target=jax.tree.map(lambda x: x * jnp.nan, target))
    again = play(learner, state=poisoned)
    np.testing.assert_array_equal(again.trajectory.log_policy, played.trajectory.log_policy)


@pytest.mark.slow
def test_the_target_may_act() -> None:
    """The slow copy, whose increments are still zero, acts; the ratio tells it from the other."""
    fields = {"hypernetwork.layers": "all"}
    learner = team(kind=HyperMAPPO, **fields | {"hypernetwork.acting": "target"})
    played = play(learner)
    assert float(jax.jit(learner.first_ratio)(played.state, played.seen).max()) < 1e-5
    other = team(kind=HyperMAPPO, **fields)
    assert float(jax.jit(other.first_ratio)(played.state, played.seen).max()) > 1e-3


@pytest.mark.slow
def test_target_is_synchronised_every_so_many_steps() -> None:
    fields = {"anchor_weight": 0.1, "anchor_every": 3}
    states, metrics, _ = course(HyperMAPPO, 3, flat(fields))
    # Two gradient steps per update: after the 3rd, in the second update, the copy is brought up.
    targets = arrays(states.target)
    name = next(name for name in targets if "projection.weight" in name)
    np.testing.assert_array_equal(targets[name][1], targets[name][0])
    assert np.abs(targets[name][2] - targets[name][0]).max() > 0
    np.testing.assert_array_equal(states.steps[:, 0], [0, 2, 4, 6])
    assert metrics["anchor_loss"][0].max() > 0


@pytest.mark.slow
def test_players_of_other_teams_are_not_heard() -> None:
    """The same group with another team's number for one agent: the others no longer hear it."""
    learner = team(kind=HyperMAPPO, hypernetwork={"context": "team", "layers": "all"})
    played = play(learner)
    players = [learner.player(played.state, seat) for seat in range(3)]

    @jax.jit
    def policies(groups: tuple[Group, ...]) -> Any:
        keys = jax.random.split(jax.random.key(0), 3)
        uniform = jnp.full((3, played.table.time.shape[0]), 0.5)
        table = played.table._replace(memory=tuple(g.start(len(played.table.time)) for g in groups))
        return act_all(GAME, groups, keys, uniform, table)[2]

    together = policies(group_players(players))
    shared = policies((learner.group(played.state),))
    np.testing.assert_allclose(together, shared, atol=1e-6)
    stranger = eqx.tree_at(lambda p: p.team, players[2], players[2].team + 1)  # type: ignore[attr-defined]
    apart = policies(group_players([*players[:2], stranger]))
    assert np.abs(apart - together)[:, :2].max() > 1e-4


# --- a hypernetwork of another run ----------------------------------------------------------------


def filled(learner: MAPPO, value: float) -> MAPPOState:
    """A state of the learner's shapes with the same number everywhere; nothing is compiled."""
    streams = jnp.arange(learner.game_seats)
    shapes = jax.eval_shape(learner.init, jax.random.key(0), streams)
    return jax.tree.map(lambda x: np.full(x.shape, value, np.float32), shapes)


@pytest.mark.parametrize(("here", "there"), [(4, 2), (2, 4), (3, 1)])
def test_a_hypernetwork_of_another_number_of_agents(here: int, there: int) -> None:
    mine, other = (
        team(make_game("dispersion", players=players, nearest=2), HyperMAPPO)
        for players in (here, there)
    )
    weights = jax.tree.map(lambda x: x[0], filled(mine, 1.0).parameters.hyper)
    taken = warm_started(weights, filled(other, 2.0), "runs/other", here)
    new = max(here - there, 0)
    for name, array in arrays(taken).items():
        numbers = ".encoder.entry." in name or ".encoder.layers[0].weight" in name
        known = array.shape[-1] - new if numbers else array.shape[-1]
        assert (array[..., :known] == 2).all() and (array[..., known:] == 1).all(), name


# --- memory --------------------------------------------------------------------------------------


def gradient_memory(agents: int, copies: int) -> tuple[int, int]:
    """Bytes that a gradient of all generated layers needs beside its inputs and outputs; weights of
    the actor."""
    game = make_game("hidden-target", players=agents)
    wide = {"hypernetwork.layers": "all", "network.hidden": (64, 64)}
    learner = team(game, HyperMAPPO, **wide)
    streams, key = jnp.arange(agents), jax.random.key(0)

    def prepared(state: MAPPOState) -> tuple[MAPPOState, MAPPOBatch]:
        groups = (learner.group(state),)
        table = new_table(game, groups, key, copies)
        seen = learner.training_data(game, rollout(game, groups, table, key, 16, streams)[1])
        return learner.prepare(state, seen)[:2]

    state = jax.eval_shape(learner.init, key, streams)
    gradient = jax.jit(jax.vmap(lambda *given: learner.gradients(*given)[0]))
    program = gradient.lower(*jax.eval_shape(prepared, state)).compile()
    weights = sum(x.size for x in jax.tree.leaves(state.parameters.actor))
    return program.memory_analysis().temp_size_in_bytes, weights  # type: ignore[union-attr]


@pytest.mark.slow
def test_memory_does_not_grow_with_agents_times_weights() -> None:
    """The same number of samples of 4 and of 16 agents."""
    samples = 16 * 4 * 32
    few, weights = gradient_memory(4, 32)
    many, _ = gradient_memory(16, 8)
    assert many < 1.1 * few
    assert few < 0.8 * 4 * samples * weights  # one matrix of weights for each sample


# --- 8 and 9: what only contexts can do ---------------------------------------------------------


def share(player: str, game: str, steps: int, out: Path, **fields: Any) -> float:
    """The share of the reward that a trained team gets, out of what can be had."""
    run = {"copies": 64, "rollout": 16, "block": 8, "episodes": 500, "steps": steps}
    small: dict[str, Any] = {
        "network.hidden": (32,),
        "memory.units": 32,
        "memory.chunk_length": 16,
        "epochs": 4,
        "optimiser.learning_rate": 1e-3,
    }
    if player == "hyper-mappo":
        small |= {"hypernetwork": {"learning_rate": 1e-3, "width": 32, "units": 32}}
    summary = coplay.train(player, game, out=out, **run, **small, **fields, pictures=False)
    return summary["team_mean"] / require_horizon(make_game(game))


@pytest.mark.slow
def test_identity_game_needs_numbers(tmp_path: Path) -> None:
    """All see the same: one policy for all gets 1 of 4, weights by number get all."""
    assert abs(share("mappo", "identity", 20_000, tmp_path / "plain") - 0.25) < 0.03
    assert share("hyper-mappo", "identity", 50_000, tmp_path / "hyper") > 0.95


@pytest.mark.slow
def test_hidden_target_game_needs_the_past(tmp_path: Path) -> None:
    """Only past rewards tell the target: without them it is 1 of 4."""
    assert abs(share("mappo", "hidden-target", 20_000, tmp_path / "plain") - 0.25) < 0.03
    assert share("hyper-mappo", "hidden-target", 40_000, tmp_path / "hyper") > 0.7
