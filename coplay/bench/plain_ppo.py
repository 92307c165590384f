"""PPO on a board game as a plain script has it: what `coplay bench peers` puts beside ours.

The same game, networks, number of samples and of gradient steps; nothing else of this library.
Views are built in full and kept as floats, samples are shuffled one by one, and episodes begin anew
from a pool of states, which is cheaper than to draw them in every step.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import PRNGKeyArray

from coplay.core.game import Game

POOL = 4096
DISCOUNT, LAMBDA, CLIP, ENTROPY = 0.99, 0.95, 0.2, 0.01
OPTIMISER = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-3, eps=1e-5))


class PlainState(NamedTuple):
    """What one update gives to the next. parameters: with a leading [seat] axis."""

    parameters: Any
    optimiser: Any
    state: Any
    pool: Any
    key: PRNGKeyArray


def layers(key: PRNGKeyArray, sizes: tuple[int, ...], last: float) -> list[tuple[Any, Any]]:
    """Weights and biases of a network."""
    scales = [2**0.5] * (len(sizes) - 2) + [last]
    keys = jax.random.split(key, len(scales))
    return [
        (scale * jax.random.normal(key, (size, wide)) / size**0.5, jnp.zeros(wide))
        for key, scale, size, wide in zip(keys, scales, sizes[:-1], sizes[1:], strict=True)
    ]


def network(parameters: list[tuple[Any, Any]], x: Any) -> Any:
    """Hidden layers with tanh, and a head."""
    for weight, bias in parameters[:-1]:
        x = jnp.tanh(x @ weight + bias)
    weight, bias = parameters[-1]
    return x @ weight + bias


def views(game: Game, state: Any) -> tuple[Any, Any]:
    """[copy, seat, number] what all seats see, and which actions are legal."""
    seen = jax.vmap(game.observe)(state)
    planes = seen.planes.reshape(*seen.planes.shape[:2], -1).astype(jnp.float32)
    return jnp.concatenate([planes, seen.features], axis=-1), seen.legal


def both(parameters: Any, seen: Any, legal: Any) -> tuple[Any, Any]:
    """Logits [sample, seat, action] and values [sample, seat]; each seat has its own networks."""

    def one(parameters: Any, seen: Any) -> tuple[Any, Any]:
        return network(parameters["actor"], seen), network(parameters["critic"], seen)[..., 0]

    logits, value = jax.vmap(one, (0, -2), (-2, -1))(parameters, seen)
    return jnp.where(legal, logits, -1e9), value


def begin(game: Game, key: PRNGKeyArray, copies: int, hidden: tuple[int, ...]) -> PlainState:
    """The carry before the first update."""
    pool_key, net_key, key = jax.random.split(key, 3)
    pool = jax.vmap(game.reset)(jax.random.split(pool_key, POOL))
    state = jax.tree.map(lambda x: x[:copies], pool)
    inputs = views(game, state)[0].shape[-1]

    def one(key: PRNGKeyArray) -> dict[str, Any]:
        actor, critic = jax.random.split(key)
        return {
            "actor": layers(actor, (inputs, *hidden, game.actions), 0.01),
            "critic": layers(critic, (inputs, *hidden, 1), 1.0),
        }

    parameters = jax.vmap(one)(jax.random.split(net_key, game.seats))
    return PlainState(parameters, OPTIMISER.init(parameters), state, pool, key)


def update(game: Game, carry: PlainState, steps: int, epochs: int, minibatches: int) -> PlainState:
    """One rollout and all gradient steps on it."""
    parameters, optimiser, state, pool, key = carry
    copies = jax.tree.leaves(state)[0].shape[0]

    def act(carry: Any, _: Any) -> tuple[Any, Any]:
        state, key = carry
        key, act_key, step_key, pick_key = jax.random.split(key, 4)
        seen, legal = views(game, state)
        alive = jax.vmap(game.alive)(state)
        logits, value = both(parameters, seen, legal)
        action = jax.random.categorical(act_key, logits)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), action[..., None], -1)[..., 0]
        after, outcome = jax.vmap(game.step)(jax.random.split(step_key, copies), state, action)
        over = outcome.truncated | ~jnp.any(jax.vmap(game.alive)(after), axis=-1)
        fresh = jax.tree.map(lambda x: x[jax.random.randint(pick_key, (copies,), 0, POOL)], pool)
        state = jax.tree.map(
            lambda new, old: jnp.where(over.reshape(-1, *(1,) * (old.ndim - 1)), new, old),
            fresh,
            after,
        )
        ended = (outcome.terminated | over[:, None]).astype(jnp.float32)
        return (state, key), (seen, legal, alive, action, chosen, value, outcome.reward, ended)

    (state, key), played = jax.lax.scan(act, (state, key), None, steps)
    seen, legal, alive, action, chosen, value, reward, ended = played
    last = both(parameters, *views(game, state))[1]

    def backward(carry: Any, row: Any) -> tuple[Any, Any]:
        advantage, following = carry
        reward, ended, value = row
        delta = reward + DISCOUNT * following * (1 - ended) - value
        advantage = delta + DISCOUNT * LAMBDA * (1 - ended) * advantage
        return (advantage, value), advantage

    rows = (reward, ended, value)
    _, advantage = jax.lax.scan(backward, (jnp.zeros_like(last), last), rows, reverse=True)
    target, weight = advantage + value, alive.astype(jnp.float32)
    mean = jnp.sum(advantage * weight) / jnp.sum(weight)
    spread = jnp.sqrt(jnp.sum(weight * jnp.square(advantage - mean)) / jnp.sum(weight))
    samples = jax.tree.map(
        lambda x: x.reshape(steps * copies, *x.shape[2:]),
        (seen, legal, weight, action, chosen, (advantage - mean) / (spread + 1e-8), target),
    )

    def learn(carry: Any, picked: Any) -> tuple[Any, None]:
        parameters, optimiser = carry
        gradient = jax.grad(loss)(parameters, *jax.tree.map(lambda x: x[picked], samples))
        step, optimiser = OPTIMISER.update(gradient, optimiser, parameters)
        return (optax.apply_updates(parameters, step), optimiser), None

    def epoch(carry: Any, key: PRNGKeyArray) -> tuple[Any, None]:
        order = jax.random.permutation(key, steps * copies).reshape(minibatches, -1)
        return jax.lax.scan(learn, carry, order)

    key, own = jax.random.split(key)
    learned, _ = jax.lax.scan(epoch, (parameters, optimiser), jax.random.split(own, epochs))
    return PlainState(*learned, state, pool, key)


def loss(
    parameters: Any,
    seen: Any,
    legal: Any,
    weight: Any,
    action: Any,
    chosen: Any,
    advantage: Any,
    target: Any,
) -> Any:
    """The clipped loss of PPO over samples [sample, seat]; weight: which are alive."""
    logits, value = both(parameters, seen, legal)
    log_policy = jax.nn.log_softmax(logits)
    ratio = jnp.exp(jnp.take_along_axis(log_policy, action[..., None], -1)[..., 0] - chosen)
    clipped = jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage
    entropy = -jnp.sum(jnp.exp(log_policy) * jnp.where(legal, log_policy, 0.0), axis=-1)
    each = -jnp.minimum(ratio * advantage, clipped) - ENTROPY * entropy
    each += 0.5 * jnp.square(value - target)
    return jnp.sum(each * weight) / jnp.sum(weight)
