"""Do imagined strangers act like the players whose recordings they were made of?

Games in which all seats are strangers made of one kind of player of the dataset: by personas, and,
for comparison, by the opponent model with the last goal codes of such players.

    python benchmarks/strangers.py runs/personas --goals runs/goals
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coplay.minds import categorical
from coplay.training.dataset import horizon_of, load_dataset, samples_of
from coplay.training.pretrain_goals import foreseen, lives_of, load_goals
from coplay.training.pretrain_personas import Packed, codes_of_lives, load_personas

GAMES = 512


def played(game: Any, act: Callable[[Any, Any], Any], codes: Any, key: Any) -> np.ndarray:
    """[game, seat] rewards of whole episodes; `act`: log-probabilities from views and codes."""

    @jax.jit
    def play(codes: Any, key: Any) -> Any:
        def step(state: Any, key: Any) -> tuple[Any, Any]:
            views = jax.vmap(game.observe)(state)
            act_key, step_key = jax.random.split(key)
            luck = jax.random.uniform(act_key, (GAMES, game.seats))
            action = categorical.sample(luck, act(views, codes))
            keys = jax.random.split(step_key, GAMES)
            after, outcome = jax.vmap(game.step)(keys, state, action)
            return after, outcome.reward

        state = jax.vmap(game.reset)(jax.random.split(key, GAMES))
        return jnp.sum(jax.lax.scan(step, state, jax.random.split(key, horizon_of(game)))[1], 0)

    return np.asarray(play(jnp.asarray(codes), key))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("personas", type=Path)
    parser.add_argument("--goals", type=Path)
    given = parser.parse_args()
    model, about = load_personas(given.personas)
    dataset = load_dataset(Path(about.data)).part(slice(0, 600))
    game, rng, key = dataset.game, np.random.default_rng(0), jax.random.key(1)
    lives = Packed(dataset, about.model.steps)
    number, code = codes_of_lives(model, lives)
    kind = np.asarray(lives.samples.kind)[np.searchsorted(np.asarray(lives.samples.life), number)]
    ways = [
        ("personas", code, kind, lambda v, c: model.act(model.see(v), c, v.legal)),
    ]
    if given.goals:
        goals, _ = load_goals(given.goals)
        samples = samples_of(dataset)
        last = np.flatnonzero(np.diff(samples.life, append=-1))
        found = foreseen(goals, lives_of(samples, horizon_of(game), goals.config.units)).code
        ways.append(
            (
                "last goal codes",
                found[last],
                samples.kind[last],
                lambda v, c: goals.foresee(goals.see(v), c, v.legal),
            )
        )
    for name, codes, kinds, act in ways:
        for index, title in enumerate(dataset.kinds):
            own = codes[kinds == index]
            drawn = own[rng.integers(0, len(own), (GAMES, game.seats))]
            reward = played(game, act, drawn, key)
            little = ((reward > 0) & (reward <= 1)).mean()
            print(
                f"{name} of {title}: reward {reward.mean():.3f}, at most 1 in {little:.2f}, "
                f"more in {(reward > 1).mean():.2f} of the cases"
            )


if __name__ == "__main__":
    main()
