"""HOP+ where views do not show everything: co-players' goals from the own history alone.

What a seat does not see it may not use. So an encoder reads what the seat itself saw, did and got,
and gives a goal code z for each co-player (the pattern of LIAM, whose decoder it shares). The
policy is given (view, codes). Only training looks at the others' views. From them the goal model
infers the codes that the encoder learns to give:

    loss = view_weight * mean |o - f(z)|²  -  mean log p(a | z)          LIAM's reconstruction
           -  mean log π(a | o, z)  +  code_weight * mean |z - z*|²      the goal model's view

o, a: view and action of the co-player. π: the opponent model. z*: the code that the goal model
infers from the co-player's own past. A trained player may plan over states that it imagines
(`partial_planner.py`); a planner over the true state would see what is hidden.

Encoder, policy and their training are in `coplay.algorithms.ppo.embedded`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from coplay.algorithms.hop_plus.config import HopPlusConfig
from coplay.algorithms.hop_plus.partial_planner import PartialPlanner
from coplay.algorithms.hop_plus.strangers import SeenOthers, StrangerGames, joined
from coplay.algorithms.liam.learner import ReconstructionDecoder, reconstruction
from coplay.algorithms.ppo.embedded import (
    EmbeddedData,
    EmbeddedPlayer,
    EmbeddedPPO,
    History,
    HistoryModel,
)
from coplay.algorithms.ppo.learner import Net, PPOBatch, PPOState
from coplay.core.errors import UserError
from coplay.core.game import Game, Observation
from coplay.core.group import Group
from coplay.core.numerics import masked_mean
from coplay.core.player import Insight, Memory, Player, View
from coplay.core.trajectory import Trajectory, of_seats, picked_seats, streams_of
from coplay.models.goal_codes import GoalModel, check_content, new_goal_model
from coplay.models.goal_inference import ChunkMemory, Prototypes
from coplay.nn import categorical
from coplay.rl import parameter_sets as sets
from coplay.rl.advantages import ending_at_horizon
from coplay.rl.optimisers import make_transform


class PartialPlayer(EmbeddedPlayer):
    """Acts by the own view and the codes that the encoder gives; see the module docstring."""

    decoder: "CodeDecoder | None" = None

    def insight(self, game: Game, view: View, memory: Memory) -> Insight | None:
        """What the others do, as the own history tells it."""
        assert self.decoder is not None
        logits = self.decoder(self.encoder.head(memory))[1]
        return Insight(action=jax.nn.softmax(logits))


class CodeDecoder(eqx.Module):
    """What the codes of co-players are decoded by, each by itself.

    reconstruction: a co-player's view and action from its code alone. goals: the goal model, which
    is given the co-player's view as well.
    """

    reconstruction: ReconstructionDecoder
    goals: GoalModel

    def codes(self, embedding: Float[Array, "*batch all"]) -> Float[Array, "*batch other code"]:
        """The code of each co-player, the next seat first."""
        return embedding.reshape(*embedding.shape[:-1], -1, self.goals.config.dim)

    def __call__(
        self, embedding: Float[Array, "*batch all"]
    ) -> tuple[Float[Array, "*batch other view"], Float[Array, "*batch other action"]]:
        """Views and logits of actions of all co-players."""
        view, action = self.reconstruction(self.codes(embedding))
        return view[..., 0, :], action[..., 0, :]


class PartialData(NamedTuple):
    """What an update takes from a rollout. begins: [time, copy] the first step of an episode.
    state: [time, copy, ...] to imagine from. streams: of all seats of the game."""

    own: Trajectory
    others: SeenOthers
    game: Any
    begins: Bool[Array, "time copy"]
    state: Any
    streams: Int[Array, " seat"]


class PartialHopPlus(EmbeddedPPO):
    """See the module docstring."""

    config: HopPlusConfig = eqx.field(static=True)  # type: ignore[assignment]

    play_fields: ClassVar[tuple[str, ...]] = ("planner", "search", "particles", "keep_memory")

    @property
    def declared_data(self) -> tuple[str, ...]:
        return (".own.reward", ".others.action", ".others.view")

    @property
    def coefficients(self) -> tuple[str, ...]:
        # Of the goal model's loss, only the part of the prototypes is learned here.
        return tuple(x for x in super().coefficients if not x.endswith("kl_weight"))

    def parameters(self, state: PPOState) -> dict[str, Any]:
        """Of the goal model, the opponent model and the prototypes alone learn after the
        recordings."""
        decoder = state.model.decoder
        assert isinstance(decoder.goals.inference, Prototypes)
        return {
            "actor": state.actor,
            "critic": state.critic,
            "encoder": state.model.encoder,
            "reconstruction": decoder.reconstruction,
            "opponent": decoder.goals.opponent,
            "prototypes": (decoder.goals.inference.numbers, decoder.goals.inference.prior),
        }

    @property
    def embedding(self) -> int:
        return (self.game_seats - 1) * self.config.goals.dim

    def check(self, game: Game) -> None:
        super().check(game)
        config = self.config
        check_content(config.goals, self.shape)
        why = f"'{game.name}' as configured does not show players everything"
        if config.goals.inference != "prototypes":
            raise UserError(
                f"{why}, and goals are then inferred from the own history: leave out "
                "--goals.inference"
            )
        if config.goals.use != "inferred":
            raise UserError(f"{why}: --goals.use must be inferred; without goals it is ppo-gru")
        self._check_planner(game)
        imagined = config.imagination
        if config.uses_world_model or imagined.share > 0 or imagined.after > 0:
            raise UserError(
                f"{why}, so HOP+ imagines strangers alone, and in the game itself: leave out "
                "--imagination.share, --imagination.over and --imagination.after"
            )
        if config.imagination.strangers and not game.symmetric:
            raise UserError(
                f"strangers need a compiled game whose seats can be renumbered; '{game.name}' is "
                "none: give --imagination.strangers 0"
            )

    def _check_planner(self, game: Game) -> None:
        """An error if it cannot plan as it is told to."""
        config = self.config
        if config.planner == "none":
            return
        if config.plan_while_learning or config.plan_over == "model":
            raise UserError(
                f"'{game.name}' as configured does not show players everything: HOP+ plans there "
                "over states that it imagines, and not while it learns; leave out "
                "--plan-while-learning and --plan-over"
            )
        if not self.shape.hidden:
            raise UserError(refusal(f"'{game.name}'"))

    @property
    def play_defaults(self) -> Mapping[str, Any]:
        """It plans by default where it can."""
        return self.config.play_defaults if self.shape.hidden else {}

    # --- parameters and players ----------------------------------------------------------------

    def init(
        self,
        key: PRNGKeyArray,
        streams: Int[Array, " seat"],
        parts: Mapping[str, Any] = MappingProxyType({}),
    ) -> PPOState:
        goals = parts.get("goals.from")
        if goals is not None and goals.config.dim != self.config.goals.dim:
            raise UserError(
                f"goals '{self.config.goals.from_}' have {goals.config.dim} numbers: give "
                f"--goals.dim {goals.config.dim}"
            )

        def one_set(key: PRNGKeyArray) -> PPOState:
            state = self._init_set(key, streams)
            if goals is None:
                return state
            model = eqx.tree_at(lambda model: model.decoder.goals, state.model, goals)
            start = make_transform(self.config.model_optimiser).init
            return state._replace(model=model, model_optimiser=start(model))

        return jax.vmap(one_set)(sets.set_keys(self, key, streams))

    def new_decoder(self, key: PRNGKeyArray) -> CodeDecoder:
        goal_key, key = jax.random.split(key)
        config = self.config
        return CodeDecoder(
            ReconstructionDecoder(
                config.goals.dim, config.goals.width, 1, self.view_size, self.shape.actions, key
            ),
            new_goal_model(config.goals.model, self.shape, self.game_seats, goal_key),
        )

    def goals(self, state: PPOState) -> GoalModel:
        """The goal model of the first set."""
        found: GoalModel = jax.tree.map(lambda x: x[0], state.model.decoder.goals)
        return found

    def group(self, state: PPOState) -> Group:
        return super(EmbeddedPPO, self).group(_with_model(state))

    def player(self, state: PPOState, seat: int, greedy: bool = False) -> Player:
        found = super(EmbeddedPPO, self).player(_with_model(state), seat, greedy)
        if self.config.planner == "none":
            return found
        if not self.shape.hidden:
            raise UserError(refusal("its game"))
        assert isinstance(found, PartialPlayer) and found.decoder is not None
        row = self.seats.index(seat) if self.separate else 0
        return PartialPlanner(
            found.actor,
            found.encoder,
            found.identity,
            found.units,
            found.keep,
            True,
            jax.tree.map(lambda x: x[row], state.critic),
            found.decoder.goals,
            self.config,
            self.shape.hidden,
            self.game_seats - 1,
        )

    def new_player(
        self, actor: Net, identity: Float[Array, "*seat id"], greedy: bool, critic: Net = None
    ) -> PartialPlayer:
        network, model = actor
        memory = self.config.memory
        return PartialPlayer(
            network, model.encoder, identity, memory.units, memory.keep, greedy, model.decoder
        )

    # --- learning ------------------------------------------------------------------------------

    def training_data(self, game: Game, trajectory: Trajectory) -> PartialData:  # type: ignore[override]
        found: EmbeddedData = super().training_data(game, trajectory)
        seats = self.game_seats
        turns = (np.array(self.active)[:, None] + np.arange(1, seats)) % seats
        others = found.others
        assert trajectory.past is not None
        return PartialData(
            of_seats(trajectory, self.active),
            SeenOthers(
                view=others.view,
                action=others.action,
                alive=others.alive,
                legal=trajectory.observation.legal[:, :, turns],
                code=None,
            ),
            game,
            trajectory.past.first[..., 0],
            trajectory.state,
            streams_of(trajectory),
        )

    def update(
        self, key: PRNGKeyArray, state: PPOState, trajectory: Any, progress: Float[Array, ""]
    ) -> tuple[PPOState, dict[str, Float[Array, " seat"]]]:
        imagine_key, model_key, key = jax.random.split(key, 3)
        data: PartialData = trajectory
        real = data.own.alive.shape[1]
        if self.config.imagination.strangers:
            games = StrangerGames(self.config, self.active, self.set_rows)
            imagined = games.rollout(
                imagine_key, state, data.game, data.state, data.begins, data.streams
            )
            data = data._replace(
                own=joined(data.own, imagined.own), others=joined(data.others, imagined.others)
            )
        arranged, data, place = sets.in_order_of_streams(
            self, state, data, data.streams, _picked_seats
        )
        learning, batch = self.prepare(arranged, data)
        coded = data.others._replace(code=self._inferred_codes(learning, data))
        history = self._histories(learning, EmbeddedData(data.own, coded))
        learning, fits = self._fit(model_key, learning, history, progress)
        new, metrics = self.improve(key, state, learning, batch, progress)
        new = new._replace(identity=state.identity)
        if not self.config.learn_policy:
            new = state._replace(model=new.model, model_optimiser=new.model_optimiser)
        parts = {"real": np.arange(data.own.alive.shape[1]) < real}
        if self.config.imagination.strangers:
            parts["strangers"] = ~parts["real"]
        for name, part in parts.items():
            counted = data.own.alive & part[:, None]
            metrics[f"{name}_reward"] = masked_mean(data.own.reward, counted, (0, 1))
        return new, {name: value[place] for name, value in (metrics | fits).items()}

    def prepare(self, state: PPOState, trajectory: Any) -> tuple[PPOState, PPOBatch]:
        own = trajectory.own._replace(episode_reward=None, episode_steps=None, meeting_over=None)
        own = ending_at_horizon(own._replace(stream=None))
        return super(EmbeddedPPO, self).prepare(state, own)

    def _views(self, others: SeenOthers) -> Observation:
        """The views of others, in the form in which the game gives them."""
        size = int(np.prod(self.shape.planes))
        planes = others.view[..., :size].reshape(*others.view.shape[:-1], *self.shape.planes)
        return Observation(planes, others.view[..., size:], others.legal)

    def _inferred_codes(
        self, learning: PPOState, data: PartialData
    ) -> Float[Array, "time copy seat other code"]:
        """Codes of all others by the goal model, from what they themselves saw and did in this
        rollout up to the step."""
        goals, others = self.goals(learning), data.others
        seen = goals.see(self._views(others))
        assert data.own.past is not None
        first = data.own.past.first & (not self.config.keep_memory)
        chunks, past = _chunks(goals, seen, others, first, time=0)
        before = goals.unroll(chunks, past)[0]
        mean = goals.infer(before, before).mean
        shape = (*others.alive.shape[1:], chunks.shape[1], mean.shape[-1])
        return jnp.moveaxis(mean.reshape(shape), -2, 0)

    def model_loss(
        self, model: HistoryModel, history: History, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, " seat"]]]:
        embedding, _ = model.encoder.unroll(
            history.x, history.memory[:, 0], history.cleared, history.alive
        )
        decoder: CodeDecoder = model.decoder
        others: SeenOthers = history.others
        learns = self.config.models.learn_opponents
        goals = decoder.goals if learns else jax.lax.stop_gradient(decoder.goals)
        assert others.code is not None
        z = decoder.codes(embedding)
        views = self._views(others)
        seen = goals.see(views)
        found = reconstruction(decoder, embedding, others)
        log_probs = goals.predict_actions(seen, z, views.legal)
        each = {
            "opponent_loss": -categorical.take(log_probs, others.action),
            "code_loss": jnp.mean(jnp.square(z - others.code), axis=-1),
        }
        found |= {name: masked_mean(x, others.alive, (0, 1, 3)) for name, x in each.items()}
        config = self.config.history
        loss = config.view_weight * found["others_view_loss"] + found["others_action_loss"]
        loss = loss + found["opponent_loss"] + config.code_weight * found["code_loss"]
        total = jnp.sum(loss)
        if learns:
            total = total + self._prototype_loss(goals, seen, history)
        return total, found

    def _prototype_loss(
        self,
        goals: GoalModel,
        seen: Float[Array, "copy time seat other inputs"],
        history: History,
    ) -> Float[Array, ""]:
        """The goal model's own loss: one prototype explains an episode of a co-player."""
        chunks = _chunks(goals, seen, history.others, history.cleared, time=1)
        return goals.inference.loss(*chunks)["prototype_loss"]


def _picked_seats(data: PartialData, index: Int[Array, " own"]) -> PartialData:
    """What is learned from of the active seats `index`, in this order."""
    others = jax.tree.map(lambda x: x[:, :, index], data.others)
    return data._replace(own=picked_seats(data.own, index), others=others)


def _chunks(
    goals: GoalModel,
    seen: Float[Array, "*batch seat other inputs"],
    others: SeenOthers,
    first: Bool[Array, "*batch seat"],
    time: int,
) -> tuple[Float[Array, "chunk time evidence"], ChunkMemory]:
    """What every co-player saw and did, as a chunk of its own, for the goal model. time: which axis
    of the batch it is. first: the model knows nothing before this step."""

    def by_chunk(x: Array) -> Array:
        return jnp.moveaxis(x, time, -2).reshape(-1, x.shape[time], x.shape[-1])

    chunks = by_chunk(goals.evidence(seen, others.action[..., None]))
    first = jnp.broadcast_to(first[..., None], others.alive.shape)
    begins, alive = (by_chunk(x[..., None])[..., 0] for x in (first, others.alive))
    nothing = jnp.zeros((chunks.shape[0], goals.memory_size))
    return chunks, ChunkMemory(nothing, begins, alive)


def refusal(game: str) -> str:
    """Why it cannot plan in a game, and what to do."""
    return (
        f"a planner must imagine what its seat does not see, and {game} does not say how: a board "
        "must have no walls (--game.walls 0), other games need Game.hidden; or leave out the "
        "planner (@planner=none)"
    )


def _with_model(state: PPOState) -> PPOState:
    """A state whose actors come with their encoders and decoders: all are a player's."""
    return state._replace(actor=(state.actor, state.model))
