"""Making a pack of partners: each family by its own rule, all from one seed."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from coplay.algorithms.ppo.config import PPOConfig
from coplay.algorithms.rules import RuleParameters, draw_rules
from coplay.core.config import to_json
from coplay.core.errors import UserError, unknown
from coplay.core.files import write_json
from coplay.core.manifest import listing
from coplay.core.reading import read_field, read_json
from coplay.evaluation.partners.config import Order, PartnersConfig
from coplay.evaluation.partners.diverse import make_diverse
from coplay.evaluation.partners.people import make_people, person_data
from coplay.evaluation.partners.planners import make_planners
from coplay.evaluation.partners.rewards import make_rewards
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
TIMES = "times.json"
"""Seconds that each family took, in its folder."""


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
    order = check_order(game_name, game, families, config, folder, watcher)
    begin_pack(order, families)
    times = read_times(folder)
    found = {}
    for name in families:
        watcher.say(f"family '{name}'")
        began = time.monotonic()
        found[name] = MAKERS[name](order)
        seconds = round(time.monotonic() - began, 1)
        times[name] = round(times.get(name, 0.0) + seconds, 1)
        watcher.say(f"family '{name}': {len(found[name].hows)} partners in {seconds:.0f} s")
        # Beside the pack and not in it: the same seed gives the same bytes of a pack.
        with listing(folder):
            write_json(folder / TIMES, times)
    return write_pack(folder, game_name, game, config.seed, found)


def check_order(
    game_name: str,
    game: Any,
    families: tuple[str, ...],
    config: PartnersConfig,
    folder: Path,
    watcher: Watcher,
) -> Order:
    """What the makers are given; an error if these families cannot be made for this game."""
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
    if "rewards" in families and not made.event_names:
        raise UserError(
            f"{game_name} declares no events (Game.event_names): leave out the family 'rewards'"
        )
    if "planners" in families and (made.goals is None or not made.full_view):
        raise UserError(
            f"HOP needs a game that declares goals and shows everything; {game_name} does not: "
            "leave out the family 'planners'"
        )
    order = Order(game_name, game, made, config, folder, watcher)
    if "people" in families:
        person_data(order)
    return order


def begin_pack(order: Order, families: tuple[str, ...]) -> None:
    """A new folder that says what is made in it, or one that was begun by the same request."""
    asked = {
        "game_name": order.game_name,
        "game": to_json(order.game),
        "families": list(families),
        "config": to_json(order.config),
    }
    folder = order.folder
    goes_on = (folder / ASKED).is_file() and read_json(folder / ASKED) == asked
    if (folder / ABOUT).exists() or not goes_on:
        refuse_full(folder)
    with listing(folder):
        write_json(folder / ASKED, asked)


def read_times(folder: Path) -> dict[str, float]:
    """Seconds that making each family took, all attempts together; empty if nobody knows."""
    path = folder / TIMES
    times = read_json(path) if path.is_file() else {}
    return {str(name): read_field(times, name, float, str(path)) for name in times}


def make_rules(order: Order) -> FamilyData:
    """Partners made of the game's building blocks; see `RuleParameters`."""
    made, config = order.made, order.config
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


def make_selfplay(order: Order) -> FamilyData:
    """PPO in self-play with shared parameters: early, middle and late checkpoints of several runs
    (fictitious co-play)."""
    actors, hows = [], []
    steps_of = order.config.selfplay_steps
    for number, steps in enumerate(steps_of):
        order.watcher.work("selfplay: runs", number, len(steps_of))
        trained = load_run(selfplay_run(order, steps))
        for seed in trained.seeds:
            _, state = trained.learner(0, seed)
            actors.append(jax.tree.map(lambda x: x[0], state.actor))
            hows.append({"learner": "ppo", "seed": seed, "steps": steps})
    return FamilyData(stack(actors), hows)


def selfplay_run(order: Order, steps: int) -> Path:
    """PPO in self-play for so many steps, all seeds; kept."""
    config = order.config
    settings = TrainConfig(
        player="ppo",
        game_name=order.game_name,
        learner=PPOConfig(parameters="shared", network=NETWORK),
        game=order.game,
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
    run = RunFolder(order.folder / "runs" / f"selfplay-{steps}")
    if not run.exists() or run.read_summary() is None:
        Trainer(settings, run.path, order.watcher, resume=run.exists()).run()
    return run.path


MAKERS: dict[str, Callable[[Order], FamilyData]] = {
    "rules": make_rules,
    "selfplay": make_selfplay,
    "rewards": make_rewards,
    "diverse": make_diverse,
    "planners": make_planners,
    "people": make_people,
}
"""Family -> what makes it."""


# --- parts, for several workers ----------------------------------------------------------------


def parts_of(families: tuple[str, ...], config: PartnersConfig) -> list[str]:
    """What can be trained independently: a family, or one of its runs as FAMILY:WHICH."""
    found = []
    for name in families:
        if name == "selfplay":
            found += [f"selfplay:{steps}" for steps in config.selfplay_steps]
        elif name == "rewards":
            found += [f"rewards:{number}" for number in range(config.rewards)]
        elif name != "rules":  # takes no time
            found.append(name)
    return found


def make_part(order: Order, part: str) -> None:
    """Leave what a part trains in `runs` of the folder, where `make_partners` finds it."""
    name, _, which = part.partition(":")
    if name == "selfplay":
        selfplay_run(order, int(which))
    elif name == "rewards":
        make_rewards(order, int(which))
    else:
        MAKERS[name](order)
