"""Partners that plan: HOP, trained in self-play with seeds of its own.

A pack holds their numbers and their configuration. What searches stands in this program.
"""

import dataclasses
from typing import Any

from coplay.algorithms.hop.config import HOPConfig
from coplay.core.config import to_json, with_fields
from coplay.evaluation.partners.config import Order
from coplay.training.config import RunConfig, TrainConfig
from coplay.training.partner_packs import FamilyData, stack
from coplay.training.run import RunFolder, load_run
from coplay.training.trainer import Trainer


def make_planners(order: Order) -> FamilyData:
    """HOP in self-play, several seeds. They search as long as in training, which is shorter than a
    run's player does, so that others can be trained among them."""
    config = order.config
    run = with_fields(RunConfig(), HOPConfig.run_defaults)
    copies = min(run.copies, config.copies)
    settings = TrainConfig(
        player="hop",
        game_name=order.game_name,
        learner=HOPConfig(),
        game=order.game,
        run=dataclasses.replace(
            run,
            steps=config.planners_steps,
            seeds=config.planners,
            seed=config.seed + 1000,
            copies=copies,
            checkpoint_every=config.planners_steps,
            keep=1,
            episodes=64,
        ),
    )
    folder = RunFolder(order.folder / "runs" / "planners")
    if not folder.exists() or folder.read_summary() is None:
        Trainer(settings, folder.path, order.watcher, resume=folder.exists()).run()
    trained = load_run(folder.path)
    players, hows = [], []
    for seed in trained.seeds:
        learner, state = trained.learner(0, seed)
        players.append(learner.player(state, 0))
        how: dict[str, Any] = {"learner": "hop", "seed": seed, "steps": config.planners_steps}
        hows.append(how | {"config": to_json(learner.config)})
    return FamilyData(stack(players), hows)
