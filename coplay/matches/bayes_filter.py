"""The best possible prediction of scripted co-players: an exact Bayes filter over their kinds.

A seat's player is one of the kinds of a mix, each as probable as the others before anything was
seen. What a kind does in a state is known exactly, so after every action

    P(kind | past) ∝ P(kind) · Π_s π_kind(a_s | s_s)
    P(a | past) = Σ_kind P(kind | past) π_kind(a | s)

No model that sees the same past can predict better on average. Kinds are drawn for each seat and
episode on their own and states are seen in full, so seats are filtered on their own.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from coplay.core.errors import UserError
from coplay.core.game import Game, State
from coplay.core.player import Player, View
from coplay.matches.dataset import Dataset, batches, by_segment
from coplay.nn import categorical

TIE = 1e-6
"""Probabilities closer than this count as equal."""


class Filtered(NamedTuple):
    """What the filter says of every sample, in the order of `Samples`.

    kind: [row, kind] probabilities before the step's action is seen.
    action: [row, action] probabilities of the action.
    known: [row, action] the same if the kind were known.
    """

    kind: np.ndarray
    action: np.ndarray
    known: np.ndarray

    def hits(self) -> np.ndarray:
        """[row] probability that the action the filter holds most probable is taken. Among equally
        probable ones it guesses."""
        first = self.action >= self.action.max(1, keepdims=True) - TIE
        return (self.known * first).sum(1) / first.sum(1)


class BestTop1(NamedTuple):
    """Top-1 of the filter over some samples. expected: over the chance of what co-players do.
    interval: 95 % of what comes true in so many samples lies in it."""

    expected: float
    interval: tuple[float, float]

    def words(self, top1: float) -> str:
        """What a model's top-1 on the same samples is beside it."""
        low, high = self.interval
        said = f"the best possible top-1 is {self.expected:.3f} ({low:.3f} to {high:.3f} by chance)"
        if top1 <= self.expected:
            return f"{said}: {100 * top1 / max(self.expected, 1e-9):.1f} % of it is reached"
        if top1 <= high:
            return f"{said}: the model is above the expected value, by no more than chance"
        return (
            f"{said}: the model is above it by more than chance, so the kinds do not fit the data"
        )


def best_top1(hits: np.ndarray) -> BestTop1:
    """Of the samples with these `Filtered.hits`. Given the past, each hit is a draw of its own, so
    the variance of their sum is the sum of p (1 - p)."""
    expected = float(hits.mean())
    reach = 1.96 * float(np.sqrt((hits * (1 - hits)).sum())) / len(hits)
    return BestTop1(expected, (expected - reach, expected + reach))


def refuse_memories(kinds: tuple[str, ...], players: tuple[Player, ...]) -> None:
    """The players of a mix must be such that their action probabilities are known exactly from the
    view alone."""
    for kind, player in zip(kinds, players, strict=True):
        if jax.tree.leaves(player.start(1)):
            raise UserError(
                f"'{kind}' remembers, so what it does is not known exactly from the state: the "
                "filter is for mixes of scripted players"
            )


def policies(
    game: Game, players: tuple[Player, ...], state: State, time: Int[Array, " copy"]
) -> Float[Array, "copy seat kind action"]:
    """Log-probabilities of what each kind would do in every seat; `state` [copy, ...]."""
    copies = time.shape[0]
    seen = jax.vmap(game.observe)(state)
    alive = jax.vmap(game.alive)(state)

    def of_seat(seat: Int[Array, ""]) -> Float[Array, "copy kind action"]:
        view = View(
            observation=jax.tree.map(lambda x: jnp.take(x, seat, axis=1), seen),
            alive=jnp.take(alive, seat, axis=1),
            state=jax.vmap(game.ego_state, in_axes=(0, None))(state, seat),
            time=time,
            episode=jnp.zeros(copies, jnp.int32),
            last_action=jnp.full(copies, -1, jnp.int32),
            last_reward=jnp.zeros(copies),
        )
        key = jax.random.key(0)
        logits = [player.act(game, key, view, player.start(copies))[0] for player in players]
        legal = view.observation.legal
        return jnp.stack([categorical.log_policy(one, legal) for one in logits], axis=1)

    return jnp.moveaxis(jax.vmap(of_seat)(jnp.arange(game.seats)), 0, 1)


def posterior(
    log_probs: Float[Array, "time *batch kind action"], action: Int[Array, "time *batch"]
) -> Float[Array, "time *batch kind"]:
    """Log-probabilities of the kinds before each action, from an even prior."""
    taken = action[..., None] == jnp.arange(log_probs.shape[-1])
    # An impossible action has about -1e30: kept finite, and far below any possible one.
    seen = jnp.maximum(jnp.sum(jnp.where(taken[..., None, :], log_probs, 0.0), axis=-1), -1e4)
    before = jnp.concatenate([jnp.zeros_like(seen[:1]), jnp.cumsum(seen, axis=0)[:-1]])
    return jax.nn.log_softmax(before, axis=-1)


def filtered(dataset: Dataset, players: tuple[Player, ...]) -> Filtered:
    """The filter over all samples of a dataset. players: of its kinds, in their order."""
    game = dataset.game
    refuse_memories(dataset.kinds, players)

    @jax.jit
    def of_chunk(
        game: Game, state: State, action: Int[Array, "episode time seat"]
    ) -> tuple[
        Float[Array, "episode time seat kind"], Float[Array, "episode time seat kind action"]
    ]:
        episodes, steps = action.shape[:2]
        flat = jax.tree.map(lambda x: x.reshape(episodes * steps, *x.shape[2:]), state)
        time = jnp.tile(jnp.arange(steps), episodes)
        found = policies(game, players, flat, time).reshape(
            episodes, steps, game.seats, len(players), -1
        )
        kinds = posterior(jnp.moveaxis(found, 1, 0), jnp.moveaxis(action, 1, 0).astype(jnp.int32))
        return jnp.exp(jnp.moveaxis(kinds, 0, 1)), jnp.exp(found)

    parts = []
    for part in batches(dataset):
        state = jax.tree.map(lambda x: jnp.asarray(x[:, :-1]), part.state)
        found = of_chunk(game, state, jnp.asarray(part.action))
        mask = by_segment(part.sample)
        kind, action = (by_segment(np.asarray(x))[mask] for x in found)
        true = by_segment(np.broadcast_to(part.kind[:, None], part.sample.shape))[mask]
        parts.append(
            Filtered(
                kind=kind,
                action=np.einsum("rk,rka->ra", kind, action),
                known=action[np.arange(len(true)), true],
            )
        )
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)
