"""Partners made of rules: a game's building blocks, chosen and bent by a few numbers.

What a partner is stands in arrays (`RuleParameters`), so one compiled program serves all of them.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.core.errors import UserError
from coplay.core.game import Game, State
from coplay.core.player import Memory, Player, View
from coplay.nn.categorical import NEVER


class RuleParameters(NamedTuple):
    """What a partner does, in numbers: arrays of NumPy or JAX, or their shapes; with a leading
    [partner] axis in a pack.

    preference: [block] logits by which it chooses what to do, when an episode begins.
    reciprocity: added to the preference for the first, cooperative block if all co-players
        cooperated in the last episode, subtracted if none did.
    patience: steps after which it gives up what it does and chooses something else.
    change: probability of choosing anew in each step.
    laziness: probability of doing nothing in a step, where the game has such an action.
    noise: probability of any legal action in a step.
    """

    preference: Any
    reciprocity: Any
    patience: Any
    change: Any
    laziness: Any
    noise: Any


class RuleMemory(NamedTuple):
    """block: [copy] what it does. since: [copy] for how many steps. cooperated: [copy, other] who
    has cooperated in this episode. before: [copy] share of co-players that cooperated in the last
    episode, from -1 (none) to 1 (all); 0 before the first."""

    block: Int[Array, " copy"]
    since: Int[Array, " copy"]
    cooperated: Bool[Array, "copy other"]
    before: Float[Array, " copy"]


class RulePartner(Player):
    """Acts by rules; see `RuleParameters`."""

    parameters: RuleParameters
    seats: int = eqx.field(static=True)

    def start(self, copies: int) -> Memory:
        return RuleMemory(
            jnp.zeros(copies, jnp.int32),
            jnp.zeros(copies, jnp.int32),
            jnp.zeros((copies, self.seats - 1), bool),
            jnp.zeros(copies),
        )

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: RuleMemory
    ) -> tuple[Float[Array, "copy action"], RuleMemory]:
        legal = view.observation.legal
        memory = self._chosen(key, view, memory)
        probs = self._ways(game, view.state)
        doing = jnp.take_along_axis(probs, memory.block[:, None, None], axis=1)[:, 0]
        return self._bent(game, doing, legal), memory._replace(since=memory.since + 1)

    def usual(
        self, game: Game, state: State, legal: Bool[Array, "copy action"]
    ) -> Float[Array, "copy action"]:
        """Logits of what it does in ego states [copy, ...], if nobody knows what it has chosen: a
        mixture by its preference."""
        shares = jax.nn.softmax(self.parameters.preference)
        return self._bent(game, jnp.einsum("b,cba->ca", shares, self._ways(game, state)), legal)

    def _ways(self, game: Game, state: State) -> Float[Array, "copy block action"]:
        ways = [jax.vmap(block, in_axes=(None, 0)) for block in game.blocks.values()]
        return jnp.stack([way(game, state) for way in ways], axis=1)

    def _bent(
        self, game: Game, doing: Float[Array, "copy action"], legal: Bool[Array, "copy action"]
    ) -> Float[Array, "copy action"]:
        """Logits of actions after laziness and noise."""
        mine = self.parameters
        if game.idle_action is not None:
            idle = jnp.arange(game.actions) == game.idle_action
            lazy = jnp.where(legal[:, game.idle_action], mine.laziness, 0.0)[:, None]
            doing = (1 - lazy) * doing + lazy * idle
        anything = legal / jnp.sum(legal, axis=-1, keepdims=True)
        doing = (1 - mine.noise) * doing + mine.noise * anything
        return jnp.where(doing > 0, jnp.log(jnp.where(doing > 0, doing, 1.0)), NEVER)

    def _chosen(self, key: PRNGKeyArray, view: View, memory: RuleMemory) -> RuleMemory:
        """The memory with what it does in this step."""
        mine = self.parameters
        draw, change = jax.random.split(key)
        first = view.time == 0
        tired = ~first & (memory.since >= mine.patience)
        restless = jax.random.uniform(change, first.shape) < mine.change
        blocks = jnp.arange(mine.preference.shape[-1])
        logits = mine.preference + jnp.where(
            blocks == 0, mine.reciprocity * memory.before[:, None], 0.0
        )
        # Who is tired of something does something else.
        logits = jnp.where(tired[:, None] & (blocks == memory.block[:, None]), NEVER, logits)
        anew = first | tired | restless
        drawn = jax.random.categorical(draw, logits).astype(jnp.int32)
        return memory._replace(
            block=jnp.where(anew, drawn, memory.block), since=jnp.where(anew, 0, memory.since)
        )

    def notice(
        self, game: Game, view: View, after: State, over: Bool[Array, " copy"], memory: RuleMemory
    ) -> RuleMemory:
        if not game.event_names:
            return memory
        acts = jax.vmap(game.events)(view.state, after)[:, 1:, 0] > 0
        cooperated = memory.cooperated | acts
        share = 2.0 * jnp.mean(cooperated, axis=1) - 1.0
        return memory._replace(
            cooperated=cooperated & ~over[:, None], before=jnp.where(over, share, memory.before)
        )


def make_rule_partner(game: Game, parameters: RuleParameters) -> RulePartner:
    """A partner for a game; an error if it was made for other building blocks."""
    blocks = parameters.preference.shape[-1]
    if blocks != len(game.blocks):
        raise UserError(
            f"a partner of {blocks} building blocks cannot play {game.name}, which has "
            f"{len(game.blocks)}"
        )
    numbers = RuleParameters(*(jnp.asarray(x, jnp.float32) for x in parameters))
    return RulePartner(numbers, game.seats)


def draw_rules(game: Game, count: int, seed: int) -> RuleParameters:
    """Parameters of so many partners, [partner, ...], drawn at random.

    One partner in three is firm, patient and never changes its mind; the others have each weakness
    with probability 1/2.
    """
    if not game.blocks or not game.symmetric:
        raise UserError(
            f"{game.name} gives no building blocks for rules, or its seats are not alike: leave "
            "out the family 'rules'"
        )
    rng = np.random.default_rng([seed, 0])
    blocks = len(game.blocks)
    # The favourite goes round, so that every building block has its partners.
    favourite = np.eye(blocks)[np.arange(count) % blocks]
    firmness = rng.uniform(1.0, 6.0, (count, 1))
    tastes = rng.normal(0.0, 0.7, (count, blocks))
    steady = rng.random(count) < 1 / 3

    def weakness(low: float, high: float, none: float = 0.0) -> np.ndarray:
        has = ~steady & (rng.random(count) < 0.5)
        return np.where(has, rng.uniform(low, high, count), none)

    sign = rng.choice([-1.0, 1.0, 1.0], count)
    return RuleParameters(
        preference=np.where(steady[:, None], 8.0, firmness) * favourite + tastes,
        reciprocity=sign * weakness(2.0, 8.0),
        patience=weakness(3.0, 15.0, np.inf).round(),
        change=weakness(0.02, 0.2),
        laziness=weakness(0.05, 0.5),
        noise=weakness(0.02, 0.3),
    )
