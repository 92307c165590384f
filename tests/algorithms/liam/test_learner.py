"""LIAM: the decoder's loss against plain loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.algorithms.liam.learner import ReconstructionDecoder, reconstruction
from coplay.algorithms.ppo.embedded import Others

COPIES, STEPS, SEATS, OTHERS, VIEW, ACTIONS = 3, 4, 2, 2, 5, 3


def test_errors_count_who_was_in_the_game() -> None:
    rng = np.random.default_rng(0)
    decoder = ReconstructionDecoder(6, 7, OTHERS, VIEW, ACTIONS, jax.random.key(0))
    decoder = jax.tree.map(lambda x: x + 0.3 * rng.normal(size=x.shape), decoder)
    decoder = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), decoder)
    shape = (COPIES, STEPS, SEATS)
    embedding = rng.normal(size=(*shape, 6)).astype(np.float32)
    true = Others(
        rng.normal(size=(*shape, OTHERS, VIEW)).astype(np.float32),
        rng.integers(0, ACTIONS, (*shape, OTHERS)).astype(np.int32),
        rng.random((*shape, OTHERS)) < 0.6,
    )
    given = jax.tree.map(jnp.asarray, (embedding, true))
    found = jax.jit(reconstruction)(decoder, *given)
    for seat in range(SEATS):
        errors = []
        for copy, step, other in np.argwhere(true.alive[:, :, seat]):
            place = (copy, step, seat)
            x = np.tanh(decoder.hidden.weight @ embedding[place] + decoder.hidden.bias)
            view = (decoder.view.weight @ x + decoder.view.bias).reshape(OTHERS, VIEW)[other]
            logits = decoder.action.weight @ x + decoder.action.bias
            logits = np.asarray(logits).reshape(OTHERS, ACTIONS)[other]
            taken = true.action[place][other]
            log_p = logits[taken] - np.log(np.exp(logits).sum())
            square = np.mean((view - true.view[place][other]) ** 2)
            errors.append((square, -log_p, logits.argmax() == taken))
        mean = np.mean(errors, axis=0)
        names = ("others_view_loss", "others_action_loss", "others_top1")
        for name, expected in zip(names, mean, strict=True):
            assert float(found[name][seat]) == pytest.approx(expected, rel=1e-4), name
