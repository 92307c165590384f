"""Search with one sampled future per edge, by mctx: the paper's form.

What the others do after an action is drawn once and kept, so a tree plans against known coin flips
and is optimistic: it finds E[max] where max E is due (see `coplay.minds.open_loop`).
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import mctx
from jaxtyping import Array, Float, Int, UInt32

from coplay.games.game import Game, State
from coplay.minds.planning import (
    Mind,
    Position,
    RootValues,
    SearchConfig,
    World,
    advance,
    begin,
    own,
)

FIRST = 1e6  # a score above all others


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
    logits, value = world.judge(game, own(observation), state)
    root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=position)

    def expand(
        _: Any, key: Any, action: Int[Array, " tree"], position: Position
    ) -> tuple[Any, Position]:
        after, step = advance(world, game, config.discount, position, action)
        logits, value = world.judge(game, own(step.observation), after.state)
        output = mctx.RecurrentFnOutput(
            reward=step.reward, discount=step.discount, prior_logits=logits, value=value
        )
        return output, after

    illegal = ~own(observation).legal
    key = jax.random.wrap_key_data(
        jnp.stack([seed[0], jnp.uint32(config.simulations)]), impl="threefry2x32"
    )
    summary = _tree(key, root, expand, illegal, config).summary()
    return RootValues(summary.qvalues, summary.visit_counts)


def _tree(key: Any, root: Any, expand: Any, illegal: Array, config: SearchConfig) -> Any:
    """The one call of mctx."""
    if config.method == "gumbel":
        return mctx.gumbel_muzero_policy(
            (),
            key,
            root,
            expand,
            config.simulations,
            illegal,
            config.depth,
            max_num_considered_actions=illegal.shape[-1],
            gumbel_scale=0.0,
        ).search_tree
    select = functools.partial(
        mctx.muzero_action_selection,
        pb_c_init=config.exploration,
        qtransform=functools.partial(_scores, config=config),
    )
    return mctx.search(
        (),
        key,
        root=root,
        recurrent_fn=expand,
        root_action_selection_fn=functools.partial(select, depth=0),
        interior_action_selection_fn=select,
        num_simulations=config.simulations,
        max_depth=config.depth,
        invalid_actions=illegal.astype(jnp.float32),
    )


def _scores(tree: Any, node: Int[Array, ""], config: SearchConfig) -> Float[Array, " action"]:
    """[action] Q as PUCT adds it up, of one node of one tree."""
    visits = tree.children_visits[node]
    if config.normalise:
        q = mctx.qtransform_by_parent_and_siblings(tree, node)
    else:
        q = jnp.where(visits > 0, tree.qvalues(node), 0.0)
    if not config.sweep:
        return q
    return jnp.where((node == 0) & (visits == 0), FIRST, q)
