"""What can sit in a seat. A `Player` is written for one seat and a batch of game copies."""

from typing import Any, NamedTuple

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

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


class SearchTrees(NamedTuple):
    """Grown trees. Node 0 is the root; a child has a higher number than its parent.

    visits, q, prior: [tree, node, action] how often an action was taken, its Q, and the probability
        with which the model would take it. Q of an action not taken means nothing.
    child: [tree, node, action] the node an action leads to; -1: none.
    """

    visits: Float[Array, "*batch tree node action"]
    q: Float[Array, "*batch tree node action"]
    prior: Float[Array, "*batch tree node action"]
    child: Int[Array, "*batch tree node action"]


class Plan(NamedTuple):
    """What a player found by search when it decided.

    q: [copy, action] the values it decided by.
    visits: [copy, action] simulations that began with the action, over all trees.
    trees: [copy, tree, ...] one tree for each sample of what the others are after.
    """

    q: Float[Array, "*batch copy action"]
    visits: Float[Array, "*batch copy action"]
    trees: SearchTrees


class Candidates(NamedTuple):
    """What a player tells apart in others: what its beliefs are about.

    names: of the candidates. codes: [candidate, number] the code of each, if they have codes.
    """

    names: tuple[str, ...]
    codes: Any = None


class Insight(NamedTuple):
    """What a player thinks when it decides. A part that it does not have is None. Co-players are in
    the order of seats, the next seat first.

    goal: [copy, other, goal] probabilities of the goals the game declares.
    action: [copy, other, action] probabilities of what they do in this step.
    belief: [copy, other, candidate] probabilities of `Player.candidates`.
    value: [copy] what it expects to get from here on, discounted.
    plan: what its search found.
    figures: name -> [copy] other numbers worth a look, such as the length of a context.
    context: [copy, number] what a hypernetwork makes weights from.
    imagined: [copy, ahead, height, width, plane] the boards that a planner over its own model of
        the world imagines, as it would see them, if it follows the path that it tried most.

        for step in coplay.episodes("stag-hunt", "runs/hop,ns,ns,nh"):
            print(step.insights[0].goal)  # what the first player believes of the others
    """

    goal: Float[Array, "*batch copy other goal"] | None = None
    action: Float[Array, "*batch copy other action"] | None = None
    belief: Float[Array, "*batch copy other candidate"] | None = None
    value: Float[Array, "*batch copy"] | None = None
    plan: Plan | None = None
    figures: dict[str, Float[Array, "*batch copy"]] | None = None
    context: Float[Array, "*batch copy number"] | None = None
    imagined: Bool[Array, "*batch copy ahead height width plane"] | None = None


class Foreseen(NamedTuple):
    """What a player's model of the world says a joint action leads to.

    board: [copy, height, width, plane] the probability that each thing will be in each cell, as the
        player sees the board. likely: the same if everything most probable happens; zeros and ones.
    reward: [copy] its own most probable reward. leaves: [copy] the probability that it is out of
        the game afterwards.
    """

    board: Float[Array, "*batch copy height width plane"]
    likely: Float[Array, "*batch copy height width plane"]
    reward: Float[Array, "*batch copy"]
    leaves: Float[Array, "*batch copy"]


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

    def explain(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory, Insight | None]:
        """As `act` with the same key, and all that it thought."""
        logits, memory = self.act(game, key, view, memory)
        return logits, memory, self.insight(game, view, memory)

    def foresee(
        self, game: Game, view: View, actions: Integer[Array, "copy seat"]
    ) -> Foreseen | None:
        """What its own model of the world says a joint action leads to; None: it has no such model.

        actions: of all seats, itself first.
        """
        return None

    def candidates(self, game: Game) -> Candidates | None:
        """What `Insight.belief` is about; None: it has no such beliefs."""
        return None
