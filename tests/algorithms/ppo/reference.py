"""PPO written out in NumPy, sample by sample: what updates are compared with."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from coplay.algorithms.ppo.config import PPOConfig
from coplay.core.game import Observation
from coplay.core.trajectory import Trajectory
from coplay.nn.networks import Network


class Net(NamedTuple):
    """A network with one hidden layer: out = v tanh(w x + b) + c."""

    w: np.ndarray
    b: np.ndarray
    v: np.ndarray
    c: np.ndarray


def net(network: Network, row: int) -> Net:
    layer, head = network.layers[0], network.head
    arrays = (layer.weight, layer.bias, head.weight, head.bias)
    return Net(*(np.asarray(x[row], np.float64) for x in arrays))


def forward(net: Net, x: np.ndarray) -> np.ndarray:
    return net.v @ np.tanh(net.w @ x + net.b) + net.c


def backward(net: Net, x: np.ndarray, slope: np.ndarray) -> Net:
    """Gradient of the parameters, given that of the outputs."""
    hidden = np.tanh(net.w @ x + net.b)
    inner = (net.v.T @ slope) * (1 - hidden**2)
    return Net(np.outer(inner, x), inner, np.outer(slope, hidden), slope)


class Sample(NamedTuple):
    copy: int
    seat: int
    x: np.ndarray
    legal: np.ndarray
    action: int
    old: np.ndarray
    value: float
    target: float
    advantage: float


def flat(observation: Observation, at: tuple[int, ...], identity: np.ndarray) -> np.ndarray:
    planes = np.asarray(observation.planes)[at]
    return np.array([*planes.reshape(-1), *np.asarray(observation.features)[at], *identity], float)


def samples_of(
    trajectory: Trajectory, seats: Sequence[int], identities: np.ndarray, critic: Net, config: Any
) -> list[Sample]:
    """All that one parameter set learns from: the alive rows of its seats."""
    found = []
    steps, copies = trajectory.alive.shape[:2]
    for seat in seats:
        for copy in range(copies):
            later: dict[Any, Any] = {}  # time -> (value, advantage)
            for time in reversed(range(steps)):
                at = (time, copy, seat)
                if not trajectory.alive[at]:
                    continue
                x = flat(trajectory.observation, at, identities[seat])
                value = float(forward(critic, x)[0])
                following, onward = 0.0, 0.0
                if trajectory.truncated[at]:
                    seen = flat(trajectory.final, at, identities[seat])
                    following = float(forward(critic, seen)[0])
                elif not trajectory.terminated[at] and time == steps - 1:
                    seen = flat(trajectory.last, (copy, seat), identities[seat])
                    following = float(forward(critic, seen)[0])
                elif not trajectory.terminated[at]:
                    following, onward = later[time + 1]
                delta = float(trajectory.reward[at]) + config.discount * following - value
                advantage = delta + config.discount * config.gae_lambda * onward
                later[time] = (value, advantage)
                found.append(
                    Sample(
                        copy,
                        seat,
                        x,
                        trajectory.observation.legal[at],
                        int(trajectory.action[at]),
                        trajectory.log_policy[at].astype(np.float64),
                        value,
                        value + advantage,
                        advantage,
                    )
                )
    mean = np.mean([s.advantage for s in found])
    deviation = np.std([s.advantage for s in found])
    return [s._replace(advantage=(s.advantage - mean) / deviation) for s in found]


def learn_from(sample: Sample, actor: Net, critic: Net, config: Any) -> tuple[Net, Net, dict]:
    """The gradients of one sample's loss, and its terms."""
    logits, legal = forward(actor, sample.x), sample.legal
    policy = np.where(legal, np.exp(logits - logits[legal].max()), 0.0)
    policy /= policy.sum()
    log_policy = np.where(legal, np.log(np.where(legal, policy, 1.0)), 0.0)
    ratio = np.exp(log_policy[sample.action] - sample.old[sample.action])
    within = np.clip(ratio, 1 - config.clip, 1 + config.clip)
    entropy = -(policy * log_policy).sum()
    slope = config.entropy_weight * policy * (log_policy + entropy)
    if ratio * sample.advantage <= within * sample.advantage:
        taken = np.arange(len(policy)) == sample.action
        slope -= sample.advantage * ratio * (taken - policy)
    value = forward(critic, sample.x)[0]
    old = np.where(legal, sample.old, 0.0)
    terms = {
        "policy_loss": -min(ratio * sample.advantage, within * sample.advantage),
        "value_loss": (value - sample.target) ** 2 / 2,
        "entropy": entropy,
        "kl": (np.where(legal, np.exp(old), 0.0) * (old - log_policy)).sum(),
        "clip_fraction": float(abs(ratio - 1) > config.clip),
    }
    error = np.array([config.value_weight * (value - sample.target)])
    return backward(actor, sample.x, slope), backward(critic, sample.x, error), terms


def mean_of(gradients: list[Net]) -> Net:
    return Net(*(sum(parts) / len(gradients) for parts in zip(*gradients, strict=True)))


def norm(gradient: Net) -> float:
    return float(np.sqrt(sum((part**2).sum() for part in gradient)))


def clipped(gradient: Net, most: float) -> Net:
    return Net(*(part * min(1.0, most / norm(gradient)) for part in gradient))


class Adam:
    """Adam of one network."""

    def __init__(self) -> None:
        self.first: Any = None
        self.second: Any = None
        self.count = 0

    def step(self, net: Net, gradient: Net, rate: float) -> Net:
        if self.first is None:
            self.first = self.second = [0.0] * 4
        self.count += 1
        self.first = [0.9 * m + 0.1 * g for m, g in zip(self.first, gradient, strict=True)]
        self.second = [0.999 * v + 0.001 * g**2 for v, g in zip(self.second, gradient, strict=True)]
        steps = [
            (m / (1 - 0.9**self.count)) / (np.sqrt(v / (1 - 0.999**self.count)) + 1e-5)
            for m, v in zip(self.first, self.second, strict=True)
        ]
        return Net(*(x - rate * s for x, s in zip(net, steps, strict=True)))


class Slow:
    """One parameter set that learns like PPO with a single minibatch."""

    def __init__(self, actor: Net, critic: Net, config: PPOConfig):
        self.actor, self.critic, self.config = actor, critic, config
        self.actor_adam, self.critic_adam = Adam(), Adam()

    def update(
        self, trajectory: Trajectory, seats: Sequence[int], identities: np.ndarray, rate: float
    ) -> dict[str, list[float]]:
        """One update; the metrics of the seats."""
        config = self.config
        samples = samples_of(trajectory, seats, identities, self.critic, config)
        for _ in range(config.epochs):
            learned = [learn_from(s, self.actor, self.critic, config) for s in samples]
            actor, critic = mean_of([x[0] for x in learned]), mean_of([x[1] for x in learned])
            largest = norm(actor), norm(critic)
            self.actor = self.actor_adam.step(
                self.actor, clipped(actor, config.optimiser.max_grad_norm), rate
            )
            self.critic = self.critic_adam.step(
                self.critic, clipped(critic, config.optimiser.max_grad_norm), rate
            )
        metrics: dict[str, list[float]] = {}
        for seat in seats:
            mine = [i for i, s in enumerate(samples) if s.seat == seat]
            row = {k: np.mean([learned[i][2][k] for i in mine]) for k in learned[0][2]}
            target = np.array([samples[i].target for i in mine])
            value = np.array([samples[i].value for i in mine])
            row["explained_variance"] = 1 - np.var(target - value) / np.var(target)
            row["value"] = value.mean()
            row["gradient_norm"] = np.hypot(*largest)
            for name, number in row.items():
                metrics.setdefault(name, []).append(float(number))
        return metrics
