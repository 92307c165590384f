"""Goals as latent codes: what a co-player is after, as a vector z that nobody has to name.

Networks, all on the co-player's own ego view:

- the **goal VAE** encodes a board to N(μ, σ²): what a goal looks like once it is nearly reached;
- the **opponent model** predicts the co-player's action from (s, t, z). It is the same in the
  mirror (`coplay.nn.equivariant`);
- **inference** gives N(μ, σ²) from the past. Either by **prototypes**: a few codes are learned,
  such that one of them explains all actions of a life; how well each of them has foreseen the past,
  by the opponent model itself, says how probable it is, and z is their mean. Or by a **GRU** over
  boards and joint actions (`coplay.models.goal_inference`). Its target is the VAE's code of the
  best board among the next `ahead` ones;
- the **selector** says which is best: the one whose code has the highest (optimistic) or lowest
  (conservative) value V(s, z) for those who play with the co-player. Only in training.

When predicting, z is the mean of what is inferred from the past. A code of a later board would give
the action away.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from coplay.core.errors import UserError
from coplay.core.game import Game, Observation
from coplay.core.numerics import masked_mean
from coplay.models.goal_inference import TELLS, Code, Prototypes, Recurrent, kl_codes, split_code
from coplay.nn import categorical
from coplay.nn.conditioned import Conditioned, centred, centred_shape, encoder
from coplay.nn.equivariant import EquivariantPolicy
from coplay.nn.layers import default_init
from coplay.nn.networks import Network, ViewShape
from coplay.nn.recurrent import GRUNetwork


@dataclass(frozen=True)
class GoalConfig:
    """Latent goals and the opponent model that is told them."""

    loss: Literal["action", "reconstruction"] = "action"
    """What codes must be good for: foreseeing actions, or drawing the board again."""
    goal_dim: int = 16
    """Numbers of a code z."""
    inference: Literal["prototypes", "gru"] = "prototypes"
    """How codes are inferred: by how well each of some learned codes has foreseen the past, or by a
    recurrent network."""
    prototypes: int = 8
    """How many codes are learned for that."""
    units: int = 64
    """Width of the memory of the recurrent network."""
    width: int = 64
    """Width of the hidden layers of encoders, decoder and value."""
    opponent_hidden: tuple[int, ...] = (256, 128)
    """Widths of the hidden layers of the opponent model, rounded up to multiples of 8."""
    kl_weight: float = 1e-3
    """Weight of the KL of a board's code to N(0, 1)."""
    match_weight: float = 1e-4
    """Weight of the KL of the inferred code to the code of the selected board."""
    anneal: float = 0.2
    """Share of the training during which the weights of KL terms grow from 0."""
    ahead: int = 5
    """How many of the next boards the selector chooses from."""
    selector: Literal["optimistic", "conservative"] = "optimistic"
    """Which of them is the goal: the one of the highest or of the lowest value for the others."""
    discount: float = 0.95
    """Discount of the rewards that the selector's value foresees."""

    def __post_init__(self) -> None:
        for name in ("goal_dim", "prototypes", "units", "width", "ahead"):
            if getattr(self, name) <= 0:
                raise UserError(f"{name} must be above 0, not {getattr(self, name)}")
        for name in ("anneal", "discount"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"{name} must be between 0 and 1, not {getattr(self, name)}")
        for name in ("kl_weight", "match_weight"):
            if getattr(self, name) < 0:
                raise UserError(f"{name} must not be negative, not {getattr(self, name)}")
        if not self.opponent_hidden or any(width <= 0 for width in self.opponent_hidden):
            raise UserError("opponent_hidden must be one or more numbers above 0")

    @property
    def remembered(self) -> int:
        """How many numbers are remembered of a player."""
        return self.prototypes if self.inference == "prototypes" else self.units


class GoalModel(eqx.Module):
    """See the module docstring. `past`: how many of the features tell what was done last; they come
    first, an action one-hot for each player. decoder: draws boards; only the loss that compares
    them needs it."""

    board: Network
    decoder: Network | None
    inference: Prototypes | Recurrent
    opponent: EquivariantPolicy
    value: Conditioned
    config: GoalConfig = eqx.field(static=True)
    shape: ViewShape
    past: int = eqx.field(static=True)
    seats: int = eqx.field(static=True)

    def __init__(self, config: GoalConfig, shape: ViewShape, seats: int, key: PRNGKeyArray):
        keys = jax.random.split(key, 7)
        self.config, self.shape, self.seats = config, shape, seats
        self.past = seats * shape.actions
        window = centred_shape(shape.planes)
        now = shape.features - self.past
        more = now + shape.actions
        code, wide = config.goal_dim, (config.width,)

        network = partial(encoder, width=config.width)
        self.board = network(shape.planes, 0, 2 * code, keys[0])
        draws = config.loss == "reconstruction"
        cells = math.prod(shape.planes)
        self.decoder = network((0, 0, 0), code, cells, keys[1]) if draws else None
        if config.inference == "prototypes":
            self.inference = Prototypes(config.prototypes, code, keys[2])
        else:
            memory = GRUNetwork(
                ViewShape((0, 0, 0), TELLS + now + seats * shape.actions, shape.actions),
                config.units,
                config.units,
                key=keys[2],
                hidden=wide,
                channels=(),
                activation="relu",
                head_scale=1.0,
            )
            self.inference = Recurrent(
                telling=network(window, more, TELLS * shape.actions, keys[6]),
                memory=memory,
                inferred=network(window, more + config.units, 2 * code, keys[3]),
            )
        self.opponent = EquivariantPolicy(
            window, now, code, config.opponent_hidden, shape.actions, keys[4]
        )
        self.value = Conditioned(math.prod(window) + more, code, wide, 1, keys[5])

    # --- what networks are given ---------------------------------------------------------------

    def see(self, observation: Observation) -> Float[Array, "*batch inputs"]:
        """Board, time and legal actions as the co-player itself sees them, itself in the middle."""
        planes = centred(observation.planes.astype(jnp.float32))
        flat = planes.reshape(*planes.shape[:-3], -1)
        now, legal = observation.features[..., self.past :], observation.legal.astype(jnp.float32)
        return jnp.concatenate([flat, now, legal], axis=-1)

    def likely(
        self, seen: Float[Array, "*batch inputs"], action: Integer[Array, "*batch"]
    ) -> Float[Array, "*batch prototype"]:
        """Log-probability of an action by the opponent model, with each of the prototypes."""
        assert isinstance(self.inference, Prototypes)
        logits = self.opponent.given(self.opponent.view(seen)[..., None, :], self.inference.codes)
        legal = seen[..., None, -self.shape.actions :] > 0.5
        log_probs = categorical.log_policy(logits, jnp.broadcast_to(legal, logits.shape))
        taken = action[..., None, None] == jnp.arange(self.shape.actions)
        return jnp.sum(jnp.where(taken, log_probs, 0.0), axis=-1)

    def happened(
        self,
        recurrent: Recurrent,
        seen: Float[Array, "*batch inputs"],
        joint: Integer[Array, "*batch seat"],
    ) -> Float[Array, "*batch more"]:
        """What a recurrent memory takes in of a step: what the board says of the action taken,
        time, and what all players did, ego-first."""
        actions = self.shape.actions
        done = (joint[..., None] == jnp.arange(actions)).astype(jnp.float32)
        said = recurrent.telling(seen).reshape(*joint.shape[:-1], actions, TELLS)
        said = jnp.sum(said * done[..., 0, :, None], axis=-2)
        now = seen[..., seen.shape[-1] - actions - (self.shape.features - self.past) : -actions]
        flat = done.reshape(*joint.shape[:-1], -1)
        return jnp.concatenate([said, now, flat], axis=-1)

    # --- inferring and predicting --------------------------------------------------------------

    def remember(
        self,
        memory: Float[Array, "*batch remembered"],
        seen: Float[Array, "*batch inputs"],
        joint: Integer[Array, "*batch seat"],
    ) -> Float[Array, "*batch remembered"]:
        """The memory after a step; zeros before the first."""
        if isinstance(self.inference, Prototypes):
            return self.inference.weigh(memory, self.likely(seen, joint[..., 0]))
        x = self.happened(self.inference, seen, joint)
        return self.inference.memory.step(x, memory)[1]

    def infer(
        self, memory: Float[Array, "*batch remembered"], seen: Float[Array, "*batch inputs"]
    ) -> Code:
        """The code of what the co-player is after, from the past and the current view."""
        if isinstance(self.inference, Prototypes):
            return self.inference.infer(memory)
        context = self.inference.memory.head(memory)
        return split_code(self.inference.inferred(jnp.concatenate([seen, context], axis=-1)))

    def encode(self, planes: Float[Array, "*batch height width plane"]) -> Code:
        """The goal VAE's code of a board."""
        return split_code(self.board(planes.reshape(*planes.shape[:-3], -1)))

    def predict_actions(
        self,
        seen: Float[Array, "*batch inputs"],
        z: Float[Array, "*batch code"],
        legal: Bool[Array, "*batch action"],
    ) -> Float[Array, "*batch action"]:
        """Log-probabilities of the co-player's actions."""
        return categorical.log_policy(self.opponent(seen, z), legal)

    def memories(self, seen: Float[Array, "chunk slot inputs"], steps: "Steps") -> Array:
        """[chunk, slot, remembered] the memory before each step."""
        return self.unrolled(seen, steps)[0]

    def unrolled(
        self,
        seen: Float[Array, "chunk slot inputs"],
        steps: "Steps",
        likely: Float[Array, "chunk slot prototype"] | None = None,
    ) -> tuple[Float[Array, "chunk slot remembered"], Float[Array, "chunk remembered"]]:
        """The memory before each step, and after the last. likely: as `likely` gives, if it is
        known already."""
        first, alive = steps.first[..., None], steps.alive[..., None]
        inference = self.inference
        if isinstance(inference, Prototypes):
            if likely is None:
                likely = self.likely(seen, steps.joint[..., 0])

            def one(memory: Array, row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
                likely, first, alive = row
                memory = jnp.where(first, 0.0, memory)
                memory = jnp.where(alive, inference.weigh(memory, likely), memory)
                return memory, memory

            rows = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), (likely, first, alive))
            after = jnp.swapaxes(jax.lax.scan(one, steps.start, rows)[1], 0, 1)
        else:
            x = self.happened(inference, seen, steps.joint)[:, :, None]
            after = inference.memory.unroll(x, steps.start[:, None], first, alive)[1][:, :, 0]
        before = jnp.concatenate([steps.start[:, None], after[:, :-1]], axis=1)
        return jnp.where(first, 0.0, before), after[:, -1]

    def codes(self, steps: "Steps") -> tuple[Float[Array, "chunk slot inputs"], Code]:
        """What is seen at every step, and the codes that are inferred from the past."""
        seen = self.see(steps.observation)
        return seen, self.infer(self.memories(seen, steps), seen)


def new_goal_model(
    config: GoalConfig, shape: ViewShape, seats: int, key: PRNGKeyArray
) -> GoalModel:
    """A model before learning."""
    return default_init(lambda key: GoalModel(config, shape, seats, key), key)


class Steps(NamedTuple):
    """Steps of co-players, [chunk, slot, ...]: lives one after the other in each line.

    observation: the co-player's own views before the steps. following: its planes after them.
    joint: [chunk, slot, seat] what all did, ego-first. alive: the slot holds a step of a player in
    the game. first: the memory begins anew here. left: how many more steps of the life follow.
    target: what the selector's value learns: discounted rewards of those who play with it.
    start: [line, remembered] the memory before the first slot.
    """

    observation: Observation
    following: Bool[Array, "chunk slot height width plane"]
    joint: Integer[Array, "chunk slot seat"]
    alive: Bool[Array, "chunk slot"]
    first: Bool[Array, "chunk slot"]
    left: Integer[Array, "chunk slot"]
    target: Float[Array, "chunk slot"]
    start: Float[Array, "chunk remembered"]


GoalTerms = dict[str, Float[Array, ""]]


def select(
    value: Callable[[Float[Array, "chunk slot code"]], Float[Array, "chunk slot"]],
    mean: Float[Array, "chunk slot code"],
    left: Integer[Array, "chunk slot"],
    ahead: int,
    optimistic: bool,
) -> Int[Array, "chunk slot"]:
    """Which slot of its line has the board that is the goal of each step: among the next `ahead`
    boards, those after the life's last step left out, the one of the best value.

    value: of every step if the goal had these codes. mean: codes of the boards that follow the
    steps.
    """
    slot = jnp.arange(mean.shape[1])
    steps = jnp.minimum(jnp.arange(ahead)[:, None, None], left[None])  # [ahead, line, slot]
    index = slot + steps
    worth = jax.vmap(lambda i: value(jnp.take_along_axis(mean, i[..., None], axis=1)))(index)
    best = jnp.argmax(worth if optimistic else -worth, axis=0)
    return slot + jnp.minimum(best, left)


def prototype_loss(
    model: GoalModel, likely: Float[Array, "chunk slot prototype"], steps: Steps
) -> Float[Array, ""]:
    """-log Σ_k P(k) Π π(a | s, t, z_k) of every life, or of the part that is in its line, over all
    steps. A mixture of lives and not of steps: one prototype has to explain a life as a whole."""
    assert isinstance(model.inference, Prototypes)
    alive = steps.alive
    segment = jnp.cumsum(steps.first, axis=1)
    same = (segment[:, :, None] == segment[:, None]) & alive[:, :, None] & alive[:, None]
    whole = jnp.einsum("lst,ltk->lsk", same.astype(jnp.float32), likely)
    # A life that began before its line goes on with what was remembered.
    begun = jnp.where((segment == 0)[..., None], steps.start[:, None], 0.0)
    prior = jax.nn.log_softmax(model.inference.prior + begun, axis=-1)
    length = jnp.maximum(jnp.sum(same, axis=2), 1)
    return masked_mean(-jax.nn.logsumexp(prior + whole, axis=-1) / length, alive, None)


def goal_loss(
    model: GoalModel,
    steps: Steps,
    key: PRNGKeyArray,
    warm: Float[Array, ""] | float,
    with_goals: bool = True,
    options: GoalConfig | None = None,
) -> tuple[Float[Array, ""], GoalTerms]:
    """The loss of all networks, and every term by its name; `warm` scales KL weights. If the
    opponent model is not told goals, it alone learns, with codes of 0. options: weights, selector
    and how far it looks ahead, if others than those that the model was made with."""
    alive = steps.alive
    config = options or model.config
    if not with_goals:
        seen = model.see(steps.observation)
        none = jnp.zeros((*alive.shape, model.config.goal_dim))
        log_probs = model.predict_actions(seen, none, steps.observation.legal)
        taken = categorical.take(log_probs, steps.joint[..., 0].astype(jnp.int32))
        loss = masked_mean(-taken, alive, None)
        return loss, {"opponent_loss": loss}
    action = steps.joint[..., 0].astype(jnp.int32)
    seen = model.see(steps.observation)
    by_prototypes = isinstance(model.inference, Prototypes)
    likely = model.likely(seen, action) if by_prototypes else None
    inferred = model.infer(model.unrolled(seen, steps, likely)[0], seen)
    following = steps.following.astype(jnp.float32)
    boards = model.encode(following)
    value_inputs = model.value.view(seen)
    frozen = jax.lax.stop_gradient(model.value)

    def worth(codes: Float[Array, "chunk slot code"]) -> Float[Array, "chunk slot"]:
        return frozen.given(jax.lax.stop_gradient(value_inputs), codes)[..., 0]

    chosen = select(
        worth,
        jax.lax.stop_gradient(boards.mean),
        steps.left,
        config.ahead,
        config.selector == "optimistic",
    )[..., None]
    goal = Code(*(jnp.take_along_axis(x, chosen, axis=1) for x in boards))
    noise = jax.random.normal(key, (2 * goal.mean.size,)).reshape(2, *goal.mean.shape)
    z_board = goal.draw(noise[0])
    # A mixture of prototypes is no normal distribution: its mean is what will be used.
    z = inferred.mean if by_prototypes else inferred.draw(noise[1])
    policy_inputs = model.opponent.view(seen)

    def surprise(z: Float[Array, "chunk slot code"]) -> Float[Array, "chunk slot"]:
        log_probs = categorical.log_policy(
            model.opponent.given(policy_inputs, z), steps.observation.legal
        )
        return -categorical.take(log_probs, action)

    def action_loss(z: Float[Array, "chunk slot code"]) -> Float[Array, ""]:
        return masked_mean(surprise(z), alive, None)

    def later_loss(z: Float[Array, "chunk slot code"]) -> Float[Array, ""]:
        """Of the actions 1 … ahead - 1 steps after the one at which the code was inferred."""
        slot = jnp.arange(alive.shape[1])

        def after(steps_later: Int[Array, ""]) -> tuple[Array, Array]:
            before = jnp.maximum(slot - steps_later, 0)
            known = (slot >= steps_later) & alive & alive[:, before]
            known &= steps.left[:, before] >= steps_later
            return surprise(z[:, before]), known

        return masked_mean(*jax.vmap(after)(jnp.arange(1, config.ahead)), None)

    def drawn_again(z: Float[Array, "chunk slot code"]) -> Float[Array, ""]:
        flat = following.reshape(*alive.shape, -1)
        target = jnp.take_along_axis(flat, chosen, axis=1)
        assert model.decoder is not None
        logits = model.decoder(z)
        error = jax.nn.softplus(logits) - target * logits
        return masked_mean(jnp.sum(error, axis=-1), alive, None)

    error = model.value.given(value_inputs, jax.lax.stop_gradient(z_board))[..., 0] - steps.target
    still = jax.tree.map(jax.lax.stop_gradient, goal)
    terms = {
        "goal_value_loss": 0.5 * masked_mean(jnp.square(error), alive, None),
        "goal_kl": masked_mean(kl_codes(goal), alive, None),
        "inferred_kl": masked_mean(kl_codes(inferred, still), alive, None),
    }
    if model.config.loss == "action":
        terms |= {"goal_action_loss": action_loss(z_board), "opponent_loss": action_loss(z)}
        fit = terms["goal_action_loss"] + terms["opponent_loss"]
        if not by_prototypes and config.ahead > 1:
            terms["opponent_later_loss"] = later_loss(z)
            fit = fit + terms["opponent_later_loss"]
    else:
        terms |= {
            "goal_reconstruction": drawn_again(z_board),
            "inferred_reconstruction": drawn_again(z),
            "opponent_loss": action_loss(jax.lax.stop_gradient(z)),
        }
        fit = terms["goal_reconstruction"] + terms["inferred_reconstruction"]
        fit = fit + terms["opponent_loss"]
    if likely is not None:
        terms["prototype_loss"] = prototype_loss(model, likely, steps)
        fit = fit + terms["prototype_loss"]
    kl = config.kl_weight * terms["goal_kl"] + config.match_weight * terms["inferred_kl"]
    return fit + warm * kl + terms["goal_value_loss"], terms


def refuse_unknown_features(game: Game) -> None:
    """Goal codes are of games on boards whose views begin with what every player did last."""
    if not game.full_view or game.seat_features != game.actions or not game.seat_planes:
        raise UserError(
            f"goals are inferred from boards that are seen in full and from what every player did "
            f"last; '{game.name}' as configured does not show that: leave out game.view, or train "
            "ppo-gru"
        )
