"""What can sit in a seat. A `Player` is written for one seat and a batch of game copies."""

from typing import Any, NamedTuple

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.core.game import Game, Observation, State

Memory = Any  # a pytree of arrays with a leading copy axis, private to its player

SEATS = "seats"
"""The name of the axis over which the seats of a group act at once: players that hear each other
gather over it (`jax.lax.all_gather`)."""


class View(NamedTuple):
    """What one seat sees in every game copy: all it may use to decide.

    observation: its ego views, [copy, ...].
    alive: [copy] whether the seat is in the game.
    state: [copy, ...] game states renumbered so that this seat is seat 0: for scripted players and
        planners, which are given the game. Learned policies use the observation alone.
    time: [copy] steps played in the episode.
    episode: [copy] episodes finished before this one.
    last_action, last_reward: [copy] what the seat did and got in its last step in the game, which
        may have been in an episode before; -1 and 0 if there was none.

        def act(self, game, key, view, memory):
            return jnp.where(view.observation.legal, 0.0, -1.0), memory
    """

    observation: Observation
    alive: Bool[Array, " copy"]
    state: State
    time: Int[Array, " copy"]
    episode: Int[Array, " copy"]
    last_action: Int[Array, " copy"]
    last_reward: Float[Array, " copy"]


class Insight(NamedTuple):
    """What a player expects of its co-players when it decides, the next seat first.

    goal: [copy, other, goal] probabilities of the goals the game declares; None: it has no beliefs.
    action: [copy, other, action] probabilities of what they do in this step.

        for step in coplay.episodes("stag-hunt", "runs/hop,ns,ns,nh"):
            print(step.insights[0].goal)  # what the first player believes of the others
    """

    goal: Float[Array, "*batch copy other goal"] | None
    action: Float[Array, "*batch copy other action"]


class Player(eqx.Module):
    """Decides for one seat in a batch of game copies.

    class Lazy(coplay.Player):
        def act(self, game, key, view, memory):
            return jnp.zeros(view.observation.legal.shape), memory

    coplay.play("stag-hunt", [Lazy(), "ns", "ns", "nh"])
    """

    def start(self, copies: int) -> Memory:
        """The memory before the first step, with a leading [copy] axis; kept across episodes."""
        return ()

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        """Logits of the actions (illegal ones are masked by the caller) and the new memory."""
        raise NotImplementedError

    @property
    def notices(self) -> bool:
        """Whether it looks at what a step brought."""
        return type(self).notice is not Player.notice

    def notice(
        self, game: Game, view: View, after: State, over: Bool[Array, " copy"], memory: Memory
    ) -> Memory:
        """The memory once the joint action of a step is known.

        view: what it decided on. after: [copy, ...] the states the step led to, before any reset,
        renumbered like `view.state`. over: the episode ended in this step.
        """
        return memory

    def record(self, memory: Memory) -> Any:
        """What its learner is to know of the memory it decided by, [copy, ...]; None: nothing."""
        return None

    def insight(self, game: Game, view: View, memory: Memory) -> Insight | None:
        """What it expects of the others, with the memory it decided by; None: nothing."""
        return None
