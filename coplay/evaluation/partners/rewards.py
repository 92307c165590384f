"""Partners that want something else: PPO in self-play, for randomly weighted events of the game.

Such partners prefer a behaviour of their own, as in hidden-utility self-play (HSP) and ZSC-Eval.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from coplay.algorithms.scripted import Random
from coplay.core.game import Game
from coplay.core.group import Group
from coplay.core.trajectory import Trajectory
from coplay.evaluation.partners.behaviour import behaviour_of
from coplay.evaluation.partners.config import Order
from coplay.evaluation.partners.practice import Practice, ppo, train_kept
from coplay.training.partner_packs import NETWORK, FamilyData, stack

RAREST = 0.2
"""Events that are rarer than this per episode of random play weigh no more than these."""


def weighted_events(
    game: Game, weights: Float[Array, " weight"], trajectory: Trajectory
) -> Float[Array, "time copy seat"]:
    """weights: of the game's own reward, then of its events."""
    events = jax.vmap(jax.vmap(game.events))(trajectory.state, trajectory.after)
    return weights[0] * trajectory.reward + events @ weights[1:]


def draw_weights(game: Game, count: int, seed: int) -> np.ndarray:
    """[partner, weight] of the game's own reward and of its events.

    One partner in two wants the game's own reward too. Of the events each wants or dreads one or
    more. An event that happens often in random play has a small weight, so that all of them matter.
    """
    rng = np.random.default_rng([seed, 2])
    everyone = Group(Random(), tuple(range(game.seats)), True)
    played = np.asarray(behaviour_of(game, (everyone,), jax.random.key(seed)))
    events = len(game.event_names)
    often = played[:, -events:].mean(0)
    signs = rng.choice([-1.0, 0.0, 0.0, 1.0], (count, events))
    # The wish goes round, so that every event has a partner that wants it.
    signs[np.arange(count), np.arange(count) % events] = 1.0
    sizes = rng.uniform(0.5, 2.0, (count, events)) / np.maximum(often, RAREST)
    own = rng.choice([0.0, 1.0], (count, 1))
    return np.concatenate([own, signs * sizes], axis=1).astype(np.float32)


def make_rewards(order: Order, only: int | None = None) -> FamilyData:
    """Each partner is trained for weights of its own, in all seats, with shared parameters, and
    kept. only: one of them."""
    game, config = order.made, order.config
    weights = draw_weights(game, config.rewards, config.seed)
    learner = ppo(game, tuple(range(game.seats)), NETWORK, config.copies)
    practice = Practice(learner, config.copies, reward=weighted_events)
    blocks = -(-config.rewards_steps // practice.block_steps)
    actors, hows = [], []
    for number in range(config.rewards) if only is None else [only]:
        mine = weights[number]
        key = jax.random.fold_in(jax.random.key(config.seed), 2000 + number)
        path = order.folder / "runs" / f"rewards-{number}.npz"
        order.watcher.say(f"partner {number + 1} of {len(weights)} of the family 'rewards'")
        order.watcher.work("rewards: partners", number, len(weights))
        trained = train_kept(practice, game, jnp.asarray(mine), key, blocks, path)
        actors.append(trained.actor)
        names = ("the game's reward", *game.event_names)
        wants = {name: float(w) for name, w in zip(names, mine.round(3), strict=True) if w}
        steps = blocks * practice.block_steps
        hows.append(
            {"weights": wants, "steps": steps, "return": round(float(trained.curve[-1]), 4)}
        )
    return FamilyData(stack(actors), hows)
