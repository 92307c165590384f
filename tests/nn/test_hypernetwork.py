"""Generated weights against weights that are really built, and contexts against explicit sums."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.nn.generated_weights import Generated, Heads, squared_length
from coplay.nn.hypernetwork import (
    Attention,
    ContextNetwork,
    TransformerLayer,
    accumulated,
    next_context,
    team_mean,
)
from coplay.nn.layer_norm import LayerNormNetwork
from coplay.nn.networks import ViewShape
from coplay.nn.recurrent_cells import Window

LATENT = 3
RNG = np.random.default_rng(0)


def normal(*shape: int) -> jax.Array:
    return jnp.asarray(RNG.normal(size=shape), jnp.float32)


def noisy(make: Any) -> Any:
    """What `make` gives, with all of its numbers moved; compiled as one."""
    tree = jax.tree.map(np.asarray, jax.jit(make)())
    moved = jax.tree.map(lambda x: np.float32(x + 0.3 * RNG.normal(size=x.shape)), tree)
    return jax.tree.map(jnp.asarray, moved)


NETWORK = noisy(
    lambda: LayerNormNetwork(ViewShape((0, 0, 0), 4, 5), 5, key=jax.random.key(0), hidden=(6, 7))
)
step = jax.jit(LayerNormNetwork.step)


def with_increments(heads: Heads, context: np.ndarray) -> LayerNormNetwork:
    """The network with its weights really changed by one sample's context."""
    where = [lambda n: n.head] + [lambda n, i=i: n.layers[i] for i in range(len(heads.layers))]
    network = NETWORK
    for place, increment in zip(where, [heads.head, *heads.layers], strict=True):
        layer = place(network)
        changed = eqx.tree_at(
            lambda linear: (linear.weight, linear.bias),
            layer,
            (
                np.asarray(layer.weight) + np.einsum("k,koi->oi", context, increment.weight),
                np.asarray(layer.bias) + np.einsum("k,ko->o", context, increment.bias),
            ),
        )
        network = eqx.tree_at(place, network, changed)
    return network


@pytest.mark.parametrize("which", ["head", "all"])
def test_generated_layers_are_layers_with_other_weights(which: Any) -> None:
    heads = noisy(lambda: Heads(LATENT, NETWORK, which))
    x, context, nothing = normal(4, 4), normal(4, LATENT), jnp.zeros((4, 0))
    outputs, _ = step(NETWORK, x, nothing, Generated(heads, context))
    for sample in range(4):
        network = with_increments(heads, np.asarray(context[sample]))
        expected, _ = step(network, x[sample], nothing[0])
        np.testing.assert_allclose(outputs[sample], expected, atol=1e-4)


def test_at_the_start_nothing_is_added() -> None:
    x, context, nothing = normal(4, 4), normal(4, LATENT), jnp.zeros((4, 0))
    plain, _ = step(NETWORK, x, nothing)
    for which in ("last", "all"):
        generated = Generated(Heads(LATENT, NETWORK, which), context)
        np.testing.assert_array_equal(step(NETWORK, x, nothing, generated)[0], plain)


def test_scales_multiply_what_hidden_layers_give() -> None:
    heads = noisy(lambda: Heads(LATENT, NETWORK, "last"))
    heads = eqx.tree_at(lambda h: h.head, heads, jax.tree.map(jnp.zeros_like, heads.head))
    x, context = normal(4), normal(LATENT)
    inside = np.asarray(NETWORK.entry(x))
    for layer, norm, scale in zip(NETWORK.layers, NETWORK.norms, heads.scales, strict=True):
        inside = np.asarray(norm(jax.nn.relu(layer(jnp.asarray(inside)))))
        inside = inside * (1 + np.asarray(context) @ np.asarray(scale))
    outputs, _ = step(NETWORK, x, jnp.zeros(0), Generated(heads, context))
    np.testing.assert_allclose(outputs, NETWORK.head(jnp.asarray(inside)), atol=1e-4)


@pytest.mark.parametrize("which", ["last", "all"])
def test_gram_form_is_the_norm_of_the_parameters(which: Any) -> None:
    heads, other = (noisy(lambda: Heads(LATENT, NETWORK, which)) for _ in range(2))
    difference, theirs = normal(LATENT), normal(LATENT)

    def built(heads: Heads, context: jax.Array) -> np.ndarray:
        parts = [np.tensordot(context, leaf, 1).ravel() for leaf in jax.tree.leaves(heads)]
        return np.concatenate(parts)

    mine, others = built(heads, difference), built(other, theirs)
    found = squared_length(heads.products(heads), difference)
    np.testing.assert_allclose(found, mine @ mine, rtol=1e-4)
    cross = difference @ heads.products(other) @ theirs
    np.testing.assert_allclose(cross, mine @ others, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("accumulation", [0.0, 0.5, 1.0])
def test_accumulation_is_the_explicit_sum(accumulation: float) -> None:
    rows, steps, seats = 2, 6, 2
    z, start = normal(rows, steps, seats, LATENT), normal(rows, seats, LATENT)
    first = jnp.asarray(RNG.random((rows, steps, seats)) < 0.3)
    alive = jnp.ones((rows, steps, seats), bool)
    program = jax.jit(accumulated, static_argnums=(4, 5))
    now, before = map(np.asarray, program(z, start, first, alive, accumulation, False))
    z, start, first = (np.asarray(x) for x in (z, start, first))  # type: ignore[assignment]
    for row in range(rows):
        for seat in range(seats):
            for t in range(steps):
                begun = [s for s in range(t + 1) if first[row, s, seat]]
                since = begun[-1] if begun else 0
                terms = [accumulation ** (t - s) * z[row, s, seat] for s in range(since, t + 1)]
                if not begun:
                    terms.append(accumulation ** (t + 1) * start[row, seat])
                np.testing.assert_allclose(now[row, t, seat], sum(terms), atol=1e-5)
                expected = start[row, seat] if t == 0 else now[row, t - 1, seat]
                np.testing.assert_allclose(before[row, t, seat], expected, atol=1e-6)


def test_frozen_contexts_change_where_episodes_begin() -> None:
    z, start = normal(1, 4, 1, LATENT), normal(1, 1, LATENT)
    first = jnp.asarray([[[False], [True], [False], [True]]])
    now, _ = accumulated(z, start, first, jnp.ones_like(first), 0.0, True)
    expected = [start[0, 0], z[0, 1, 0], z[0, 1, 0], z[0, 3, 0]]
    np.testing.assert_array_equal(now[0, :, 0], jnp.stack(expected))


def test_who_is_gone_keeps_the_context() -> None:
    z, before = normal(2, LATENT), normal(2, LATENT)
    alive = jnp.asarray([True, False])
    now = next_context(z, before, jnp.zeros(2, bool), alive, 0.5, False)
    np.testing.assert_allclose(now[0], z[0] + 0.5 * before[0], rtol=1e-6)
    np.testing.assert_array_equal(now[1], before[1])


def test_attention_hears_only_those_who_are_heard() -> None:
    attention = noisy(lambda: Attention(4, 1, jax.random.key(0)))
    agents = normal(3, 4)
    heard = jnp.asarray([[True, True, False]] * 3)
    hear = jax.jit(Attention.__call__)
    found = hear(attention, agents, agents, heard)
    changed = hear(attention, agents, agents.at[2].set(9.0), heard)
    np.testing.assert_allclose(found, changed, atol=1e-6)
    # By hand, for the first agent.
    parts = (attention.query, attention.key, attention.value)
    query, key, value = (np.asarray(part(agents)) for part in parts)
    score = query[0] @ key[:2].T / 2.0
    weight = np.exp(score) / np.exp(score).sum()
    expected = agents[0] + attention.out(jnp.asarray(weight @ value[:2]))
    np.testing.assert_allclose(found[0], expected, atol=1e-5)
    nobody = hear(attention, agents, agents, jnp.zeros((3, 3), bool))
    np.testing.assert_allclose(nobody, agents + attention.out.bias, atol=1e-6)


@pytest.mark.slow
def test_heads_and_the_transformer_layer_by_hand() -> None:
    layer = noisy(lambda: TransformerLayer(4, 2, jax.random.key(0)))
    agents, heard = normal(3, 4), jnp.asarray([[True, True, False]] * 3)
    found = jax.jit(TransformerLayer.__call__)(layer, agents[:1], agents, heard[:1])

    attention, known = layer.attention, layer.before(agents)
    parts = (attention.query, attention.key, attention.value)
    query, key, value = (np.asarray(part(known)) for part in parts)
    taken = []
    for head in (slice(0, 2), slice(2, 4)):
        score = query[0, head] @ key[:2, head].T / np.sqrt(2)
        taken.append(np.exp(score) / np.exp(score).sum() @ value[:2, head])
    near = agents[0] + attention.out(jnp.asarray(np.concatenate(taken)))
    expected = near + layer.down(jax.nn.relu(layer.up(layer.between(near))))
    np.testing.assert_allclose(found[0], expected, atol=1e-4)


def test_a_window_holds_the_last_inputs() -> None:
    window, x = Window(2, 3), normal(4, 1, 2)
    cleared = jnp.asarray([[False], [True], [False], [False]])
    alive = jnp.asarray([[True], [True], [False], [True]])
    _, memories = window.unroll(x, jnp.ones((1, 6)), cleared, alive)
    nothing = np.zeros(2)
    np.testing.assert_array_equal(memories[0, 0], [*x[0, 0], 1, 1, 1, 1])
    np.testing.assert_array_equal(memories[2, 0], [*x[1, 0], *nothing, *nothing])
    np.testing.assert_array_equal(memories[3, 0], [*x[3, 0], *x[1, 0], *nothing])


def test_team_mean_leaves_out_who_is_gone() -> None:
    values = normal(5, 3, LATENT)
    present = jnp.asarray([[True, False, True]] * 4 + [[False] * 3])
    mean = team_mean(values, present)
    np.testing.assert_allclose(mean[:4, 0], (values[:4, 0] + values[:4, 2]) / 2, rtol=1e-6)
    np.testing.assert_array_equal(mean[4], 0)


@pytest.mark.slow
@pytest.mark.parametrize("memory_kind", ["gru", "lstm", "window", "policies"])
def test_contexts_of_chunks_are_those_of_the_whole(memory_kind: Any) -> None:
    network = noisy(
        lambda: ContextNetwork(
            ViewShape((0, 0, 0), 4, 5),
            key=jax.random.key(0),
            width=5,
            channels=(),
            activation="relu",
            attention="transformer" if memory_kind == "window" else "plain",
            heads=1,
            memory_kind=memory_kind,
            units=4,
            window=2 if memory_kind == "window" else 3,
            temperature=0.5,
            latent=LATENT,
        )
    )
    x = normal(2, 6, 3, 4)
    start = normal(2, 3, {"gru": 4, "lstm": 8, "window": 10, "policies": 30}[memory_kind])
    policy = jax.nn.log_softmax(3 * normal(2, 6, 3, 5))
    if memory_kind == "policies":
        start = start.at[..., 15:].set(jnp.exp(jnp.tile(policy[:, 0], 3)))
    cleared = jnp.asarray(RNG.random((2, 6, 1)) < 0.3) & jnp.ones((1, 1, 3), bool)
    alive = jnp.asarray(RNG.random((2, 6, 3)) < 0.8)
    unroll = jax.jit(ContextNetwork.unroll)
    z, memories = unroll(network, x, start, cleared, alive, policy)
    assert np.abs(z).max() <= 1
    rest = (x[:, 2:], memories[:, 1], cleared[:, 2:], alive[:, 2:], policy[:, 2:])
    later, _ = unroll(network, *rest)
    np.testing.assert_allclose(later, z[:, 2:], atol=1e-6)
