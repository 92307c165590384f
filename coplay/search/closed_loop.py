"""Search with one sampled future per edge: the paper's form.

What the others do after an action is drawn once and kept, so a tree plans against known coin flips
and is optimistic: it finds E[max] where max E is due (see `coplay.search.open_loop`).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from coplay.core.game import Game, State
from coplay.search import mctx_backend as mctx_trees
from coplay.search.planning import (
    Mind,
    Position,
    RootValues,
    SearchConfig,
    World,
    advance,
    begin,
    expected,
    own,
)
from coplay.search.selection import Rules
from coplay.search.tree import Judged, Model, Taken, best_q, grow


def closed_loop(
    world: World,
    game: Game,
    config: SearchConfig,
    state: State,
    mind: Mind,
    seed: UInt32[Array, " tree"],
) -> RootValues:
    """Search from every state [tree]; see `SearchConfig`."""
    position, observation = begin(world, game, state, mind, seed)
    root = Judged(*world.judge(game, own(observation), state, mind))

    def look(
        position: Position, trees: Int[Array, " some"] | None
    ) -> Float[Array, "some other action"]:
        here = world if trees is None else world.of_trees(trees)
        return expected(here, game, position)

    def take(
        action: Int[Array, " some"],
        position: Position,
        others: Float[Array, "some other action"],
        trees: Int[Array, " some"] | None,
    ) -> tuple[Taken, Position]:
        here = world if trees is None else world.of_trees(trees)
        after, step = advance(here, game, config.discount, position, others, action)
        judged = Judged(*here.judge(game, own(step.observation), after.state, after.mind))
        return Taken(step.reward, step.discount, judged), after

    model = Model(look, take)
    rules = Rules(
        simulations=config.simulations,
        depth=config.depth,
        method=config.method,
        normalise=config.normalise,
        sweep=config.sweep,
        init=config.exploration,
    )
    legal = own(observation).legal
    if config.backend == "mctx":
        words = jnp.stack([seed[0], jnp.uint32(config.simulations)])
        key = jax.random.wrap_key_data(words, impl="threefry2x32")
        theirs = mctx_trees.grow_mctx(key, model, root, position, legal, rules)
        summary = theirs.summary()
        q = summary.qvalues if config.backup == "mean" else mctx_trees.best_q(theirs)
        return RootValues(q, summary.visit_counts)
    tree = grow(model, root, position, legal, rules)
    return RootValues(tree.q[0] if config.backup == "mean" else best_q(tree), tree.visits[0])
