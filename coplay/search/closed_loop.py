"""Search with one sampled future per edge: the paper's form.

What the others do after an action is sampled once and kept, so a tree plans against known coin
flips and is optimistic: it finds E[max] instead of max E (see `coplay.search.open_loop`). In
scenarios (`SearchConfig.scenarios`) all actions meet the same coin flips, as in DESPOT.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from coplay.core.game import Game, State
from coplay.core.player import SearchTrees
from coplay.search import mctx_backend as mctx_trees
from coplay.search.config import SearchConfig
from coplay.search.selection import Rules
from coplay.search.simulator import (
    Hypothesis,
    Position,
    RootValues,
    Simulator,
    advance,
    begin,
    co_player_cdf,
    own_view,
)
from coplay.search.tree import Evaluation, Model, StepOutput, as_search_trees, best_q, grow


def closed_loop(
    simulator: Simulator,
    game: Game,
    config: SearchConfig,
    state: State,
    hypothesis: Hypothesis,
    seed: UInt32[Array, " tree"],
) -> tuple[RootValues, SearchTrees]:
    """Search from every state [tree]; see `SearchConfig`."""
    position, observation = begin(simulator, game, state, hypothesis, seed)
    root = Evaluation(*simulator.evaluate(game, own_view(observation), state, hypothesis))

    def observe(
        position: Position, trees: Int[Array, " some"] | None
    ) -> Float[Array, "some other action"]:
        here = simulator if trees is None else simulator.of_trees(trees)
        return co_player_cdf(here, game, position)

    def step_model(
        action: Int[Array, " some"],
        position: Position,
        others: Float[Array, "some other action"],
        trees: Int[Array, " some"] | None,
    ) -> tuple[StepOutput, Position]:
        here = simulator if trees is None else simulator.of_trees(trees)
        after, step = advance(
            here, game, config.discount, position, others, action, config.scenarios
        )
        evaluation = Evaluation(
            *here.evaluate(game, own_view(step.observation), after.state, after.hypothesis)
        )
        return StepOutput(step.reward, step.discount, evaluation), after

    model = Model(observe, step_model)
    rules = Rules(
        simulations=config.simulations_per_tree,
        depth=config.depth,
        kind=config.kind,
        normalise=not config.raw_q,
        sweep=True,
        init=config.exploration,
    )
    legal = own_view(observation).legal
    if config.backend == "mctx":
        words = jnp.stack([seed[0], jnp.uint32(config.simulations_per_tree)])
        key = jax.random.wrap_key_data(words, impl="threefry2x32")
        theirs = mctx_trees.grow_mctx(key, model, root, position, legal, rules)
        summary = theirs.summary()
        q = summary.qvalues if config.backup == "mean" else mctx_trees.best_q(theirs)
        return RootValues(q, summary.visit_counts), mctx_trees.as_search_trees(theirs)
    tree = grow(model, root, position, legal, rules)
    q = tree.q[0] if config.backup == "mean" else best_q(tree)
    return RootValues(q, tree.visits[0]), as_search_trees(tree, rules)
