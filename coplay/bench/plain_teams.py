"""PPO on environments of JaxMARL as JaxMARL's own scripts have it: a mirror of our own.

Its scripts are not part of its wheel. The mirror steps its environments, with its automatic resets,
and has the networks, sizes and order of work of the scripts `ippo_ff_mpe` and `mappo_rnn_*`:
shared networks; `ippo` has two layers of 64 for the actor and the critic; `mappo` has a layer, a
gated recurrent unit (six products, as in Flax) and a layer of 128 each, a critic on the global
state, and gradients through whole rollouts.
"""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import PRNGKeyArray

from coplay.bench.plain_ppo import (
    CLIP,
    DISCOUNT,
    ENTROPY,
    LAMBDA,
    OPTIMISER,
    layers,
    network,
)

Kind = Literal["ippo", "mappo"]
UNITS = 128
GATES = ("reset", "update", "new")


class PlainTeam(NamedTuple):
    """What one update gives to the next; all that belongs to agents is [agent * copy, ...]."""

    parameters: Any
    optimiser: Any
    state: Any
    seen: Any
    done: Any
    memory: Any
    key: PRNGKeyArray


class PlainSteps(NamedTuple):
    """What was played, [time, agent * copy, ...]. done: before the step. ended: in it."""

    seen: Any
    everything: Any
    legal: Any
    done: Any
    action: Any
    chosen: Any
    value: Any
    reward: Any
    ended: Any


def joined(env: Any, given: Any) -> Any:
    """A dictionary by agent as one array [agent * copy, ...]."""
    stacked = jnp.stack([given[agent] for agent in env.agents])
    return stacked.reshape(-1, *stacked.shape[2:])


def parted(env: Any, x: Any) -> dict[str, Any]:
    """The other way round."""
    return dict(zip(env.agents, x.reshape(env.num_agents, -1), strict=True))


def everything(env: Any, seen: Any) -> Any:
    """[agent * copy, number] what a critic that sees all is given: the state of the world, or what
    all agents see."""
    if "world_state" in seen:
        world = seen["world_state"]
    else:
        world = jnp.concatenate([seen[agent] for agent in env.agents], axis=-1)
    copies = world.shape[0]
    tiled = jnp.tile(world, (env.num_agents, 1))
    return jnp.concatenate([tiled, jnp.repeat(jnp.eye(env.num_agents), copies, axis=0)], axis=-1)


def legal_actions(env: Any, state: Any, shape: tuple[int, int]) -> Any:
    """[agent * copy, action] which actions an environment allows; all, if it does not say."""
    if not hasattr(env, "scenario") and not hasattr(env, "_env"):
        return jnp.ones(shape, bool)
    return joined(env, jax.vmap(env.get_avail_actions)(state)).astype(bool)


def new_unit(key: PRNGKeyArray) -> dict[str, Any]:
    """A gated recurrent unit."""
    keys = jax.random.split(key, 2 * len(GATES))
    return {
        gate: (layers(keys[i], (UNITS, UNITS), 1.0)[0], layers(keys[3 + i], (UNITS, UNITS), 1.0)[0])
        for i, gate in enumerate(GATES)
    }


def unroll(unit: Any, memory: Any, x: Any, done: Any) -> tuple[Any, Any]:
    """A gated recurrent unit over [time, row, number]; it forgets where `done`."""

    def step(memory: Any, row: Any) -> tuple[Any, Any]:
        x, done = row
        memory = jnp.where(done[:, None], 0.0, memory)

        def half(gate: str, side: int, x: Any) -> Any:
            weight, bias = unit[gate][side]
            return x @ weight + bias

        reset = jax.nn.sigmoid(half("reset", 0, x) + half("reset", 1, memory))
        update = jax.nn.sigmoid(half("update", 0, x) + half("update", 1, memory))
        new = jnp.tanh(half("new", 0, x) + reset * half("new", 1, memory))
        memory = (1 - update) * new + update * memory
        return memory, memory

    return jax.lax.scan(step, memory, (x, done))


def recurrent(parameters: Any, memory: Any, x: Any, done: Any) -> tuple[Any, Any]:
    """A layer, the unit, a layer and a head over [time, row, number]."""
    weight, bias = parameters["first"][0]
    memory, x = unroll(parameters["unit"], memory, jax.nn.relu(x @ weight + bias), done)
    (weight, bias), (head, shift) = parameters["rest"]
    return memory, jax.nn.relu(x @ weight + bias) @ head + shift


def outputs(
    kind: Kind, parameters: Any, memory: Any, seen: Any, world: Any, legal: Any, done: Any
) -> tuple[Any, Any, Any]:
    """Memories, logits and values over [time, row, ...]."""
    if kind == "ippo":
        logits, value = (network(parameters[name], seen) for name in ("actor", "critic"))
    else:
        actor, logits = recurrent(parameters["actor"], memory[0], seen, done)
        critic, value = recurrent(parameters["critic"], memory[1], world, done)
        memory = (actor, critic)
    return memory, jnp.where(legal, logits, -1e10), value[..., 0]


def begin(env: Any, kind: Kind, key: PRNGKeyArray, copies: int) -> PlainTeam:
    """The carry before the first update."""
    env_key, actor_key, critic_key, key = jax.random.split(key, 4)
    seen, state = jax.vmap(env.reset)(jax.random.split(env_key, copies))
    rows, actions = env.num_agents * copies, env.action_space(env.agents[0]).n
    inputs, world = joined(env, seen).shape[-1], everything(env, seen).shape[-1]

    def one(key: PRNGKeyArray, inputs: int, outputs: int, last: float) -> Any:
        if kind == "ippo":
            return layers(key, (inputs, 64, 64, outputs), last)
        first, unit, rest = jax.random.split(key, 3)
        return {
            "first": layers(first, (inputs, UNITS), 2**0.5),
            "unit": new_unit(unit),
            "rest": layers(rest, (UNITS, UNITS, outputs), last),
        }

    parameters = {
        "actor": one(actor_key, inputs, actions, 0.01),
        "critic": one(critic_key, inputs if kind == "ippo" else world, 1, 1.0),
    }
    memory = (jnp.zeros((rows, UNITS)),) * 2 if kind == "mappo" else ()
    done = jnp.zeros(rows, bool)
    return PlainTeam(parameters, OPTIMISER.init(parameters), state, seen, done, memory, key)


def play(env: Any, kind: Kind, carry: PlainTeam, steps: int) -> tuple[PlainTeam, PlainSteps]:
    """One rollout."""
    copies, actions = carry.done.shape[0] // env.num_agents, env.action_space(env.agents[0]).n
    parameters = carry.parameters

    def act(carry: PlainTeam, _: Any) -> tuple[PlainTeam, PlainSteps]:
        key, act_key, step_key = jax.random.split(carry.key, 3)
        seen, world = joined(env, carry.seen), everything(env, carry.seen)
        legal = legal_actions(env, carry.state, (seen.shape[0], actions))
        memory, logits, value = outputs(
            kind,
            parameters,
            carry.memory,
            seen[None],
            world[None],
            legal[None],
            carry.done[None],
        )
        action = jax.random.categorical(act_key, logits[0])
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits[0]), action[:, None], 1)[:, 0]
        after, state, reward, dones, _ = jax.vmap(env.step)(
            jax.random.split(step_key, copies), carry.state, parted(env, action)
        )
        played = PlainSteps(
            seen=seen,
            everything=world,
            legal=legal,
            done=carry.done,
            action=action,
            chosen=chosen,
            value=value[0],
            reward=joined(env, reward),
            ended=jnp.tile(dones["__all__"], env.num_agents),
        )
        new = carry._replace(
            state=state, seen=after, done=joined(env, dones), memory=memory, key=key
        )
        return new, played

    return jax.lax.scan(act, carry, None, steps)


def update(
    env: Any, kind: Kind, carry: PlainTeam, steps: int, epochs: int, minibatches: int
) -> tuple[PlainTeam, Any]:
    """One rollout and all gradient steps on it; and the mean reward."""
    parameters, start = carry.parameters, carry.memory
    carry, played = play(env, kind, carry, steps)
    seen, world = joined(env, carry.seen), everything(env, carry.seen)
    given = (seen[None], world[None], played.legal[-1:], carry.done[None])
    last = outputs(kind, parameters, carry.memory, *given)[2][0]

    def backward(carry: Any, step: PlainSteps) -> tuple[Any, Any]:
        advantage, following = carry
        stays = 1.0 - step.ended
        delta = step.reward + DISCOUNT * following * stays - step.value
        advantage = delta + DISCOUNT * LAMBDA * stays * advantage
        return (advantage, step.value), advantage

    _, advantage = jax.lax.scan(
        backward, (jnp.zeros_like(last), last), played, reverse=True, unroll=8
    )
    data = (played, advantage, advantage + played.value)
    if kind == "ippo":
        data = jax.tree.map(lambda x: x.reshape(1, -1, *x.shape[2:]), data)
    # A minibatch of MAPPO is made of whole rollouts of some rows, with what they remembered first.
    rows = data[1].shape[1]

    def pick(chosen: Any) -> Any:
        return (
            jax.tree.map(lambda x: x[chosen], start),
            jax.tree.map(lambda x: jnp.take(x, chosen, axis=1), data),
        )

    def learn(carry: Any, chosen: Any) -> tuple[Any, None]:
        parameters, optimiser = carry
        memories, (steps, advantage, target) = pick(chosen)
        gradient = jax.grad(loss, 1)(kind, parameters, memories, steps, advantage, target)
        change, optimiser = OPTIMISER.update(gradient, optimiser, parameters)
        return (optax.apply_updates(parameters, change), optimiser), None

    def epoch(carry: Any, key: PRNGKeyArray) -> tuple[Any, None]:
        order = jax.random.permutation(key, rows).reshape(minibatches, -1)
        return jax.lax.scan(learn, carry, order)

    key, own = jax.random.split(carry.key)
    start_of = (parameters, carry.optimiser)
    learned, _ = jax.lax.scan(epoch, start_of, jax.random.split(own, epochs))
    carry = carry._replace(parameters=learned[0], optimiser=learned[1], key=key)
    return carry, jnp.mean(played.reward)


def loss(
    kind: Kind, parameters: Any, memory: Any, steps: PlainSteps, advantage: Any, target: Any
) -> Any:
    """The clipped loss of PPO, with values clipped too."""
    _, logits, value = outputs(
        kind, parameters, memory, steps.seen, steps.everything, steps.legal, steps.done
    )
    log_policy = jax.nn.log_softmax(logits)
    now = jnp.take_along_axis(log_policy, steps.action[..., None], -1)[..., 0]
    ratio = jnp.exp(now - steps.chosen)
    advantage = (advantage - jnp.mean(advantage)) / (jnp.std(advantage) + 1e-8)
    clipped = jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage
    entropy = -jnp.sum(jnp.exp(log_policy) * log_policy, axis=-1)
    near = steps.value + jnp.clip(value - steps.value, -CLIP, CLIP)
    error = jnp.maximum(jnp.square(value - target), jnp.square(near - target))
    each = -jnp.minimum(ratio * advantage, clipped) - ENTROPY * entropy + 0.25 * error
    return jnp.mean(each)
