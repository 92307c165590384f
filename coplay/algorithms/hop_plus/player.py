"""The player of HOP+: it infers codes of its co-players' goals, and acts on them."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from coplay.algorithms.hop_plus.config import HopPlusConfig
from coplay.core.game import Game, State, require_horizon
from coplay.core.numerics import where_rows
from coplay.core.player import (
    SEATS,
    Candidates,
    Foreseen,
    Insight,
    Memory,
    Plan,
    Player,
    View,
)
from coplay.models.acquaintance import next_episode
from coplay.models.code_simulator import CodeSimulator, with_codes
from coplay.models.correction import Correction, correction, no_correction, with_action
from coplay.models.goal_codes import GoalModel
from coplay.models.goal_inference import Code, Prototypes
from coplay.models.world_model import WorldModel, expected_board, likely_board
from coplay.models.world_model_game import ImaginedGame, ImaginedState, imagined_state
from coplay.nn import categorical
from coplay.nn.networks import Network, flatten
from coplay.search.principal import principal_path
from coplay.search.root import boltzmann, for_each_draw, plan_of, search_trees

AHEAD = 4
"""How many boards of its plan a planner over the world model tells."""


class HopPlusMemory(NamedTuple):
    """What is known of all players, ego-first: oneself as others see one, then the others.

    goals: the memory of each, as `GoalModel.remember` gives it. z: their codes in the last step in
    which the player acted. episodes: what is known of them from earlier episodes
    (`coplay.models.acquaintance`). acted: which actions they took, beside the predicted ones. The
    last two are None where they are not used.
    """

    goals: Float[Array, "copy seat memory"]
    z: Float[Array, "copy seat code"]
    episodes: Float[Array, "copy seat prototype"] | None = None
    acted: Correction | None = None

    @property
    def corrections(self) -> Float[Array, "*batch seat action"] | None:
        """What corrects the logits of the opponent model."""
        return None if self.acted is None else correction(self.acted)

    @property
    def told(self) -> Float[Array, "*batch seat number"]:
        """What actor and critic are told of everybody: codes, and corrections if there are any."""
        if self.corrections is None:
            return self.z
        return jnp.concatenate([self.z, self.corrections], axis=-1)


def everyone(mine: Float[Array, "copy *rest"]) -> Float[Array, "copy seat *rest"]:
    """What each seat of a group computed of itself, shared with all of them: ego-first. The group
    must have all seats of the game, in their order."""
    found = jax.lax.all_gather(mine, SEATS)  # [seat, copy, ...]
    order = (jax.lax.axis_index(SEATS) + jnp.arange(found.shape[0])) % found.shape[0]
    return jnp.moveaxis(found[order], 0, 1)


def ego_first(joint: Integer[Array, "*batch seat"]) -> Integer[Array, "*batch seat seat"]:
    """What all did, as each seat sees it: itself first."""
    seats = joint.shape[-1]
    return joint[..., (np.arange(seats)[:, None] + np.arange(seats)) % seats]


def between_episodes(
    goals: GoalModel, config: HopPlusConfig, memory: HopPlusMemory, over: Bool[Array, " copy"]
) -> HopPlusMemory:
    """The memory after a step, where episodes may be over: the next one begins with what is known
    from earlier ones."""
    if config.keep_memory:
        return memory
    first, episodes = jnp.zeros_like(memory.goals), memory.episodes
    if episodes is not None:
        keep = config.belief.keep
        first, episodes = next_episode(goals.inference, memory.goals, episodes, keep)
    return memory._replace(
        goals=where_rows(over, first, memory.goals),
        episodes=where_rows(over, episodes, memory.episodes),
    )


class HopPlusPlayer(Player):
    """Acts by its actor, or plans. In a group every array has a leading [seat] axis; the models'
    are the same for all seats.

    plans: whether the planner is used at all. together: the group has all seats of the game and one
    goal model, so each seat infers its own code, as others would see it, and shares it: the same
    codes at a fraction of the work.
    """

    actor: Network
    critic: Network
    identity: Float[Array, "*seat id"]
    goals: GoalModel
    world: WorldModel | None
    config: HopPlusConfig = eqx.field(static=True)
    game_seats: int = eqx.field(static=True)
    plans: bool = eqx.field(static=True)
    greedy: bool = eqx.field(static=True, default=False)
    together: bool = eqx.field(static=True, default=False)

    def start(self, copies: int) -> Memory:
        goals, size = self.goals, (copies, self.game_seats)
        nothing = jnp.zeros((*size, goals.memory_size))
        return HopPlusMemory(
            goals=nothing,
            z=jnp.zeros((*size, goals.config.dim)),
            episodes=nothing if self.config.inter else None,
            acted=no_correction((*size, goals.shape.actions)) if self.config.corrects else None,
        )

    def see(self, game: Game, view: View) -> Float[Array, "copy looked inputs"]:
        """The players' own views as the goal model sees them: of all, ego-first; of oneself alone
        if players are `together`."""
        if self.together:
            return self.goals.see(jax.tree.map(lambda x: x[:, None], view.observation))
        return self.goals.see(jax.vmap(game.observe)(view.state))

    def infer(self, memory: HopPlusMemory, seen: Float[Array, "copy looked inputs"]) -> Code:
        """Everybody's codes, [copy, seat, ...], ego-first; with goals.use=zero or none, 0."""
        code = self.goals.infer(memory.goals[:, : seen.shape[1]], seen)
        if self.config.goals.use != "inferred":
            return Code(jnp.zeros_like(memory.z), jnp.full_like(memory.z, -jnp.inf))
        return Code(*(everyone(x[:, 0]) for x in code)) if self.together else code

    def act(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory]:
        return self.decide(game, key, view, memory)[:2]

    def decide(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory, Plan | None]:
        """Logits, the new memory, and the plan if it searches."""
        config, plan = self.config, None
        code = self.infer(memory, self.see(game, view))
        memory = memory._replace(z=code.mean)
        legal = view.observation.legal
        if config.planner == "none" or not self.plans:
            logits = self.actor(self.situation(game, view, memory))
        else:
            code_key, seed_key = jax.random.split(key)
            z = self.sample_codes(code_key, memory, code)
            plan = self.plan(game, seed_key, view, z, memory)
            how = config.search
            logits = boltzmann(plan.q, legal, how.beta, how.normalise_q)
        if self.greedy:
            logits = categorical.greedy(logits, legal)
        return logits, memory, plan

    def situation(
        self, game: Game, view: View, memory: HopPlusMemory
    ) -> Float[Array, "copy input"]:
        """What actor and critic see: the ego view, the others' codes, and the identity."""
        observation = view.observation
        if self.config.goals.use != "none":
            alive = jax.vmap(game.alive)(view.state)[:, 1:]
            features = with_codes(observation.features, memory.told[:, 1:], alive)
            observation = observation._replace(features=features)
        return flatten(observation, self.identity)

    def sample_codes(
        self, key: PRNGKeyArray, memory: HopPlusMemory, code: Code
    ) -> Float[Array, "draw copy other code"]:
        """Codes that the co-players may have. code: everybody's, as inferred."""
        draws, others = self.config.search.draws, Code(*(x[:, 1:] for x in code))
        if self.config.goals.use != "inferred":
            return jnp.zeros((draws, *others.mean.shape))
        return self.goals.inference.sample(key, draws, memory.goals[:, 1:], others)

    def plan(
        self,
        game: Game,
        key: PRNGKeyArray,
        view: View,
        z: Float[Array, "draw copy other code"],
        memory: HopPlusMemory,
    ) -> Plan:
        """Q of every action: the mean of one search per sample of codes. Trees are [draw * copy].
        memory: with the codes as inferred."""
        config, copies, draws = self.config, view.alive.shape[0], self.config.search.draws
        state: Any = view.state
        playing: Game = game
        if config.plan_over == "model":
            assert self.world is not None
            playing = ImaginedGame(self.world, require_horizon(game))
            state = jax.vmap(imagined_state, in_axes=(None, 0))(game, view.state)
        state = for_each_draw(state, draws)
        seeds = jax.random.bits(key, (draws * copies,), jnp.uint32)
        told, corrections = jax.tree.map(lambda x: x[:, 1:], (memory.told, memory.corrections))
        simulator = CodeSimulator(
            self.actor,
            self.critic,
            self.goals,
            self.identity,
            z.reshape(-1, *z.shape[2:]),
            *for_each_draw((told, corrections), draws),
            config.goals.use != "none",
        )
        how = config.search_config(game.actions)
        found = search_trees(simulator, playing, how, state, (), seeds)
        return plan_of(*found, view.observation.legal, draws)

    def notice(
        self, game: Game, view: View, after: State, over: Bool[Array, " copy"], memory: Memory
    ) -> Memory:
        seen = self.see(game, view)
        count = seen.shape[1]
        alive = jax.vmap(game.alive)(view.state)[:, :count]
        joint = ego_first(jax.vmap(game.last_actions)(after).astype(jnp.int32))[:, :count]
        before: HopPlusMemory = jax.tree.map(lambda x: x[:, :count], memory)
        new = self.goals.remember(before.goals, seen, joint)
        known = before._replace(
            goals=jnp.where(alive[..., None], new, before.goals),
            acted=self.counted(before, seen, joint[..., 0], alive),
        )
        known = between_episodes(self.goals, self.config, known, over)
        if not self.together:
            return known
        known = jax.tree.map(lambda x: everyone(x[:, 0]), known._replace(z=None))  # type: ignore[arg-type]
        return known._replace(z=memory.z)

    def counted(
        self,
        memory: HopPlusMemory,
        seen: Float[Array, "copy looked inputs"],
        action: Int[Array, "copy looked"],
        alive: Bool[Array, "copy looked"],
    ) -> Correction | None:
        """The actions of players after a step, beside those that were predicted."""
        if memory.acted is None:
            return None
        legal = seen[..., -self.goals.shape.actions :] > 0.5
        predicted = self.goals.predict_actions(seen, memory.z, legal, memory.corrections)
        return with_action(memory.acted, action, predicted, legal, alive)

    def record(self, memory: Memory) -> HopPlusMemory:
        """What it knew when it decided: of all, ego-first; of oneself alone if `together`."""
        count = 1 if self.together else self.game_seats
        return jax.tree.map(lambda x: x[:, :count], memory)

    def insight(self, game: Game, view: View, memory: Memory) -> Insight:
        """The actions that the opponent model predicts with the inferred codes."""
        views = jax.vmap(game.observe)(view.state)
        others, z, corrections = jax.tree.map(
            lambda x: x[:, 1:], (views, memory.z, memory.corrections)
        )
        seen = self.goals.see(others)
        log_policy = self.goals.predict_actions(seen, z, others.legal, corrections)
        return Insight(None, jnp.exp(log_policy))

    def explain(
        self, game: Game, key: PRNGKeyArray, view: View, memory: Memory
    ) -> tuple[Float[Array, "copy action"], Memory, Insight]:
        logits, memory, plan = self.decide(game, key, view, memory)
        belief, inference = None, self.goals.inference
        if self.candidates(game) is not None:
            assert isinstance(inference, Prototypes)
            belief = inference.weights(memory.goals[:, 1:])
        imagined = None
        if plan is not None and self.config.plan_over == "model":
            imagined = self.imagine(game, view, memory, principal_path(plan.trees, AHEAD))
        insight = self.insight(game, view, memory)._replace(
            belief=belief,
            value=self.critic(self.situation(game, view, memory))[..., 0],
            plan=plan,
            imagined=imagined,
        )
        return logits, memory, insight

    def imagine(
        self, game: Game, view: View, memory: HopPlusMemory, path: Int[Array, "copy ahead"]
    ) -> Bool[Array, "copy ahead height width plane"]:
        """The boards that the world model makes of own actions, if all others do what is most
        probable by the opponent model with the inferred codes."""
        assert self.world is not None
        playing = ImaginedGame(self.world, require_horizon(game))
        keys = jax.random.split(jax.random.key(0), len(path))  # steps of the model draw nothing

        def step(
            state: ImaginedState, mine: Int[Array, " copy"]
        ) -> tuple[ImaginedState, Bool[Array, "copy height width plane"]]:
            others = jax.tree.map(lambda x: x[:, 1:], jax.vmap(playing.observe)(state))
            seen = self.goals.see(others)
            z, corrections = jax.tree.map(lambda x: x[:, 1:], (memory.z, memory.corrections))
            log_policy = self.goals.predict_actions(seen, z, others.legal, corrections)
            joint = jnp.concatenate([mine[:, None], jnp.argmax(log_policy, axis=-1)], axis=1)
            state = jax.vmap(playing.step)(keys, state, joint)[0]
            return state, state.planes

        start = jax.vmap(imagined_state, in_axes=(None, 0))(game, view.state)
        return jnp.moveaxis(jax.lax.scan(step, start, jnp.maximum(path.T, 0))[1], 0, 1)

    def foresee(
        self, game: Game, view: View, actions: Integer[Array, "copy seat"]
    ) -> Foreseen | None:
        if self.world is None:
            return None
        planes = view.observation.planes.astype(jnp.float32)
        prediction = self.world(planes, actions)
        return Foreseen(
            expected_board(planes, prediction),
            likely_board(planes, prediction),
            self.world.likely_reward(prediction),
            jax.nn.sigmoid(prediction.leaves),
        )

    def candidates(self, game: Game) -> Candidates | None:
        """The prototypes, if codes are inferred by them."""
        inference = self.goals.inference
        if not isinstance(inference, Prototypes) or self.config.goals.use != "inferred":
            return None
        names = tuple(f"prototype {index}" for index in range(inference.numbers.shape[-2]))
        return Candidates(names, inference.codes)
