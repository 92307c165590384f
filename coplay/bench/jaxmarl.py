"""JaxMARL's environments stepped as our games, beside JaxMARL's own stepping."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from coplay.bench.measure import Work
from coplay.core.errors import UserError
from coplay.core.game import Game
from coplay.core.group import group_players
from coplay.games.adapters.jaxmarl import JaxmarlGame, quiet
from coplay.games.registry import make_game
from coplay.matches.rollout import new_table, rollout
from coplay.training.players import make_player

COPIES, STEPS = 1024, 32
COUNTERPARTS: dict[str, tuple[str, dict[str, int]]] = {
    "jaxmarl:coin_game": ("coin-game", {"height": 3, "width": 3})
}
"""A game of JaxMARL -> the library's own of the same kind, its fields set to the same sizes."""


def random_players(game: Game, title: str) -> Work:
    """Random players in our rollout, which keeps all that was seen, done and got."""
    groups = group_players([make_player("random", game) for _ in range(game.seats)])
    key = jax.random.key(0)
    table = new_table(game, groups, key, COPIES)

    def play(game: Game, table: Any, key: PRNGKeyArray) -> Any:
        table, played = rollout(game, groups, table, key, STEPS, jnp.arange(game.seats))
        return table, played.observation, played.action, played.reward, played.over

    title = f"random players in {title}, {COPIES} copies"
    return Work(title, "game steps", COPIES * STEPS, play, (game, table, key))


def jaxmarl_stepping(name: str) -> list[Work]:
    """Random players in our rollout, also of the library's own game of the kind if it has one, and
    random actions in a scan over JaxMARL's `step`.

    All keep what was seen, done and got. JaxMARL's `step` resets by itself, ours begins from
    states drawn ahead. Where there are masks, both obey them.
    """
    game = make_game(name)
    if not isinstance(game, JaxmarlGame):
        raise UserError(f"{name} is no game of JaxMARL; --jaxmarl takes jaxmarl:… and smax:…")
    key = jax.random.key(0)
    with quiet():
        seen, states = jax.vmap(game.env.reset)(jax.random.split(key, COPIES))

    def theirs(seen: Any, states: Any, key: PRNGKeyArray) -> Any:
        env = game.env

        def choose(key: PRNGKeyArray, state: Any) -> dict[Any, Any]:
            keys = jax.random.split(key, game.seats)
            if game.kind.legal is None:
                spaces = [env.action_space(agent) for agent in env.agents]
                return {a: s.sample(k) for a, s, k in zip(env.agents, spaces, keys, strict=True)}
            masks = game.kind.legal(env, state)
            return {
                agent: jax.random.categorical(k, jnp.log(mask.astype(jnp.float32)))
                for agent, mask, k in zip(env.agents, masks, keys, strict=True)
            }

        def one(carry: Any, key: PRNGKeyArray) -> Any:
            seen, states = carry
            act_key, step_key = jax.random.split(key)
            actions = jax.vmap(choose)(jax.random.split(act_key, COPIES), states)
            keys = jax.random.split(step_key, COPIES)
            after, states, rewards, dones, _ = jax.vmap(env.step)(keys, states, actions)
            return (after, states), (seen, actions, rewards, dones)

        with quiet():
            return jax.lax.scan(one, (seen, states), jax.random.split(key, STEPS))

    ours = [random_players(game, name)]
    if name in COUNTERPARTS:
        own, fields = COUNTERPARTS[name]
        size = f"{fields['height']}x{fields['width']}"
        ours.append(random_players(make_game(own, **fields), f"{own} {size}"))
    amount = COPIES * STEPS
    return [
        *ours,
        Work("JaxMARL's own stepping", "game steps", amount, theirs, (seen, states, key)),
    ]
