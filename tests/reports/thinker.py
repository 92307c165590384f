"""A player with a thought of every kind, made of plain sums: nothing is searched or learned."""

import jax
import jax.numpy as jnp

import coplay
from coplay.core.player import Candidates, Foreseen, Plan, SearchTrees


class Thinker(coplay.Player):
    """Acts at random. What it tells of others changes with the step; its two trees do not."""

    def act(self, game, key, view, memory):
        return jnp.zeros(view.observation.legal.shape), memory

    def explain(self, game, key, view, memory):
        logits, memory = self.act(game, key, view, memory)
        return logits, memory, thought(game, view)

    def foresee(self, game, view, actions):
        """That everybody stays, half-heartedly."""
        planes = view.observation.planes.astype(jnp.float32)
        copies = planes.shape[0]
        return Foreseen(planes / 2, planes, jnp.full(copies, 0.25), jnp.full(copies, 0.125))

    def candidates(self, game):
        codes = jnp.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.5, 0.0]])
        return Candidates((*game.goals.names, "<b>random</b>"), codes)


def thought(game, view) -> coplay.Insight:
    """Beliefs that move from even to the first candidate, and predictions by the own key."""
    copies, others = view.time.shape[0], game.seats - 1
    sure = 1.0 - 0.8 ** view.time.astype(jnp.float32)
    belief = (1 - sure)[:, None, None] / 3 + sure[:, None, None] * jnp.array([1.0, 0.0, 0.0])
    legal = jax.vmap(game.observe)(view.state).legal[:, 1:]
    leaning = jnp.where(legal, jnp.arange(game.actions, dtype=jnp.float32), -jnp.inf)
    return coplay.Insight(
        action=jax.nn.softmax(leaning),
        belief=jnp.broadcast_to(belief, (copies, others, 3)),
        value=2.0 - 0.1 * view.time,
        plan=plan(copies, game.actions),
        figures={"<i>drift": jnp.sin(view.time / 3.0)},
        context=jnp.stack([jnp.sin(view.time / 3.0), jnp.cos(view.time / 3.0)], axis=-1),
        imagined=jnp.repeat(view.observation.planes[:, None] != 0, 3, axis=1),
    )


def plan(copies: int, actions: int) -> Plan:
    """Two trees of three nodes: action 1 four times, then action 0 twice; action 3 once."""
    shape = (2, 3, actions)
    visits = jnp.zeros(shape).at[:, 0, 1].set(4.0).at[:, 0, 3].set(1.0).at[:, 1, 0].set(2.0)
    q = jnp.zeros(shape).at[0, 0, 1].set(2.0).at[1, 0, 1].set(1.0).at[:, 0, 3].set(0.5)
    child = jnp.full(shape, -1).at[:, 0, 1].set(1).at[:, 1, 0].set(2)
    trees = SearchTrees(visits, q, jnp.full(shape, 1 / actions), child)
    root = jnp.zeros((copies, actions)).at[:, 1].set(1.5).at[:, 3].set(0.5)
    tried = jnp.zeros((copies, actions)).at[:, 1].set(8.0).at[:, 3].set(2.0)
    every = jax.tree.map(lambda x: jnp.broadcast_to(x, (copies, *x.shape)), trees)
    return Plan(root, tried, every)
