"""Best responses to partners: PPO among three alike, and search with the partner's true policy.

What a partner is made of is data, so partners of the same structure share one compiled program.
"""

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coplay.algorithms.hop.player import HOPPlayer
from coplay.algorithms.known_planner import KnownPartner, PartnerPlanner
from coplay.algorithms.ppo.player import PPOPlayer
from coplay.algorithms.rules import RulePartner
from coplay.core.config import Config, NonNegativeInt, PositiveInt, Range
from coplay.core.game import Game
from coplay.core.group import Group
from coplay.core.player import Player
from coplay.evaluation.partners.practice import Practice, Trained, ppo, train_kept
from coplay.matches.match import play_match
from coplay.search.config import SearchConfig
from coplay.training.partner_packs import Pack, Partner, stack
from coplay.training.partner_responses import Response, response_network, write_responses
from coplay.training.trainer import Watcher

SETTLED = 0.01
"""A training is settled if its last quarter improved the return by less than this share."""


@dataclass(frozen=True)
class ResponsesConfig(Config):
    """How best responses to the partners of a pack are found."""

    short: PositiveInt = 150_000
    """Game steps of the short responses by which partners are selected."""
    steps: PositiveInt = 600_000
    """Game steps of the best responses to partners that are kept."""
    seeds: PositiveInt = 2
    """Trainings of each best response; the best of them counts."""
    planner_share: Annotated[float, Range(above=0, most=1)] = 0.1
    """Share of these steps, and of the episodes, among planners, whose games take long; one
    training each."""
    copies: PositiveInt = 128
    """Game copies played at once."""
    episodes: Annotated[int, Range(least=2)] = 4096
    """Episodes by which a response's reward is measured."""
    simulations: NonNegativeInt = 32
    """Simulations of the search that is given the partners' true policies; 0: no search."""
    search_episodes: Annotated[int, Range(least=2)] = 512
    """Episodes by which the search's reward is measured."""


class Responder(NamedTuple):
    """What answers the partners of a pack. folder: where trainings are kept."""

    game: Game
    config: ResponsesConfig
    folder: Path
    seed: int
    practice: Practice

    def share(self, partner: Player) -> float:
        """How much is spent on a partner."""
        return self.config.planner_share if isinstance(partner, HOPPlayer) else 1.0

    def blocks(self, steps: int, partner: Player) -> int:
        """Blocks of a training with a partner."""
        return max(1, round(steps * self.share(partner) / self.practice.block_steps))

    def trained(self, kind: str, partner: Partner, player: Player, steps: int) -> Trained:
        """PPO in seat 0 among partners in all others."""
        # By the name: the same partner has the same response, whoever stands beside it.
        number = zlib.crc32(f"{kind} {partner.name}".encode()) % 2**31
        key = jax.random.fold_in(jax.random.key(self.seed), number)
        path = self.folder / f"{kind}-{partner.name}.npz"
        blocks = self.blocks(steps, player)
        return train_kept(self.practice, self.game, player, key, blocks, path)


def company_of(game: Game, player: Player) -> tuple[Group, ...]:
    """A player in all seats but the first."""
    return (Group(player, tuple(range(1, game.seats)), True),)


def responder(pack: Pack, config: ResponsesConfig, folder: Path) -> Responder:
    """What answers the partners of a pack."""
    game = pack.made_game
    learner = ppo(game, (0,), response_network(game), config.copies)
    practice = Practice(learner, config.copies, others=company_of)
    return Responder(game, config, folder, pack.seed, practice)


def as_data(player: Player) -> Player:
    """A player whose numbers are arrays of JAX: an argument of a compiled program."""
    return jax.tree.map(jnp.asarray, player)


def short_responses(pack: Pack, found: Responder, watcher: Watcher) -> dict[str, Trained]:
    """A short response to each partner, by its name."""
    trained = {}
    for number, partner in enumerate(pack.partners, 1):
        watcher.say(f"short response {number} of {len(pack.partners)}: {partner.name}")
        watcher.work("short responses", number - 1, len(pack.partners))
        player = as_data(pack.player(partner.name, found.game))
        trained[partner.name] = found.trained("short", partner, player, found.config.short)
    return trained


def respond(pack: Pack, found: Responder, watcher: Watcher) -> dict[str, Response]:
    """The best response to each partner of a pack, kept in its folder."""
    responses, networks = {}, []
    for number, partner in enumerate(pack.partners, 1):
        watcher.work("best responses", number - 1, len(pack.partners))
        player = as_data(pack.player(partner.name, found.game))
        response, best = best_of(found, partner, player)
        responses[partner.name] = response
        networks.append((best.actor, best.critic))
        watcher.say(
            f"best response {number} of {len(pack.partners)}: {partner.name}, "
            f"{response.reward:.3f} by {response.by}"
        )
    write_responses(pack, responses, stack(networks))
    return responses


def best_of(found: Responder, partner: Partner, player: Player) -> tuple[Response, Trained]:
    """The best of several trainings, sampling or greedy, and of search on top of it."""
    config, game = found.config, found.game
    tried = []
    episodes = max(2, round(config.episodes * found.share(player)))
    for seed in range(1 if isinstance(player, HOPPlayer) else config.seeds):
        trained = found.trained(f"best{seed}", partner, player, config.steps)
        for greedy in (False, True):
            focal = PPOPlayer(trained.actor, jnp.zeros(0), greedy)
            measured = measure_response(game, focal, player, episodes)
            tried.append((measured | {"seed": seed, "greedy": greedy}, trained))
    learned, best = max(tried, key=lambda one: one[0]["reward"])
    searched = None
    if config.simulations and isinstance(player, PPOPlayer | RulePartner):
        setting = SearchConfig(simulations=config.simulations, draws=4, discount=0.99)
        planner = PartnerPlanner(KnownPartner(player, best.actor, best.critic), setting)
        searched = measure_response(game, planner, player, config.search_episodes)
    top = learned
    by = "ppo"
    if searched is not None and searched["reward"] > learned["reward"]:
        top, by = searched, "search"
    steps = found.blocks(config.steps, player) * found.practice.block_steps
    evidence = {
        "ppo": learned,
        "search": searched,
        "steps": steps,
        "curve": [round(float(x), 4) for x in best.curve],
        "settled": settled(np.asarray(best.curve)),
    }
    return Response(top["reward"], top["stderr"], by, evidence), best


def settled(curve: np.ndarray) -> bool:
    """Whether the last quarter of a curve, [block], is hardly above the quarter before."""
    quarter = len(curve) // 4
    if not quarter:
        return False
    late, before = curve[-quarter:].mean(), curve[-2 * quarter : -quarter].mean()
    return bool(late - before < SETTLED * abs(before))


def measure_response(game: Game, focal: Player, partner: Player, episodes: int) -> dict[str, Any]:
    """The reward per episode of a player in seat 0 among partners."""
    groups = (Group(as_data(focal), (0,), True), *company_of(game, partner))
    # Partners may remember earlier episodes: each copy plays several.
    copies = max(1, min(256, episodes // 16))
    match = play_match(game, groups, episodes, seed=1_000_003, copies=copies)
    mine = match.reward[:, 0]
    error = mine.std(ddof=1) / np.sqrt(len(mine))
    return {"reward": float(mine.mean()), "stderr": float(error)}
