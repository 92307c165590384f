"""What JaxMARL's environments do each in their own way, and which of them cannot be played here.

JaxMARL gives one interface, but says "done" for a death, for the end of a battle and for the end of
the time alike, and a few environments hold their observations or their masks elsewhere. A `Kind`
says for one family of environments how it is. `env` is a JaxMARL environment in all of this;
nothing here imports JaxMARL.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from coplay.core.entities import EntityList, in_a_row

CONTINUOUS = "its actions are continuous, and coplay's players choose among discrete actions"
ROBOTARIUM = (
    "it comes from the package jaxrobotarium, which is not part of JaxMARL's installation and "
    "which coplay does not know"
)

REFUSED: dict[str, str] = {
    "MPE_simple_facmac_v1": CONTINUOUS,
    "MPE_simple_facmac_3a_v1": CONTINUOUS,
    "MPE_simple_facmac_6a_v1": CONTINUOUS,
    "MPE_simple_facmac_9a_v1": CONTINUOUS,
    "LearnedPolicyEnemySMAX": (
        "it takes a policy and its parameters as Python objects; take smax:SCENARIO with "
        "--game.enemies players, where any player can sit in the enemies' seats"
    ),
    "ant_4x2": CONTINUOUS,
    "halfcheetah_6x1": CONTINUOUS,
    "hopper_3x1": CONTINUOUS,
    "humanoid_9|8": CONTINUOUS,
    "walker2d_2x3": CONTINUOUS,
    "JaxRobotarium_navigation": ROBOTARIUM,
    "JaxRobotarium_discovery": ROBOTARIUM,
    "JaxRobotarium_material_transport": ROBOTARIUM,
    "JaxRobotarium_warehouse": ROBOTARIUM,
    "JaxRobotarium_arctic_transport": ROBOTARIUM,
    "JaxRobotarium_foraging": ROBOTARIUM,
    "JaxRobotarium_rware": ROBOTARIUM,
    "JaxRobotarium_predator_prey": ROBOTARIUM,
}
"""environment -> why it cannot be played."""


class EnvStep(NamedTuple):
    """One step of an environment. before, after: its states. actions, done: [seat]."""

    before: Any
    actions: Int[Array, " seat"]
    after: Any
    done: Bool[Array, " seat"]


def everybody(env: Any, yes: Bool[Array, ""]) -> Bool[Array, " seat"]:
    """One truth for all seats."""
    return jnp.broadcast_to(yes, (env.num_agents,))


def by_agent(env: Any, given: Any) -> list[Any]:
    """[seat] what JaxMARL gives by agent: dictionaries, tuples, or arrays with a first axis."""
    return [given[agent] for agent in env.agents]


def numbered(env: Any, count: int) -> list[str]:
    """Names of actions that have none."""
    return [str(action) for action in range(count)]


class Kind(NamedTuple):
    """A family of environments.

    gone: [seat] which seats a step took out of the game for good (who left before may be said
        again). Whoever is not gone when JaxMARL says that the episode is done was cut off by a
        limit of time: that is a truncation.
    views: [seat] the seats' observations, from what JaxMARL returned for all.
    legal: [seat] masks of the seats' actions; None: all actions are always legal.
    names: of the actions.
    options: arguments with which coplay makes the environment unless others are given.
    keeps_view: the observation is no function of the state, so that it has to be kept with it.
    idle: the action written down for a seat that left.
    scores: see `Game.scores`.
    global_state: JaxMARL's own global state; None: it has none.
    full_view: see `Game.full_view`.
    sides: [side] its name and its agents, by their numbers; empty: all have one aim, or each its
        own.
    entities: see `Game.entities`.
    """

    gone: Callable[[Any, EnvStep], Bool[Array, " seat"]]
    views: Callable[[Any, Any], list[Any]] = by_agent
    legal: Callable[[Any, Any], list[Any]] | None = None
    names: Callable[[Any, int], list[str]] = numbered
    options: Mapping[str, Any] = {}
    keeps_view: bool = False
    idle: int = 0
    scores: Callable[[Any, Any], dict[str, Float[Array, ""]]] = lambda env, state: {}
    global_state: Callable[[Any, Any], Float[Array, " number"]] | None = None
    full_view: bool = False
    sides: Callable[[Any], tuple[tuple[str, tuple[int, ...]], ...]] = lambda env: ()
    entities: Callable[[Any], tuple[EntityList, ...]] = lambda env: ()


def nobody_leaves(env: Any, step: EnvStep) -> Bool[Array, " seat"]:
    """Episodes that end by time alone."""
    return jnp.zeros(env.num_agents, bool)


def everyone_done_leaves(env: Any, step: EnvStep) -> Bool[Array, " seat"]:
    """Episodes without a limit of time."""
    return step.done


# --- MPE ---------------------------------------------------------------------------------------


def mpe_names(env: Any, count: int) -> list[str]:
    """Moves; where an agent also speaks, a word and a move: action = 5 * word + move."""
    moves = ["stay", "left", "right", "down", "up"]
    if count % 5:  # only words, no moves
        return [f"say {word}" for word in range(count)]
    words = [""] if count == 5 else [f"say {word} " for word in range(count // 5)]
    return [word + move for word in words for move in moves]


MPE = Kind(nobody_leaves, names=mpe_names)
# Everybody is seen by everybody; velocities that are not shown follow from two positions.
OPEN_MPE = MPE._replace(full_view=True)


def tag_sides(env: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Adversaries, who chase, and agents, who flee."""
    chasing = env.num_adversaries
    return (
        ("adversaries", tuple(range(chasing))),
        ("agents", tuple(range(chasing, env.num_agents))),
    )


def landmarks(env: Any) -> tuple[EntityList, ...]:
    """The landmarks, whose ways follow the own velocity and place."""
    if not env.num_landmarks:
        return ()
    return (EntityList("landmarks", in_a_row(4, env.num_landmarks, 2)),)


def spread_entities(env: Any) -> tuple[EntityList, ...]:
    """Landmarks, and the other agents: their ways, and behind those of all what they say."""
    ways, others, said = 4 + 2 * env.num_landmarks, env.num_agents - 1, env.dim_c
    words = ways + 2 * others
    places = zip(in_a_row(ways, others, 2), in_a_row(words, others, said), strict=True)
    agents = tuple(way + word for way, word in places)
    return (*landmarks(env), *[EntityList("agents", agents)] * bool(agents))


def tag_entities(env: Any) -> tuple[EntityList, ...]:
    """Landmarks, and the ways to adversaries: to all others of them, for one of them; to all but
    the last, for one that flees."""
    others = env.num_adversaries - 1
    adversaries = in_a_row(4 + 2 * env.num_landmarks, others, 2)
    return (*landmarks(env), *[EntityList("adversaries", adversaries)] * bool(others))


# --- SMAX --------------------------------------------------------------------------------------


def battle(state: Any) -> Any:
    """SMAX's own state, within that of the heuristic enemies if there are such."""
    return getattr(state, "state", state)


def sides_standing(env: Any, state: Any) -> tuple[Bool[Array, ""], Bool[Array, ""]]:
    """Whether any ally is alive, and whether any enemy is."""
    alive = battle(state).unit_alive
    return jnp.any(alive[: env.num_allies]), jnp.any(alive[env.num_allies :])


def smax_gone(env: Any, step: EnvStep) -> Bool[Array, " seat"]:
    """The dead; everyone, once one side has nobody left."""
    allies, enemies = sides_standing(env, step.after)
    return step.done | ~(allies & enemies)


def smax_legal(env: Any, state: Any) -> list[Any]:
    return by_agent(env, env.get_avail_actions(state))


def smax_names(env: Any, count: int) -> list[str]:
    moves = ["up", "right", "down", "left", "stop"]
    return moves + [f"attack {target}" for target in range(count - len(moves))]


def smax_sides(env: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Allies and enemies, where both are played."""
    allies = env.num_allies
    if env.num_agents == allies:
        return ()
    return (
        ("allies", tuple(range(allies))),
        ("enemies", tuple(range(allies, env.num_agents))),
    )


def smax_scores(env: Any, state: Any) -> dict[str, Float[Array, ""]]:
    allies, enemies = sides_standing(env, state)
    return {"won": (allies & ~enemies).astype(jnp.float32)}


def smax_entities(env: Any) -> tuple[EntityList, ...]:
    """The units of the own side, then those of the other, which attacks name by their number. None
    where sides of different numbers share the same views, or views are divided in sectors."""
    inner = getattr(env, "_env", env)  # the battle within heuristic enemies
    uneven = env.num_agents > env.num_allies != env.num_enemies
    if uneven or inner.observation_type != "unit_list":
        return ()
    size, mine = len(inner.unit_features), env.num_allies - 1
    own = in_a_row(0, mine, size)
    theirs = in_a_row(mine * size, env.num_enemies, size)
    enemies = EntityList("enemies", theirs, there=0, numbered=True)
    return (*[EntityList("allies", own, there=0)] * bool(own), enemies)


SMAX = Kind(
    smax_gone,
    legal=smax_legal,
    names=smax_names,
    idle=4,  # stop, the one action that JaxMARL allows to a dead unit
    scores=smax_scores,
    global_state=lambda env, state: env.get_world_state(state),
    sides=smax_sides,
    entities=smax_entities,
)

# --- the others --------------------------------------------------------------------------------


def riddle_gone(env: Any, step: EnvStep) -> Bool[Array, " seat"]:
    """Everyone, when the one in the room tells."""
    told = step.actions[step.before.agent_in_room] == env.game_actions["TELL"]
    return everybody(env, told)


def nav_gone(env: Any, step: EnvStep) -> Bool[Array, " seat"]:
    """Who arrived or crashed, as soon as JaxMARL takes it out (at once only if evaporating)."""
    return step.done & (step.after.goal_reached | step.after.move_term)


def storm_views(env: Any, given: Any) -> list[Any]:
    """The one environment that gives arrays of all agents, the inventories transposed."""
    return [
        {"observation": given["observations"][seat], "inventory": given["inventory"][:, seat]}
        for seat in range(env.num_agents)
    ]


def titles(*names: str) -> Callable[[Any, int], list[str]]:
    """The same names in every environment of a kind."""
    return lambda env, count: list(names)


STORM_NAMES = titles("left", "right", "forward", "interact", "stay")

KINDS: dict[str, Kind] = {
    "MPE_simple_v3": OPEN_MPE,
    "MPE_simple_tag_v3": OPEN_MPE._replace(sides=tag_sides, entities=tag_entities),
    "MPE_simple_world_comm_v3": MPE._replace(options={"action_type": "Discrete"}),
    "MPE_simple_spread_v3": OPEN_MPE._replace(entities=spread_entities),
    "MPE_simple_crypto_v3": MPE,
    "MPE_simple_speaker_listener_v4": MPE,
    "MPE_simple_push_v3": MPE,
    "MPE_simple_adversary_v3": MPE,
    "MPE_simple_reference_v3": MPE,
    "switch_riddle": Kind(riddle_gone, names=titles("nothing", "switch light", "tell")),
    "SMAX": SMAX,
    "HeuristicEnemySMAX": SMAX,
    "storm": Kind(nobody_leaves, views=storm_views, names=STORM_NAMES),
    "storm_2p": Kind(nobody_leaves, names=STORM_NAMES),
    "storm_np": Kind(
        nobody_leaves,
        names=titles(
            "left", "right", "forward", "stay", "zap forward", "zap ahead", "zap right", "zap left"
        ),
    ),
    "hanabi": Kind(
        everyone_done_leaves,
        legal=lambda env, state: by_agent(env, env.get_legal_moves(state)),
        names=lambda env, count: [env.action_encoding[action] for action in range(count)],
        keeps_view=True,  # it shows the last action, which the state does not hold
    ),
    "overcooked": Kind(
        nobody_leaves,
        names=titles("up", "down", "right", "left", "stay", "interact"),
        full_view=True,
    ),
    "overcooked_v2": Kind(
        nobody_leaves, names=titles("right", "down", "left", "up", "stay", "interact")
    ),
    "coin_game": Kind(
        nobody_leaves,
        names=titles("right", "left", "up", "down", "stay"),
        options={"cnn": True},  # the board as an image instead of as a flat vector
        full_view=True,
    ),
    "jaxnav": Kind(nav_gone, options={"act_type": "Discrete"}),
}
"""environment -> how it is; together with `REFUSED` all of JaxMARL 0.2's registry."""
