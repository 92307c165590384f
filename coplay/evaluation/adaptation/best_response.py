"""The best response to given co-players: PPO trained against exactly those, kept for all who ask.
That of a team, all seats of a side, is MAPPO trained for the mean reward of the side.

Training goes on in stages of equal length until a stage improves the reward by less than a margin,
or at a cap. The run with its learning curve stays in the folder as evidence.
"""

import dataclasses
import hashlib
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from coplay.algorithms.mappo.config import MAPPOConfig
from coplay.algorithms.ppo.config import PPOConfig
from coplay.core.config import Config, NonNegativeFloat, PositiveInt, Range, to_json
from coplay.core.errors import UserError
from coplay.core.files import write_json
from coplay.core.game import Game
from coplay.core.group import group_players
from coplay.core.reading import check_folder, read_field, read_json
from coplay.evaluation.adaptation.identity import identities
from coplay.evaluation.adaptation.places import Places, find_places
from coplay.games.registry import game_parts
from coplay.matches.match import play_match
from coplay.nn.config import NetworkConfig
from coplay.training.config import RunConfig, TrainConfig
from coplay.training.partner_packs import is_pack, read_pack
from coplay.training.partner_responses import read_responses
from coplay.training.players import make_player
from coplay.training.run import RunFolder, make_game_of
from coplay.training.trainer import Trainer, Watcher

RESULT = "best_response.json"


@dataclass(frozen=True)
class BestResponseConfig(Config):
    """How best responses are trained."""

    network: Literal["centred", "mlp"] = "centred"
    """How they see boards: from the own cell, or as they are (as all that is not a board seen in
    full). With plain planes PPO ends far below the best on Snowdrift."""
    stage: PositiveInt = 400_000
    """Game steps of each stage of training."""
    margin: NonNegativeFloat = 0.01
    """Training ends when a stage improves the reward by less than this share of it."""
    most: PositiveInt = 4_000_000
    """Game steps after which training ends in any case."""
    seeds: PositiveInt = 2
    """Trained side by side; the best of them counts."""
    copies: PositiveInt = 256
    """Game copies played at once in training."""
    episodes: Annotated[int, Range(least=2)] = 10_000
    """Episodes by which each seed's reward is measured."""


@dataclass(frozen=True)
class Opposition:
    """A game by name and configuration, and the co-players of a focal player. side: where it is, in
    a game with sides."""

    game_name: str
    game: Any
    against: tuple[str, ...]
    side: str = ""

    @property
    def team(self) -> tuple[int, ...]:
        """The focal seats of the game, in the first turn."""
        places = self._places
        return tuple(places.orders[0][seat] for seat in places.focal)

    @property
    def _places(self) -> Places:
        game = game_parts(self.game_name)[1](self.game)
        return find_places(game, self.side, len(self.against))

    def seated(self, focal: str) -> list[str]:
        """[seat of the game] who sits where."""
        places = self._places
        entries = [focal] * len(places.orders[0])
        for seat, entry in zip(places.others, self.against, strict=True):
            entries[places.orders[0][seat]] = entry
        return entries

    def network(self, config: BestResponseConfig) -> Literal["centred", "mlp"]:
        """How the best response sees the game."""
        game = game_parts(self.game_name)[1](self.game)
        return config.network if game.full_view and game.seat_planes else "mlp"

    def folder(self, references: Path, config: BestResponseConfig) -> Path:
        """Where its best response is kept. Another game, other co-players (also by the same name),
        or other settings: another folder."""
        settings = to_json(config) | {"network": self.network(config)}
        own = identities(self.game_name, self.against)
        what: list[Any] = [self.game_name, to_json(self.game), list(self.against), own, settings]
        if self.side:
            what.append({"side": list(self.team)})
        digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:8]
        words = re.sub(r"[^a-z0-9]+", "-", f"{self.game_name}-{'-'.join(self.against)}".lower())
        return references / f"{words.strip('-')[:80]}-{digest}"


def best_response(
    opposition: Opposition, references: Path, config: BestResponseConfig, watcher: Watcher
) -> dict[str, Any]:
    """The result that the partners' pack holds, the kept one, or a new one: {"reward", "stderr",
    …}.

    One focal seat is enough where seats are alike: it is trained in the first. A focal team is
    trained in all of its seats.
    """
    if not opposition.side and (of_pack := in_pack(opposition.against)) is not None:
        return of_pack
    folder = opposition.folder(references, config)
    kept = folder / RESULT
    found: dict[str, Any] = {"finished": False, "stages": []}
    if kept.exists():
        check_folder(folder)
        found = read_json(kept)
    stages: list[dict[str, Any]] = read_field(found, "stages", list, str(kept))
    for one in (*stages, *([found] if read_field(found, "finished", bool, str(kept)) else [])):
        for name in ("reward", "stderr"):
            read_field(one if isinstance(one, dict) else {}, name, float, str(kept))
    if found["finished"]:
        return found
    run = RunFolder(folder / "run")
    while not _settled(stages, config):
        steps = config.stage * (len(stages) + 1)
        watcher.say(f"best response to {','.join(opposition.against)}: training to step {steps:,}")
        stages.append(_stage(opposition, run, steps, config, watcher))
        watcher.say(f"best response at step {steps:,}: {stages[-1]['reward']:.3f}")
        best = max(stages, key=lambda stage: stage["reward"])
        found = {
            "finished": _settled(stages, config),
            "reward": best["reward"],
            "stderr": best["stderr"],
            "greedy": best["greedy"],
            "seed": best["seed"],
            "stages": stages,
            "game_name": opposition.game_name,
            "game": to_json(opposition.game),
            "against": list(opposition.against),
            "config": to_json(config),
        }
        write_json(kept, found)
    return found


def in_pack(against: tuple[str, ...]) -> dict[str, Any] | None:
    """What a pack knows of the best response to its partner, where all co-players are the same
    one; None: nothing."""
    path, _, name = against[0].partition("@partner=")
    if len(set(against)) > 1 or not name or not is_pack(against[0]):
        return None
    pack = read_pack(Path(path))
    found = read_responses(pack).get(pack.partner(name).name)
    if found is None:
        return None
    return {"finished": True, "reward": found.reward, "stderr": found.stderr, "by": found.by}


def _settled(stages: list[dict[str, Any]], config: BestResponseConfig) -> bool:
    if not stages or len(stages) * config.stage >= config.most:
        return bool(stages)
    if len(stages) < 2:
        return False
    before = max(stage["reward"] for stage in stages[:-1])
    return stages[-1]["reward"] - before < config.margin * abs(before)


def _stage(
    opposition: Opposition,
    run: RunFolder,
    steps: int,
    config: BestResponseConfig,
    watcher: Watcher,
) -> dict[str, Any]:
    """Train to so many steps in all, and measure."""
    team = opposition.team
    player: str = "ppo"
    learner: Any = PPOConfig(network=NetworkConfig(kind=opposition.network(config)))
    if len(team) > 1:
        player, learner = "mappo", MAPPOConfig(rewards="team", parameters="shared+id")
    settings = TrainConfig(
        player=player,
        game_name=opposition.game_name,
        learner=learner,
        game=opposition.game,
        run=RunConfig(
            seating=",".join(opposition.seated(player)),
            steps=steps,
            seeds=config.seeds,
            copies=config.copies,
            checkpoint_every=config.stage,
            keep=1,
            episodes=2,
        ),
    )
    if run.exists():
        started = run.read_config()
        if dataclasses.replace(started, run=settings.run) != settings:
            raise UserError(f"{run.path} holds another run: remove it, or choose --references")
    Trainer(settings, run.path, watcher, resume=run.exists()).run()
    game = make_game_of(settings)
    where = f"seat{'s' * (len(team) > 1)} {', '.join(map(str, team))}"
    watcher.trained(run, game, f"best response ({where}) to {', '.join(opposition.against)}")
    measured = [
        measure(game, opposition.seated(f"{run.path}@seed={seed}"), team, greedy, config.episodes)
        | {"seed": seed, "greedy": greedy}
        for seed in range(config.seeds)
        for greedy in (False, True)
    ]
    return {"steps": steps} | max(measured, key=lambda found: found["reward"])


def measure(
    game: Game, entries: list[str], team: tuple[int, ...], greedy: bool, episodes: int
) -> dict[str, float]:
    """The reward per episode of the players in the seats of `team`, its mean over them.

    entries: [seat] who sits where. greedy: the team's players take their most probable actions.
    """
    players = [
        make_player(entry, game, seat, greedy and seat in team)
        for seat, entry in enumerate(entries)
    ]
    match = play_match(game, group_players(players), episodes, seed=1_000_003)
    reward = np.asarray(match.reward)[:, np.array(team)].mean(axis=1)
    return {
        "reward": float(reward.mean()),
        "stderr": float(reward.std(ddof=1) / math.sqrt(len(reward))),
    }
