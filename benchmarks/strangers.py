"""Do imagined strangers act like the players of the recordings that goals were learned from?

Of every prototype: how probable it is, its mean weight at the end of the segments of each kind of
player, and what it gets in games in which all seats have it.

    python benchmarks/strangers.py runs/goals
"""

import argparse
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coplay.core.game import require_horizon
from coplay.matches.dataset import load_dataset, samples_of
from coplay.models.goal_inference import Prototypes
from coplay.nn import categorical
from coplay.training.pretrain_goals import chunk_samples
from coplay.training.pretrained import load_goals

GAMES, CHUNKS, EPISODES = 512, 64, 600


def played(game: Any, goals: Any, code: Any, key: Any) -> np.ndarray:
    """[game, seat] rewards of whole episodes in which all seats have this code."""

    @jax.jit
    def play(code: Any, key: Any) -> Any:
        def step(state: Any, key: Any) -> tuple[Any, Any]:
            act_key, step_key = jax.random.split(key)
            uniform = jax.random.uniform(act_key, (GAMES, game.seats))
            views = jax.vmap(game.observe)(state)
            z = jnp.broadcast_to(code, (GAMES, game.seats, code.shape[0]))
            action = categorical.sample(
                uniform, goals.predict_actions(goals.see(views), z, views.legal)
            )
            keys = jax.random.split(step_key, GAMES)
            after, outcome = jax.vmap(game.step)(keys, state, action)
            return after, outcome.reward

        state = jax.vmap(game.reset)(jax.random.split(key, GAMES))
        return jnp.sum(
            jax.lax.scan(step, state, jax.random.split(key, require_horizon(game)))[1], 0
        )

    return np.asarray(play(code, key))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("goals", type=Path)
    given = parser.parse_args()
    goals, about = load_goals(given.goals)
    inference = goals.inference
    assert isinstance(inference, Prototypes), "goals by prototypes are asked for"
    dataset = load_dataset(Path(about.data)).part(slice(0, EPISODES))
    samples = samples_of(dataset)
    chunks = chunk_samples(samples, require_horizon(dataset.game), goals.memory_size)

    @jax.jit
    def before(chunk_numbers: Any) -> Any:
        steps = chunks.steps(chunk_numbers)
        return inference.weights(goals.memories(goals.see(steps.observation), steps))

    number = chunks.slots.shape[0]
    parts = [jnp.arange(at, min(at + CHUNKS, number)) for at in range(0, number, CHUNKS)]
    weights = np.concatenate([np.asarray(before(chunk_numbers)) for chunk_numbers in parts])
    weights = weights.reshape(-1, weights.shape[-1])[chunks.place]
    last = np.flatnonzero(np.diff(samples.segment, append=-1))
    prior = np.asarray(jax.nn.softmax(inference.prior))
    print("prototype  prior  " + "  ".join(f"{name:>6}" for name in dataset.kinds) + "  reward")
    for index, code in enumerate(inference.codes):
        reward = played(dataset.game, goals, code, jax.random.key(1)).mean()
        shares = [
            weights[last][samples.kind[last] == kind, index].mean()
            for kind in range(len(dataset.kinds))
        ]
        row = "  ".join(f"{share:6.3f}" for share in shares)
        print(f"{index:9}  {prior[index]:5.3f}  {row}  {reward:6.3f}")


if __name__ == "__main__":
    main()
