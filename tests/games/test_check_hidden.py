"""`check_game` names what is wrong with what a game says of what a seat does not see."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coplay.core.compilation import QUICK
from coplay.games.board.hidden import HiddenBoard
from coplay.games.check_hidden import hidden_faults
from coplay.games.stag_hunt import HiddenStagHunt, StagHunt, StagHuntConfig

CONFIG = StagHuntConfig(height=3, width=4, players=2, hares=2, view=1)


class Unmended(HiddenStagHunt):
    """It forgets what is seen."""

    def mend(self, key: Any, imagined: Any, seen: Any) -> Any:
        return imagined


class Elsewhere(HiddenStagHunt):
    """An episode begins anywhere."""

    def begin(self, key: Any, seen: Any) -> Any:
        imagined = super().begin(key, seen)
        return imagined._replace(state=self.game.reset(key))


class Deaf(HiddenStagHunt):
    """It believes that everybody stayed."""

    def told(self, seen: Any) -> Any:
        return jnp.full(self.game.seats, 4, jnp.int32)


def faults(
    hidden: type[HiddenBoard] | None, starts: int = 32, config: StagHuntConfig = CONFIG
) -> set[str]:
    """What is wrong, over some first steps."""

    class Told(StagHunt):
        name: ClassVar[str] = "told"

        @property
        def hidden(self) -> Any:
            return None if hidden is None else hidden(self)

    kind: Any = Told
    game = kind(config)

    def one(key: Any) -> Any:
        state = game.reset(key)
        # Anything that is legal.
        chance = jax.random.uniform(key, (game.seats, game.actions))
        actions = jnp.argmax(jnp.where(game.observe(state).legal, chance, -1.0), axis=-1)
        return hidden_faults(game, key, state, actions)

    found = jax.jit(jax.vmap(one), compiler_options=QUICK)(
        jax.random.split(jax.random.key(0), starts)
    )
    return {text.partition(":")[0] for text, wrong in found.items() if np.any(wrong)}


@pytest.mark.parametrize(
    ("hidden", "named"),
    [
        (HiddenStagHunt, set()),
        (None, set()),
        (Unmended, {"hidden.mend"}),
        (Elsewhere, {"hidden.begin", "hidden.allow changes the own view"}),
        (Deaf, {"hidden.told", "hidden.mend"}),
    ],
)
def test_what_is_wrong_is_named(hidden: Any, named: set[str]) -> None:
    assert faults(hidden) == named


@pytest.mark.parametrize("view", [1, None])
def test_nothing_is_wrong_from_many_starts(view: int | None) -> None:
    """A co-player that is seen is not moved, though it did what it cannot do there: where a window
    does not tell the own cell, that is what was wrong. In full views things may change places."""
    assert faults(HiddenStagHunt, 2000, dataclasses.replace(CONFIG, view=view)) == set()
