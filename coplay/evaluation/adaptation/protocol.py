"""The adaptation protocol: a player meets co-players it does not know, for a few thousand steps.

The *focal* player sits among its co-players in ONE game copy and plays episode after episode; what
it remembers stays from episode to episode. A *unit* is one repetition in one seat: it has its own
game, its own memories and its own copy of everything that learns. All units are one compiled
program. In it the seats of the game are renumbered so that the focal player is always seat 0 and
its co-players follow in cyclic order, so every seat of the game is served by the same program. A
focal team, all seats of one side, stays where the game puts it (`Places`).
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, Key, PRNGKeyArray

from coplay.algorithms.registry import learner_parts, new_learner
from coplay.core.compilation import use_cache
from coplay.core.config import (
    Config,
    PositiveInt,
    Seed,
    leaves,
    parse_fields,
    to_json,
    with_fields,
)
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.goals import hindsight
from coplay.core.group import Group, group_players
from coplay.core.learner import Learner, LearnerState, init_learner
from coplay.core.player import Insight, Player
from coplay.core.trajectory import Trajectory
from coplay.evaluation.adaptation.places import Places, find_places
from coplay.matches.partitioned_player import PartitionedPlayer, partitioned
from coplay.matches.rollout import new_table, rollout
from coplay.nn.networks import view_shape
from coplay.training.block import learn
from coplay.training.phases import Phase, load_parts
from coplay.training.players import make_player
from coplay.training.run import load_seat
from coplay.training.seating import is_learner, is_run, learner_config

LEARNING = "learning:"
"""Before the path of a run: its player goes on learning."""


@dataclass(frozen=True)
class AdaptConfig(Config):
    """How a player is let adapt, whoever it meets."""

    steps: PositiveInt = 2400
    """Steps of the single game copy in each repetition."""
    last: PositiveInt = 600
    """The score counts the episodes that end in so many last steps."""
    seeds: PositiveInt = 5
    """Repetitions; the focal player takes every seat in each."""
    seed: Seed = 0
    """Seed of all randomness."""
    greedy: bool = False
    """A focal player whose policy does not learn takes its most probable action, as hop does
    anyway."""
    learn: bool = False
    """The focal player's policy goes on learning by gradient."""
    learn_opponents: bool = False
    """The focal player's opponent models go on learning by gradient (hop)."""
    rollout: PositiveInt = 32
    """Steps between two updates of whatever learns."""
    fields: tuple[str, ...] = ()
    """Fields of the focal player's learner to set anew while it learns, as NAME=VALUE."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.last > self.steps:
            raise UserError(f"last ({self.last}) must not be above steps ({self.steps})")
        if self.fields and not self.learns:
            raise UserError(
                "fields are of what learns: add --learn or --learn-opponents; for a player that "
                "does not learn write them behind its run, as in runs/hop@search.draws=5"
            )

    @property
    def learns(self) -> bool:
        return self.learn or self.learn_opponents


class Meeting(NamedTuple):
    """The focal player and its co-players, numbered from the focal player on. Copies of the game
    are the units, [turn * repetition]: the focal player takes another seat in each turn.

    learners: of the seats that learn, each by itself.
    starts: for each learner its state, [turn, ...]; None: it begins anew in each unit.
    acts: for each learner its player as a function of its state.
    others: groups of the players that do not learn.
    places: who sits where.
    """

    learners: tuple[Learner, ...]
    starts: tuple[LearnerState | None, ...]
    acts: tuple[Callable[[LearnerState], Player], ...]
    others: tuple[Group, ...]
    places: Places


class Played(NamedTuple):
    """What was played, every array [unit, time]; units are [turn * repetition].

    reward: of the focal player in each step, of a focal team the mean over its seats. over: the
        episode ended in this step.
    belief: sum over co-players of the probability it gave to their true goal (as it turned out
        later), when it decided; believed: how many co-players these are: in the game, with a goal
        that became known. predicted: how many co-players took the action it held most probable;
        acted: how many were in the game; best: the oracle's expected number of right predictions,
        which is the sum over these of the largest probability in the policy that each acted by.
        All five None for players without beliefs or models.
    """

    reward: Float[Array, "*shape"]
    over: Bool[Array, "*shape"]
    belief: Float[Array, "*shape"] | None
    believed: Int[Array, "*shape"] | None
    predicted: Int[Array, "*shape"] | None
    acted: Int[Array, "*shape"] | None
    best: Float[Array, "*shape"] | None


# --- who plays -----------------------------------------------------------------------------------


def has_best_response(against: list[str]) -> bool:
    """Whether co-players stay as they are, so that one policy is the best answer to them."""
    return not any(learns(entry) or entry.startswith("switcher:") for entry in against)


def learns(entry: str) -> bool:
    """Whether a co-player's entry names one that learns while it plays."""
    return entry.startswith(LEARNING) or is_learner(entry)


def split_against(text: str, game: Game, side: str = "") -> list[str]:
    """The co-players of a text such as `nh,ns,random`, one per seat that the focal player does not
    take."""
    entries = [entry.strip() for entry in text.split(",")]
    if not all(entries):
        raise UserError(f"--against '{text}' names nobody between two commas")
    find_places(game, side, len(entries))
    return entries


def make_meeting(
    focal: str, against: list[str], game: Game, config: AdaptConfig, side: str = ""
) -> Meeting:
    """Players and learners of a meeting; everything about them is validated here."""
    places = find_places(game, side, len(against))
    if is_learner(focal) and not is_run(focal):
        raise UserError(f"'{focal}' is no player yet: give the path of a run of it")
    if config.learns and not is_run(focal):
        raise UserError(
            f"'{focal}' has nothing that could learn: leave out --learn…, or name a run"
        )
    learners: dict[int, Learner] = {}
    starts: list[LearnerState | None] = []
    acts = []
    players: dict[int, Player] = {}
    entries = dict.fromkeys(places.focal, focal) | dict(zip(places.others, against, strict=True))
    for at, entry in sorted(entries.items()):
        seats, mine = [order[at] for order in places.orders], at in places.focal
        if mine and config.learns:
            made = [_focal_learner(entry, game, seat, at, config) for seat in seats]
        elif not mine and learns(entry):
            made = [_co_learner(entry, game, seat, at) for seat in seats]
        else:
            greedy = config.greedy and mine
            players[at] = partitioned([make_player(entry, game, seat, greedy) for seat in seats])
            continue
        learners[at] = learner = made[0][0]
        learner.check(game)
        learner.check_rollout(config.rollout)
        counts = [x.value for x in leaves(learner.config) if x.path.endswith("minibatches")]
        if any(count != 1 for count in counts):
            raise UserError("minibatches must be 1: there is a single game copy to learn from")
        starts.append(None if made[0][1] is None else _stacked([state for _, state in made]))
        acts.append(_acting(learner, not mine or config.learn, config.greedy))
    return Meeting(tuple(learners.values()), tuple(starts), tuple(acts), _groups(players), places)


def _stacked(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *x: jnp.stack(x), *trees)


def _groups(players: dict[int, Player]) -> tuple[Group, ...]:
    seats = list(players)
    return tuple(
        Group(group.player, tuple(seats[index] for index in group.seats), group.shared)
        for group in group_players(list(players.values()))
    )


def _acting(learner: Learner, exploring: bool, greedy: bool) -> Callable[[LearnerState], Player]:
    """A policy that learns acts as in training; else like the players of a run."""
    if exploring:
        return lambda state: learner.group(state).player_of_one_seat()
    (seat,) = learner.active
    return lambda state: learner.player(state, seat, greedy)


def _adapting(settings: Any) -> Any:
    """A learner's configuration with the defaults for learning in a single game copy."""
    return with_fields(settings, getattr(settings, "adapt_defaults", {}), "adapt_defaults")


def _focal_learner(
    entry: str, game: Game, seat: int, at: int, config: AdaptConfig
) -> tuple[Learner, LearnerState]:
    learner, state, whose = load_seat(entry, game, seat)
    settings = _adapting(learner.config)
    opponents = getattr(settings, "learn_opponents_field", None)
    if opponents is not None:
        learned = {"learn_policy": config.learn, opponents: config.learn_opponents}
        settings = with_fields(settings, learned)
    elif config.learn_opponents:
        raise UserError(f"'{entry}' has no opponent models: leave out --learn-opponents")
    settings = parse_fields(settings, list(config.fields), "--fields")
    return dataclasses.replace(learner, config=settings).alone(state, whose, at)


def _co_learner(entry: str, game: Game, seat: int, at: int) -> tuple[Learner, LearnerState | None]:
    """A learning co-player: a run's, or one that begins anew (its state is None)."""
    if entry.startswith(LEARNING):
        learner, state, whose = load_seat(entry.removeprefix(LEARNING), game, seat)
        learner = dataclasses.replace(learner, config=_adapting(learner.config))
        return learner.alone(state, whose, at)
    kind, make = learner_parts(entry.split(":")[0])
    settings = learner_config(entry, _adapting(kind()))
    shape = view_shape(game)
    seats = (at,)
    return new_learner(
        make, config=settings, shape=shape, game_seats=game.seats, seats=seats, active=seats
    ), None


def what_learns(meeting: Meeting, config: AdaptConfig) -> dict[str, Any]:
    """What changes in the focal player while it plays, as a JSON object."""
    settings = {}
    if config.learns:
        settings = {"rollout": config.rollout, "learner": to_json(meeting.learners[0].config)}
    return {
        "memory": "kept across episodes, fresh in each repetition",
        "policy": config.learn,
        "opponent_models": config.learn_opponents,
    } | settings


# --- playing -------------------------------------------------------------------------------------


class KeptSteps(NamedTuple):
    """What is kept of every step, [time, unit, ...]; `other` are the co-players.

    oracle: the largest probability in the policy that each co-player acted by.
    """

    reward: Float[Array, "time unit"]
    over: Bool[Array, "time unit"]
    alive: Bool[Array, "time unit other"]
    realised: Int[Array, "time unit other"] | None
    action: Integer[Array, "time unit other"] | None
    oracle: Float[Array, "time unit other"]
    insight: Insight | None


def make_program(
    meeting: Meeting, config: AdaptConfig
) -> Callable[..., tuple[Played, tuple[LearnerState, ...]]]:
    """program(game, others, starts, key): what was played in every unit, and the states of the
    learners after it, both [unit = turn * repetition, ...]."""
    iterations = -(-config.steps // config.rollout)
    places = meeting.places

    def program(
        game: Game,
        others: tuple[Group, ...],
        starts: tuple[LearnerState | None, ...],
        key: PRNGKeyArray,
    ) -> tuple[Played, tuple[LearnerState, ...]]:
        units = len(places.orders) * config.seeds
        streams = jnp.arange(game.seats)
        # [unit, seat]: the seat of the game that each seat of the meeting is.
        order = None
        if places.renumbers:
            order = jnp.repeat(jnp.array(places.orders), config.seeds, axis=0)
        table_key, init_key, play_key = jax.random.split(key, 3)
        states = tuple(
            _begin(learner, start, game, jax.random.fold_in(init_key, index), units, streams)
            for index, (learner, start) in enumerate(zip(meeting.learners, starts, strict=True))
        )

        def groups_of(states: tuple[LearnerState, ...]) -> tuple[Group, ...]:
            acting = (
                Group(PartitionedPlayer(jax.vmap(act)(state)), learner.active, True)
                for learner, act, state in zip(meeting.learners, meeting.acts, states, strict=True)
            )
            return (*acting, *others)

        def iterate(carry: tuple, number: Int[Array, ""]) -> tuple[tuple, KeptSteps]:
            states, table = carry
            roll_key, learn_key = jax.random.split(jax.random.fold_in(play_key, number))
            groups = groups_of(states)
            table, trajectory = rollout(
                game, groups, table, roll_key, config.rollout, streams, order, insights=True
            )
            kept = _keep(game, groups, trajectory, places)
            if meeting.learners:
                progress = (number / iterations).astype(jnp.float32)
                keys = jax.random.split(learn_key, units)
                states = _learn(meeting.learners, game, states, trajectory, keys, progress)
            return (states, table), kept

        table = new_table(game, groups_of(states), table_key, units, order)
        carry, kept = jax.lax.scan(iterate, (states, table), jnp.arange(iterations))
        kept = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[: config.steps], kept)
        return jax.tree.map(lambda x: x.T, _prediction_metrics(game, kept)), carry[0]

    return program


def _begin(
    learner: Learner,
    start: LearnerState | None,
    game: Game,
    key: PRNGKeyArray,
    units: int,
    streams: Int[Array, " seat"],
) -> LearnerState:
    """The states of a learner before the first step, [unit, ...]."""
    if start is not None:
        return jax.tree.map(lambda x: jnp.repeat(x, units // x.shape[0], axis=0), start)
    keys = jax.random.split(key, units)
    parts = load_parts(learner.config, game)
    return jax.vmap(lambda key: init_learner(learner, key, streams, parts))(keys)


def _learn(
    learners: tuple[Learner, ...],
    game: Game,
    states: tuple[LearnerState, ...],
    trajectory: Trajectory,
    keys: Key[Array, " unit"],
    progress: Float[Array, ""],
) -> tuple[LearnerState, ...]:
    """Every unit's learners learn from what was played in their own unit."""
    axes = Trajectory(*[1] * len(Trajectory._fields))._replace(last=0, recorded=2, insight=None)  # type: ignore

    def one_unit(
        states: tuple[LearnerState, ...], played: Trajectory, key: PRNGKeyArray
    ) -> tuple[LearnerState, ...]:
        rest = played._replace(last=None, recorded=None)  # type: ignore[arg-type]
        single = jax.tree.map(lambda x: x[:, None], rest)._replace(
            last=jax.tree.map(lambda x: x[None], played.last),
            recorded=jax.tree.map(lambda x: x[:, :, None], played.recorded),
        )
        phase = Phase(0, (), learners, ())
        return learn(game, phase, states, single, key, progress)[0]

    trajectory = trajectory._replace(insight=None)
    return jax.vmap(one_unit, in_axes=(0, axes, 0))(states, trajectory, keys)


def _keep(
    game: Game, groups: tuple[Group, ...], trajectory: Trajectory, places: Places
) -> KeptSteps:
    """What is kept of a rollout; beliefs and predictions are those of the first focal seat."""
    first, team, others = places.focal[0], np.array(places.focal), np.array(places.seen)
    place = next(index for index, group in enumerate(groups) if first in group.seats)
    insight: Insight | None = trajectory.insight[place]
    realised = action = None
    if insight is not None:
        row = groups[place].seats.index(first)
        insight = jax.tree.map(lambda x: x[:, row], insight)
        action = jax.vmap(jax.vmap(game.last_actions))(trajectory.after)[..., others]
        if game.goals is not None and insight.goal is not None:
            became = jax.vmap(jax.vmap(game.goals.realised))(trajectory.state, trajectory.after)
            realised = became[..., others]
    return KeptSteps(
        reward=jnp.mean(trajectory.reward[..., team], axis=-1),
        over=trajectory.over,
        alive=trajectory.alive[..., others],
        realised=realised,
        action=action,
        oracle=jnp.exp(jnp.max(trajectory.log_policy[..., others, :], axis=-1)),
        insight=insight,
    )


def _prediction_metrics(game: Game, kept: KeptSteps) -> Played:
    """What was played, [time, unit], with what was expected compared to what turned out."""
    belief = believed = predicted = acted = best = None
    if kept.insight is not None and kept.insight.action is not None:
        right = jnp.argmax(kept.insight.action, axis=-1) == kept.action
        predicted, acted = jnp.sum(right & kept.alive, axis=-1), jnp.sum(kept.alive, axis=-1)
        best = jnp.sum(jnp.where(kept.alive, kept.oracle, 0.0), axis=-1)
    if kept.realised is not None and kept.insight is not None and kept.insight.goal is not None:
        assert game.goals is not None
        label = hindsight(kept.realised, kept.over, game.goals.unrealised)
        counts = (label >= 0) & kept.alive
        true = label[..., None] == jnp.arange(kept.insight.goal.shape[-1])
        given = jnp.sum(jnp.where(true, kept.insight.goal, 0.0), axis=-1)
        belief = jnp.sum(jnp.where(counts, given, 0.0), axis=-1)
        believed = jnp.sum(counts, axis=-1)
    return Played(kept.reward, kept.over, belief, believed, predicted, acted, best)


def play_units(
    game: Game, meeting: Meeting, config: AdaptConfig
) -> tuple[Played, tuple[LearnerState, ...]]:
    """All units of a meeting: what was played as NumPy arrays [unit, time], and the states of the
    learners at the end."""
    use_cache()
    program = jax.jit(make_program(meeting, config))
    played, states = program(game, meeting.others, meeting.starts, jax.random.key(config.seed))
    return jax.tree.map(np.asarray, played), states
