"""A game in which people choose for some seats, step by step.

Everybody acts at once. So a step has two halves: the players think and draw their actions, then
people choose theirs without seeing those, and all actions are carried out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from coplay.core.compilation import QUICK
from coplay.core.errors import UserError
from coplay.core.game import Game, State
from coplay.core.group import group_players
from coplay.core.player import Memory, Player, View
from coplay.games.adapters.worker_game import WorkerGame
from coplay.matches.episodes import Step, Thought, by_seat, move, shown_steps, think
from coplay.matches.lone_copy import next_table
from coplay.matches.recording import thinking
from coplay.matches.rollout import Table, new_table


class Person(Player):
    """Keeps the seat of somebody who is asked from outside."""

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        return jnp.zeros(view.observation.legal.shape), memory


class GuestGame:
    """Episodes one after the other; players remember the ones before.

    players: [seat] who plays; None: a person. people: the seats of people. steps: those of the
    present episode. episodes: how many were finished.

        guests = GuestGame(game, [None, coplay.make_player("ns", game), …])
        guests.begin()
        while not guests.over:
            step = guests.step({0: ask(guests.legal(0))})
    """

    def __init__(self, game: Game, players: Sequence[Player | None], seed: int = 0):
        if isinstance(game, WorkerGame):
            raise UserError(
                f"{game.name} runs in worker processes, so people cannot take its seats"
            )
        self.game = game
        self.people = tuple(seat for seat, player in enumerate(players) if player is None)
        self.groups = group_players([Person() if one is None else one for one in players])
        self.steps: list[Step] = []
        self.episodes = 0
        self._seed, self._begun = seed, 0
        self._finished: Table | None = None  # where the last whole episode ended
        self._new = jax.jit(new_table, static_argnames="copies", compiler_options=QUICK)
        self._think = jax.jit(think, compiler_options=QUICK)
        self._move = jax.jit(move, compiler_options=QUICK)
        # As one program: outside every array would be a call of its own.
        self._only = jax.jit(lambda tree: jax.tree.map(lambda x: x[0], tree))

    def begin(self) -> None:
        """Begin an episode. One that was not finished is as if it had not been played."""
        self._key, reset_key = jax.random.split(jax.random.key(self._seed + self._begun))
        self._begun += 1
        fresh = self._new(self.game, self.groups, reset_key, copies=1)
        self._table = next_table(fresh, self._finished)
        self.steps = []
        self._decide()

    def _decide(self) -> None:
        """Let the players think, and draw their actions."""
        self._key, step_key = jax.random.split(self._key)
        self._move_key, *keys = jax.random.split(step_key, 3)
        self._thought: Thought = self._think(self.game, self.groups, *keys, self._table)
        self._shown: Thought = jax.device_get(self._thought._replace(memory=()))

    @property
    def over(self) -> bool:
        """Whether the episode has ended."""
        return bool(self.steps) and self.steps[-1].over

    @property
    def state(self) -> State:
        """The state of the game."""
        return self._only(self._table.state)

    @property
    def alive(self) -> Bool[np.ndarray, " seat"]:
        """Who is in the game before the next step."""
        return np.asarray(self._shown.views.alive[:, 0])

    def legal(self, seat: int) -> list[int]:
        """The legal actions of a seat."""
        return np.flatnonzero(self._shown.views.observation.legal[seat, 0]).tolist()

    def thoughts(self) -> list[dict[str, Any]]:
        """[seat] what each one sees and thinks before the next step, as in a replay. A person's
        thoughts are not known."""
        insights = by_seat(self.game, self.groups, self._shown.insights)
        policies = np.exp(self._shown.log_policy)
        found = []
        for seat, insight in enumerate(insights):
            view = jax.tree.map(lambda x, seat=seat: x[seat, 0], self._shown.views)
            record = thinking(bool(self.alive[seat]), view, policies[seat, 0], insight)
            found.append(without_policy(record) if seat in self.people else record)
        return found

    def step(self, chosen: Mapping[int, int]) -> Step:
        """Carry out the actions that people chose, by seat, with those of the others."""
        action = np.array(self._shown.action)
        for seat in self.people:
            if not self.alive[seat]:
                continue
            if chosen.get(seat) not in self.legal(seat):
                raise UserError(f"seat {seat} must choose one of {self.legal(seat)}")
            action[0, seat] = chosen[seat]
        self._table, shown = self._move(
            self.game, self.groups, self._move_key, self._table, self._thought, jnp.asarray(action)
        )
        states = [shown.pop("state"), self.state]
        kept = jax.tree.map(lambda x: x[None], jax.device_get(shown))
        self.steps += shown_steps(self.game, self.groups, kept, states)
        if self.over:
            self._finished = self._table
            self.episodes += 1
        else:
            self._decide()
        return self.steps[-1]


def without_policy(record: dict[str, Any]) -> dict[str, Any]:
    """A seat's record without what only a player of the library has."""
    return {name: value for name, value in record.items() if name != "policy"}
