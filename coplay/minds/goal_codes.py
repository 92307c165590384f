"""Goals as latent codes: what a co-player is after, as a vector z that nobody has to name.

Four networks, all on the co-player's own ego view:

- the **goal VAE** encodes a board to N(μ, σ²): what a goal looks like once it is nearly reached;
- **inference** gives N(μ, σ²) from the current board and a recurrent memory of the boards and joint
  actions before it. What an action says about a player depends on the board, so the memory takes
  in what the board says of each action, of the action that was taken. Its target is the VAE's code
  of the best board among the next `ahead` ones;
- the **selector** says which is best: the one whose code has the highest (optimistic) or lowest
  (conservative) value V(s, z) for those who play with the co-player. Only in training;
- the **opponent model** predicts the co-player's action from (s, t, z). A goal lasts: the code that
  is inferred at a step must also be good for foreseeing the next `ahead` actions.

When predicting, z is the mean of what is inferred from the past. A code of a later board would give
the action away.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from coplay.errors import UserError
from coplay.games.game import Game, Observation
from coplay.minds import categorical
from coplay.minds.networks import Linear, Network, ViewShape, plain_start
from coplay.minds.recurrent import GRUNetwork
from coplay.training.advantages import masked_mean


@dataclass(frozen=True)
class GoalConfig:
    """Latent goals and the opponent model that is told them."""

    loss: Literal["action", "reconstruction"] = "action"
    """What codes must be good for: foreseeing actions, or drawing the board again."""
    goal_dim: int = 16
    """Numbers of a code z."""
    units: int = 64
    """Width of the memory of past boards and actions."""
    tells: int = 16
    """What the board says of each action that may be taken, in so many numbers; those of the action
    that was taken are remembered."""
    lasting: float = 1.0
    """Weight of foreseeing the following actions by the same code."""
    width: int = 64
    """Width of the hidden layers of encoders, decoder and value."""
    opponent_hidden: tuple[int, ...] = (128, 128)
    """Widths of the hidden layers of the opponent model."""
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
        for name in ("goal_dim", "units", "width", "ahead", "tells"):
            if getattr(self, name) <= 0:
                raise UserError(f"{name} must be above 0, not {getattr(self, name)}")
        for name in ("anneal", "discount"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"{name} must be between 0 and 1, not {getattr(self, name)}")
        for name in ("kl_weight", "match_weight", "lasting"):
            if getattr(self, name) < 0:
                raise UserError(f"{name} must not be negative, not {getattr(self, name)}")
        if not self.opponent_hidden or any(width <= 0 for width in self.opponent_hidden):
            raise UserError("opponent_hidden must be one or more numbers above 0")


class Code(NamedTuple):
    """A normal distribution of codes with independent numbers."""

    mean: Float[Array, "*batch code"]
    log_variance: Float[Array, "*batch code"]

    def draw(self, noise: Float[Array, "*batch code"]) -> Float[Array, "*batch code"]:
        """A code, from standard normal noise."""
        return self.mean + jnp.exp(0.5 * self.log_variance) * noise


def split_code(numbers: Float[Array, "*batch both"]) -> Code:
    """A network's output as a code; variances are kept between e⁻¹⁰ and e⁴."""
    mean, spread = jnp.split(numbers, 2, axis=-1)
    return Code(mean, -3.0 + 7.0 * jnp.tanh(spread / 7.0))


def kl_codes(code: Code, other: Code | None = None) -> Float[Array, "*batch"]:
    """KL(code || other); without another: KL(code || N(0, 1))."""
    if other is None:
        other = Code(jnp.zeros_like(code.mean), jnp.zeros_like(code.mean))
    ratio = jnp.exp(code.log_variance - other.log_variance)
    apart = jnp.square(code.mean - other.mean) * jnp.exp(-other.log_variance)
    each = ratio + apart - 1.0 - (code.log_variance - other.log_variance)
    return 0.5 * jnp.sum(each, axis=-1)


def centred(
    planes: Float[Array, "*batch height width plane"],
) -> Float[Array, "*batch rows columns planes"]:
    """Planes moved so that the ego player, whose plane is the first, is in the middle of a window
    that always holds the whole board; one more plane says which cells are on the board.

    What a player does depends on where things are from it: in the window that is the same input
    wherever on the board it stands. Zeros if the ego player is not on the board.

    A sum over all rows, then all columns, that the player may stand in, each with the board where
    it is then seen: on CPU far quicker than a gather, or a small matrix product, for each board.
    """
    height, width = planes.shape[-3:-1]
    ego = planes[..., 0]
    window = jnp.concatenate([planes, jnp.ones_like(planes[..., :1])], axis=-1)
    for axis, size in ((window.ndim - 3, height), (window.ndim - 2, width)):
        here = jnp.sum(ego, axis=-1 if axis == window.ndim - 3 else -2)  # [..., size] one-hot
        shape = [(0, 0)] * window.ndim
        moved = jnp.zeros(())
        for place in range(size):
            shape[axis] = (size - 1 - place, place)
            there = here[..., place].reshape(*here.shape[:-1], 1, 1, 1)
            moved = moved + there * jnp.pad(window, shape)
        window = moved
    return window


class Conditioned(eqx.Module):
    """A network of a view and a code, whose part of the view is computed once for many codes."""

    view: Linear
    code: Linear
    layers: tuple[Linear, ...]
    head: Linear

    def __init__(
        self, inputs: int, code: int, hidden: tuple[int, ...], outputs: int, key: PRNGKeyArray
    ):
        keys = jax.random.split(key, len(hidden) + 2)
        self.view = Linear(inputs, hidden[0], keys[0])
        self.code = Linear(code, hidden[0], keys[1], 1.0)
        self.layers = tuple(
            Linear(a, b, k) for a, b, k in zip(hidden[:-1], hidden[1:], keys[2:-1], strict=True)
        )
        self.head = Linear(hidden[-1], outputs, keys[-1], 0.1)

    def given(
        self, seen: Float[Array, "*#batch width"], z: Float[Array, "*#batch code"]
    ) -> Float[Array, "*batch outputs"]:
        """`seen`: what `self.view` made of the view."""
        x = jax.nn.relu(seen + self.code(z))
        for layer in self.layers:
            x = jax.nn.relu(layer(x))
        return self.head(x)

    def __call__(
        self, view: Float[Array, "*#batch inputs"], z: Float[Array, "*#batch code"]
    ) -> Float[Array, "*batch outputs"]:
        return self.given(self.view(view), z)


class GoalModel(eqx.Module):
    """See the module docstring. `past`: how many of the features tell what was done last; they come
    first, an action one-hot for each player."""

    board: Network
    decoder: Network
    telling: Network
    memory: GRUNetwork
    inferred: Network
    opponent: Conditioned
    value: Conditioned
    config: GoalConfig = eqx.field(static=True)
    shape: ViewShape
    past: int = eqx.field(static=True)
    seats: int = eqx.field(static=True)

    def __init__(self, config: GoalConfig, shape: ViewShape, seats: int, key: PRNGKeyArray):
        keys = jax.random.split(key, 7)
        self.config, self.shape, self.seats = config, shape, seats
        self.past = seats * shape.actions
        height, width, planes = shape.planes
        window = (2 * height - 1, 2 * width - 1, planes + 1)
        now = shape.features - self.past
        inputs = math.prod(window) + now
        code, wide = config.goal_dim, (config.width,)

        def network(
            planes: tuple[int, int, int], features: int, outputs: int, key: PRNGKeyArray
        ) -> Network:
            return Network(
                ViewShape(planes, features, shape.actions),
                outputs,
                key=key,
                hidden=wide,
                channels=(),
                activation="relu",
                head_scale=0.1,
            )

        self.board = network(shape.planes, 0, 2 * code, keys[0])
        self.decoder = network((0, 0, 0), code, math.prod(shape.planes), keys[1])
        self.telling = network(window, now, config.tells * shape.actions, keys[6])
        self.memory = GRUNetwork(
            ViewShape((0, 0, 0), config.tells + now + seats * shape.actions, shape.actions),
            config.units,
            config.units,
            key=keys[2],
            hidden=wide,
            channels=(),
            activation="relu",
            head_scale=1.0,
        )
        self.inferred = network(window, now + config.units, 2 * code, keys[3])
        self.opponent = Conditioned(inputs, code, config.opponent_hidden, shape.actions, keys[4])
        self.value = Conditioned(inputs, code, wide, 1, keys[5])

    # --- what networks are given ---------------------------------------------------------------

    def see(self, observation: Observation) -> Float[Array, "*batch inputs"]:
        """Board and time as the co-player itself sees them, itself in the middle."""
        planes = centred(observation.planes.astype(jnp.float32))
        flat = planes.reshape(*planes.shape[:-3], -1)
        return jnp.concatenate([flat, observation.features[..., self.past :]], axis=-1)

    def happened(
        self, seen: Float[Array, "*batch inputs"], joint: Integer[Array, "*batch seat"]
    ) -> Float[Array, "*batch more"]:
        """What the memory takes in of a step: what the board says of the action taken, time, and
        what all players did, ego-first."""
        actions = self.shape.actions
        done = (joint[..., None] == jnp.arange(actions)).astype(jnp.float32)
        said = self.telling(seen).reshape(*joint.shape[:-1], actions, self.config.tells)
        said = jnp.sum(said * done[..., 0, :, None], axis=-2)
        now = seen[..., seen.shape[-1] - (self.shape.features - self.past) :]
        flat = done.reshape(*joint.shape[:-1], -1)
        return jnp.concatenate([said, now, flat], axis=-1)

    # --- inferring and predicting --------------------------------------------------------------

    def remember(
        self,
        memory: Float[Array, "*batch units"],
        seen: Float[Array, "*batch inputs"],
        joint: Integer[Array, "*batch seat"],
    ) -> Float[Array, "*batch units"]:
        """The memory after a step; zeros before the first."""
        return self.memory.step(self.happened(seen, joint), memory)[1]

    def infer(
        self, memory: Float[Array, "*batch units"], seen: Float[Array, "*batch inputs"]
    ) -> Code:
        """The code of what the co-player is after, from the past and the current view."""
        context = self.memory.head(memory)
        return split_code(self.inferred(jnp.concatenate([seen, context], axis=-1)))

    def encode(self, planes: Float[Array, "*batch height width plane"]) -> Code:
        """The goal VAE's code of a board."""
        return split_code(self.board(planes.reshape(*planes.shape[:-3], -1)))

    def foresee(
        self,
        seen: Float[Array, "*batch inputs"],
        z: Float[Array, "*batch code"],
        legal: Bool[Array, "*batch action"],
    ) -> Float[Array, "*batch action"]:
        """Log-probabilities of the co-player's actions."""
        return categorical.log_policy(self.opponent(seen, z), legal)

    def memories(self, seen: Float[Array, "line slot inputs"], steps: "Steps") -> Array:
        """[line, slot, unit] the memory before each step."""
        return self.unrolled(seen, steps)[0]

    def unrolled(
        self, seen: Float[Array, "line slot inputs"], steps: "Steps"
    ) -> tuple[Float[Array, "line slot units"], Float[Array, "line units"]]:
        """The memory before each step, and after the last."""
        x = self.happened(seen, steps.joint)[:, :, None]
        first, alive = steps.first[..., None], steps.alive[..., None]
        after = self.memory.unroll(x, steps.start[:, None], first, alive)[1][:, :, 0]
        before = jnp.concatenate([steps.start[:, None], after[:, :-1]], axis=1)
        return jnp.where(first, 0.0, before), after[:, -1]

    def codes(self, steps: "Steps") -> tuple[Float[Array, "line slot inputs"], Code]:
        """What is seen at every step, and the codes that are inferred from the past."""
        seen = self.see(steps.observation)
        return seen, self.infer(self.memories(seen, steps), seen)


def new_goal_model(
    config: GoalConfig, shape: ViewShape, seats: int, key: PRNGKeyArray
) -> GoalModel:
    """A model before learning."""
    return plain_start(lambda key: GoalModel(config, shape, seats, key), key)


class Steps(NamedTuple):
    """Steps of co-players, [line, slot, ...]: lives one after the other in each line.

    observation: the co-player's own views before the steps. following: its planes after them.
    joint: [line, slot, seat] what all did, ego-first. alive: the slot holds a step of a player in
    the game. first: the memory begins anew here. left: how many more steps of the life follow.
    target: what the selector's value learns: discounted rewards of those who play with it.
    start: [line, unit] the memory before the first slot.
    """

    observation: Observation
    following: Bool[Array, "line slot height width plane"]
    joint: Integer[Array, "line slot seat"]
    alive: Bool[Array, "line slot"]
    first: Bool[Array, "line slot"]
    left: Integer[Array, "line slot"]
    target: Float[Array, "line slot"]
    start: Float[Array, "line units"]


GoalTerms = dict[str, Float[Array, ""]]


def select(
    value: Callable[[Float[Array, "line slot code"]], Float[Array, "line slot"]],
    mean: Float[Array, "line slot code"],
    left: Integer[Array, "line slot"],
    ahead: int,
    optimistic: bool,
) -> Int[Array, "line slot"]:
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


def goal_loss(
    model: GoalModel,
    steps: Steps,
    key: PRNGKeyArray,
    warm: Float[Array, ""] | float,
    told: bool = True,
) -> tuple[Float[Array, ""], GoalTerms]:
    """The loss of all networks, and every term by its name; `warm` scales KL weights. If the
    opponent model is not told goals, it alone learns, with codes of 0."""
    config, alive = model.config, steps.alive
    if not told:
        seen = model.see(steps.observation)
        none = jnp.zeros((*alive.shape, config.goal_dim))
        log_probs = model.foresee(seen, none, steps.observation.legal)
        taken = categorical.take(log_probs, steps.joint[..., 0].astype(jnp.int32))
        loss = masked_mean(-taken, alive, None)
        return loss, {"opponent_loss": loss}
    seen, inferred = model.codes(steps)
    following = steps.following.astype(jnp.float32)
    boards = model.encode(following)
    judged = model.value.view(seen)
    frozen = jax.lax.stop_gradient(model.value)

    def worth(codes: Float[Array, "line slot code"]) -> Float[Array, "line slot"]:
        return frozen.given(jax.lax.stop_gradient(judged), codes)[..., 0]

    chosen = select(
        worth,
        jax.lax.stop_gradient(boards.mean),
        steps.left,
        config.ahead,
        config.selector == "optimistic",
    )[..., None]
    goal = Code(*(jnp.take_along_axis(x, chosen, axis=1) for x in boards))
    noise = jax.random.normal(key, (2 * goal.mean.size,)).reshape(2, *goal.mean.shape)
    z_board, z = goal.draw(noise[0]), inferred.draw(noise[1])

    action = steps.joint[..., 0].astype(jnp.int32)
    watched = model.opponent.view(seen)

    def surprise(z: Float[Array, "line slot code"]) -> Float[Array, "line slot"]:
        log_probs = categorical.log_policy(
            model.opponent.given(watched, z), steps.observation.legal
        )
        return -categorical.take(log_probs, action)

    def action_loss(z: Float[Array, "line slot code"]) -> Float[Array, ""]:
        return masked_mean(surprise(z), alive, None)

    def later_loss(z: Float[Array, "line slot code"]) -> Float[Array, ""]:
        """Of the actions 1 … ahead - 1 steps after the one at which the code was inferred."""
        slot = jnp.arange(alive.shape[1])

        def after(steps_later: Int[Array, ""]) -> tuple[Array, Array]:
            before = jnp.maximum(slot - steps_later, 0)
            known = (slot >= steps_later) & alive & alive[:, before]
            known &= steps.left[:, before] >= steps_later
            return surprise(z[:, before]), known

        return masked_mean(*jax.vmap(after)(jnp.arange(1, config.ahead)), None)

    def drawn_again(z: Float[Array, "line slot code"]) -> Float[Array, ""]:
        flat = following.reshape(*alive.shape, -1)
        target = jnp.take_along_axis(flat, chosen, axis=1)
        logits = model.decoder(z)
        error = jax.nn.softplus(logits) - target * logits
        return masked_mean(jnp.sum(error, axis=-1), alive, None)

    error = model.value.given(judged, jax.lax.stop_gradient(z_board))[..., 0] - steps.target
    still = jax.tree.map(jax.lax.stop_gradient, goal)
    terms = {
        "goal_value_loss": 0.5 * masked_mean(jnp.square(error), alive, None),
        "goal_kl": masked_mean(kl_codes(goal), alive, None),
        "inferred_kl": masked_mean(kl_codes(inferred, still), alive, None),
    }
    if config.loss == "action":
        terms |= {"goal_action_loss": action_loss(z_board), "opponent_loss": action_loss(z)}
        fit = terms["goal_action_loss"] + terms["opponent_loss"]
        if config.lasting and config.ahead > 1:
            terms["opponent_later_loss"] = later_loss(z)
            fit = fit + config.lasting * terms["opponent_later_loss"]
    else:
        terms |= {
            "goal_reconstruction": drawn_again(z_board),
            "inferred_reconstruction": drawn_again(z),
            "opponent_loss": action_loss(jax.lax.stop_gradient(z)),
        }
        fit = terms["goal_reconstruction"] + terms["inferred_reconstruction"]
        fit = fit + terms["opponent_loss"]
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
