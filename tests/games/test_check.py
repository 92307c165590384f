"""`check_game` passes right games, and names what is wrong with games broken on purpose."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.games.check import GameCheckError, _report, check_game
from coplay.games.stag_hunt import StagHunt, StagHuntConfig

SMALL = StagHuntConfig(height=3, width=3, players=3, hares=2, horizon=12, strength=(3.0, 1.0, 0.5))


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"height": 6, "width": 5, "walls": 3, "wall_maps": 16, "view": 1, "players": 3},
        *(
            pytest.param(options, marks=pytest.mark.slow)
            for options in (
                {"height": 3, "players": 5, "strength": (0.0, 1.0, 0.0, 2.5, 4.0)},
                {"players": 2, "stags": 0, "hares": 2, "end_after_first_hunt": 1, "view": 2},
                {"players": 1, "hares": 0, "horizon": 5, "time_reward": -0.1},
            )
        ),
    ],
    ids=str,
)
def test_stag_hunt_passes(options: dict) -> None:
    check_game(StagHunt(StagHuntConfig(**options)), copies=16, steps=80)


def faults_of(*broken: type[StagHunt]) -> set[str]:
    """What the check says of a game with all these faults, without the places.

    Each of them changes one thing and leaves the rest to the next, so several are checked at once:
    compiling takes nearly all the time, and the report names them one by one.
    """
    game = type("Broken", broken, {})(SMALL)
    with pytest.raises(GameCheckError) as caught:
        check_game(game, copies=16, steps=60)
    title, *faults = str(caught.value).split("\n  - ")
    assert title == "stag-hunt breaks the game protocol:"
    return {fault.split(" (copy")[0] for fault in faults}


# --- types -----------------------------------------------------------------------------------


class TotalReward(StagHunt):
    """One reward for all instead of one per seat."""

    def step(self, key, state, actions):
        state, outcome = super().step(key, state, actions)
        return state, outcome._replace(reward=jnp.sum(outcome.reward))


class WholeReward(StagHunt):
    def step(self, key, state, actions):
        state, outcome = super().step(key, state, actions)
        return state, outcome._replace(reward=outcome.reward.astype(jnp.int32))


class NumbersForTruncated(StagHunt):
    def step(self, key, state, actions):
        state, outcome = super().step(key, state, actions)
        return state, outcome._replace(truncated=outcome.truncated.astype(jnp.float32))


class GrowingClock(StagHunt):
    """The clock becomes a wider integer with the first step."""

    def step(self, key, state, actions):
        state, outcome = super().step(key, state, actions)
        return state._replace(time=state.time.astype(jnp.int32)), outcome


class SidesWithAGap(StagHunt):
    """Three seats on sides 0 and 2."""

    @property
    def teams(self):
        return (0, 2, 2)


class NarrowMask(StagHunt):
    """A mask without the last action."""

    def observe(self, state):
        seen = super().observe(state)
        return seen._replace(legal=seen.legal[:, :-1])


class PlainTuple(StagHunt):
    def observe(self, state):
        return tuple(super().observe(state))


class TooManySeatPlanes(StagHunt):
    seat_planes = 3


class MissingPlaneName(StagHunt):
    thing_names = ("prey",)


class NoTime(StagHunt):
    horizon = 0


class WideScript(StagHunt):
    @property
    def scripted(self):
        return {"wide": lambda game, ego: jnp.ones(9) / 9}


class ForgottenGame(StagHunt):
    """A scripted player of the state alone, and a game that is started without a key."""

    def reset(self):
        return super().reset(jax.random.key(0))

    @property
    def scripted(self):
        return {"alone": lambda state: jnp.ones(7) / 7}


class InPlace(StagHunt):
    """A state that `step` writes into."""

    def reset(self, key):
        return [super().reset(key)]

    def observe(self, state):
        return super().observe(state[0])

    def step(self, key, state, actions):
        state[0], outcome = super().step(key, state[0], actions)
        return state, outcome


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (TotalReward, "reward must be floating[3], not float32[]"),
        (WholeReward, "reward must be floating[3], not int32[3]"),
        (NumbersForTruncated, "truncated must be bool[], not float32[]"),
        (GrowingClock, "step changes .time from int16[] to int32[]"),
        (
            SidesWithAGap,
            "teams must give the side of each of 3 seats, numbered 0, 1, …; it is (0, 2, 2)",
        ),
        (NarrowMask, "legal after reset must be bool[3, 7], not bool[3, 6]"),
        (PlainTuple, "observe must give an Observation, not tuple"),
        (TooManySeatPlanes, "seat_planes is 3: 3 seats need 9 planes, but there are 6"),
        (MissingPlaneName, "plane_names has 5 names for 6 planes"),
        (NoTime, "horizon must be at least 1, or None; it is 0"),
        (
            WideScript,
            "probabilities of scripted player 'wide' must be floating[7], not float32[9]",
        ),
        (ForgottenGame, "reset must take (key), but takes ()"),
        (ForgottenGame, "scripted player 'alone' must take (game, state), but takes (state)"),
        (InPlace, "step changes the state it is given; it must return a new one"),
    ],
)
def test_wrong_types_are_named(broken: type[StagHunt], message: str) -> None:
    assert message in faults_of(broken)


# --- life and death --------------------------------------------------------------------------


class Quiet(StagHunt):
    """Without scripted players, which take long to compile."""

    @property
    def scripted(self):
        return {}


class MissingSeat(Quiet):
    def reset(self, key):
        state = super().reset(key)
        return state._replace(alive=state.alive.at[1].set(False))


class Pension(Quiet):
    """Rewards go on after leaving."""

    def step(self, key, state, actions):
        state, outcome = super().step(key, state, actions)
        return state, outcome._replace(reward=outcome.reward + 0.5)


class Resurrection(Quiet):
    def step(self, key, state, actions):
        state, outcome = super().step(key, state, actions)
        return state._replace(alive=state.alive | (state.time % 5 == 0)), outcome


class SilentExit(Quiet):
    def step(self, key, state, actions):
        state, outcome = super().step(key, state, actions)
        return state, outcome._replace(terminated=jnp.zeros_like(outcome.terminated))


class EndsAtHorizon(Quiet):
    """The horizon told as an end of the seats themselves."""

    def step(self, key, state, actions):
        state, outcome = super().step(key, state, actions)
        return state, outcome._replace(terminated=outcome.terminated | outcome.truncated)


class Overtime(Quiet):
    """The horizon it says is shorter than its episodes."""

    horizon = SMALL.horizon - 2


class CutWhenEmpty(Quiet):
    def step(self, key, state, actions):
        state, outcome = super().step(key, state, actions)
        return state, outcome._replace(truncated=outcome.truncated | ~jnp.any(state.alive))


class Ghosts(Quiet):
    """The wishes of seats that left are remembered as their last actions."""

    def step(self, key, state, actions):
        following, outcome = super().step(key, state, actions)
        last = jnp.where(state.alive, following.last, actions.astype(jnp.int8))
        return following._replace(last=last), outcome


class NothingToDo(Quiet):
    """Seats that left have no action at all."""

    def legal(self, state):
        return super().legal(state) & state.alive[:, None]


class EndlessFeature(Quiet):
    def observe(self, state):
        seen = super().observe(state)
        return seen._replace(features=seen.features / (state.time != 3))


@pytest.mark.slow
def test_wrong_lives_are_named() -> None:
    assert faults_of(MissingSeat, SilentExit, Ghosts, Resurrection) == {
        "a seat is not alive after reset",
        "a seat left but is not terminated",
        "state after step: changes with the actions of seats that left",
        "a seat that had left is alive again",
    }


@pytest.mark.slow
def test_wrong_ends_are_named() -> None:
    assert faults_of(
        Pension, EndsAtHorizon, CutWhenEmpty, NothingToDo, EndlessFeature, Overtime
    ) == {
        "an episode goes on beyond the horizon",
        "a seat that had left got a reward",
        "a seat is terminated but did not leave",
        "truncated although nobody is alive",
        "no action is legal",
        "features are not finite",
    }


# --- seats -----------------------------------------------------------------------------------


class FirstTakesAll(Quiet):
    """Every reward is credited to seat 0."""

    def step(self, key, state, actions):
        following, outcome = super().step(key, state, actions)
        first = jnp.arange(self.seats) == 0
        reward = jnp.where(first & state.alive, jnp.sum(outcome.reward), 0.0)
        return following, outcome._replace(reward=reward)


class ActionsOffByOne(Quiet):
    """Right planes, but the last actions begin with the next seat's."""

    def observe(self, state):
        seen = super().observe(state)
        blocks = seen.features[:, :-1].reshape(self.seats, self.seats, self.actions)
        blocks = jnp.roll(blocks, -1, axis=1).reshape(self.seats, -1)
        return seen._replace(features=jnp.concatenate([blocks, seen.features[:, -1:]], axis=1))


class PlanesOffByOne(Quiet):
    def observe(self, state):
        seen = super().observe(state)
        players = jnp.roll(seen.planes[..., : self.seats], 1, axis=-1)
        planes = jnp.concatenate([players, seen.planes[..., self.seats :]], axis=-1)
        return seen._replace(planes=planes)


class NoEgo(Quiet):
    """Everybody sees the last actions as seat 0 does."""

    def observe(self, state):
        seen = super().observe(state)
        return seen._replace(features=jnp.broadcast_to(seen.features[0], seen.features.shape))


class LameFirst(Quiet):
    """Seat 0 cannot go up."""

    def legal(self, state):
        first = jnp.arange(self.seats)[:, None] == 0
        return super().legal(state) & ~(first & (jnp.arange(self.actions) == 0))


class ForgottenStrength(Quiet):
    """Renumbering leaves the strengths where they were."""

    def permute_seats(self, state, order):
        return super().permute_seats(state, order)._replace(strength=state.strength)


class WrongWay(Quiet):
    """New seat order[i] is old seat i."""

    def permute_seats(self, state, order):
        return super().permute_seats(state, jnp.argsort(order))


class Reversed(Quiet):
    """The others follow in the wrong direction."""

    def ego_state(self, state, seat):
        return self.permute_seats(state, (seat - jnp.arange(self.seats)) % self.seats)


class CutByFirst(Quiet):
    """The episode is cut as soon as seat 0 has left."""

    def step(self, key, state, actions):
        state, outcome = super().step(key, state, actions)
        cut = ~state.alive[0] & jnp.any(state.alive)
        return state, outcome._replace(truncated=outcome.truncated | cut)


def follows(*parts: str, when: tuple[str, ...] = ("rotated", "permuted")) -> set[str]:
    return {f"{part}: does not follow when the seats are {how}" for part in parts for how in when}


def test_what_views_must_show_is_said_with_their_faults() -> None:
    game = Quiet(SMALL)  # type: ignore[call-arg]
    for fault, said in {*((words, True) for words in follows("planes", "features")), ("x", False)}:
        with pytest.raises(GameCheckError) as caught:
            _report(game, [fault])
        assert ("`seat_features`" in str(caught.value)) is said


@pytest.mark.slow
def test_wrong_order_in_the_ego_views_is_named() -> None:
    """A shift that is the same for all seats survives any rotation, but not every permutation."""
    first_wrong = "ego_state does not put the seat first, the others in cyclic order"
    assert faults_of(ActionsOffByOne, PlanesOffByOne, Reversed, CutByFirst) == (
        follows("features", "planes", when=("permuted",)) | follows("truncated") | {first_wrong}
    )


@pytest.mark.slow
def test_preferred_seats_are_named() -> None:
    assert faults_of(FirstTakesAll, NoEgo) == follows("reward", "features")
    assert faults_of(LameFirst, ForgottenStrength) == follows("legal", "state after step", "reward")


@pytest.mark.slow
def test_renumbering_the_wrong_way_is_named() -> None:
    assert faults_of(WrongWay) >= follows("planes", "features", "legal", "alive", "reward")


# --- chance and scripted players -------------------------------------------------------------


class OwnDice(Quiet):
    """Draws of its own, outside of the key."""

    def reset(self, key):
        return super().reset(jax.random.fold_in(key, np.random.default_rng().integers(2**31)))

    def step(self, key, state, actions):
        state, outcome = super().step(key, state, actions)
        uniform = np.float32(np.random.default_rng().uniform())
        return state, outcome._replace(reward=jnp.where(outcome.terminated, uniform, 0.0))


class BadScripts(StagHunt):
    @property
    def scripted(self):
        up = jnp.arange(self.actions) == 0
        return {
            "half": lambda game, ego: 0.5 * super(BadScripts, self).scripted["nh"](game, ego),
            "up": lambda game, ego: up.astype(jnp.float32),
        }


@pytest.mark.slow
def test_hidden_chance_is_named() -> None:
    same = "differs between two calls with the same key; it may depend on nothing else"
    assert {f"state after reset: {same}", f"reward: {same}"} <= faults_of(OwnDice)


@pytest.mark.slow
def test_wrong_scripted_players_are_named() -> None:
    assert faults_of(BadScripts) == {
        "scripted player 'half': probabilities do not sum to 1",
        "scripted player 'up': an illegal action has a chance",
    }


# --- games whose seats cannot be renumbered -------------------------------------------------------


class Unlike(StagHunt):
    """Seat 0 is paid more, and there is no renumbering (so scripted players have no ego state)."""

    symmetric = False

    @property
    def scripted(self):
        return {}

    def step(self, key, state, actions):
        state, outcome = super().step(key, state, actions)
        return state, outcome._replace(reward=outcome.reward * jnp.array([2.0, 1.0, 1.0]))

    def permute_seats(self, state, order):
        raise NotImplementedError


class HeedsTheGone(Unlike):
    """The clock is moved by what seats say that have left."""

    def step(self, key, state, actions):
        following, outcome = super().step(key, state, actions)
        heard = jnp.sum(jnp.where(self.alive(state), 0, actions))
        return following._replace(time=following.time + (heard > 3)), outcome


@pytest.mark.slow
def test_seats_that_cannot_be_renumbered() -> None:
    check_game(Unlike(SMALL), copies=16, steps=60)  # type: ignore[call-arg]
    with pytest.raises(GameCheckError, match="changes with the actions of seats that left"):
        check_game(HeedsTheGone(SMALL), copies=16, steps=60)  # type: ignore[call-arg]
