"""Making a pack of partners: each family by its own rule, all from one seed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from coplay.algorithms.ppo.config import PPOConfig
from coplay.algorithms.rules import RuleParameters, draw_rules
from coplay.core.config import Config, PositiveInt, Seed, to_json
from coplay.core.errors import UserError, unknown
from coplay.core.files import write_json
from coplay.core.game import Game
from coplay.core.reading import read_json
from coplay.games.registry import game_parts
from coplay.training.config import RunConfig, TrainConfig
from coplay.training.partner_packs import (
    ABOUT,
    NETWORK,
    FamilyData,
    Pack,
    refuse_full,
    stack,
    write_pack,
)
from coplay.training.run import RunFolder, load_run
from coplay.training.trainer import Trainer, Watcher

ASKED = "asked.json"
"""What a pack was made by, in its folder."""


@dataclass(frozen=True)
class PartnersConfig(Config):
    """How many partners are made, and how."""

    rules: PositiveInt = 20
    """Partners made of rules with random parameters."""
    selfplay_seeds: PositiveInt = 4
    """Runs of PPO in self-play from which partners are taken."""
    selfplay_steps: tuple[PositiveInt, ...] = (20_000, 100_000, 600_000)
    """Game steps after which a partner is taken from each run: early, middle, late."""
    copies: PositiveInt = 256
    """Game copies played at once in those runs."""
    seed: Seed = 0
    """Seed of all randomness."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if list(self.selfplay_steps) != sorted(set(self.selfplay_steps)):
            raise UserError("selfplay_steps must grow")


def make_partners(
    game_name: str,
    game: Any,
    families: tuple[str, ...],
    config: PartnersConfig,
    folder: Path,
    watcher: Watcher,
) -> Pack:
    """A pack with these families, in a new folder; the runs that trained them stay in `runs` below
    it. Making that was interrupted goes on."""
    for name in families:
        if name not in MAKERS:
            raise unknown("family", name, MAKERS)
    if not families:
        raise UserError(f"name one family at least: {', '.join(MAKERS)}")
    made = game_parts(game_name)[1](game)
    if not made.symmetric:
        raise UserError(
            f"the seats of {game_name} are not alike, so a partner could not take each of them: "
            "packs need a game whose seats can be renumbered, such as stag-hunt"
        )
    asked = {
        "game_name": game_name,
        "game": to_json(game),
        "families": list(families),
        "config": to_json(config),
    }
    if (folder / ABOUT).exists() or not _goes_on(folder / ASKED, asked):
        refuse_full(folder)
    write_json(folder / ASKED, asked)
    found = {}
    for name in families:
        watcher.say(f"family '{name}'")
        found[name] = MAKERS[name](game_name, game, made, config, folder, watcher)
    return write_pack(folder, game_name, game, config.seed, found)


def _goes_on(path: Path, asked: dict[str, Any]) -> bool:
    """Whether a folder was begun by the same request."""
    return path.is_file() and read_json(path) == asked


def make_rules(
    game_name: str, game: Any, made: Game, config: PartnersConfig, folder: Path, watcher: Watcher
) -> FamilyData:
    """Partners made of the game's building blocks; see `RuleParameters`."""
    drawn = draw_rules(made, config.rules, config.seed)
    hows = []
    for row in range(config.rules):
        one = RuleParameters(*(np.asarray(x)[row] for x in drawn))
        weights = np.exp(one.preference - one.preference.max())
        shares = dict(zip(made.blocks, (weights / weights.sum()).round(3).tolist(), strict=True))
        numbers = {name: float(value) for name, value in one._asdict().items() if value.ndim == 0}
        # JSON has no infinity: a partner that never gives up has no number for it.
        hows.append({"preference": shares} | {k: v for k, v in numbers.items() if np.isfinite(v)})
    arrays = RuleParameters(*(np.asarray(x, np.float32) for x in drawn))
    return FamilyData(arrays, hows)


def make_selfplay(
    game_name: str, game: Any, made: Game, config: PartnersConfig, folder: Path, watcher: Watcher
) -> FamilyData:
    """PPO in self-play with shared parameters: early, middle and late checkpoints of several runs
    (fictitious co-play)."""
    actors, hows = [], []
    for steps in config.selfplay_steps:
        settings = TrainConfig(
            player="ppo",
            game_name=game_name,
            learner=PPOConfig(parameters="shared", network=NETWORK),
            game=game,
            run=RunConfig(
                steps=steps,
                seeds=config.selfplay_seeds,
                seed=config.seed,
                copies=config.copies,
                checkpoint_every=steps,
                keep=1,
                episodes=1000,
            ),
        )
        run = RunFolder(folder / "runs" / f"selfplay-{steps}")
        if not run.exists() or run.read_summary() is None:
            Trainer(settings, run.path, watcher, resume=run.exists()).run()
        trained = load_run(run.path)
        for seed in trained.seeds:
            _, state = trained.learner(0, seed)
            actors.append(jax.tree.map(lambda x: x[0], state.actor))
            hows.append({"learner": "ppo", "seed": seed, "steps": steps})
    return FamilyData(stack(actors), hows)


MAKERS: dict[str, Callable[..., FamilyData]] = {"rules": make_rules, "selfplay": make_selfplay}
"""Family -> what makes it."""
