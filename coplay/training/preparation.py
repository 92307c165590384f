"""What a run of HOP+ needs before its first step, where nobody has given it: goals and an opponent
model, learned from recordings of a small training population.

The population is made of the game's scripted players, of partners made of rules, and of players
with habits and no goal; or of the partners of a pack (`--partners`) alone. The run keeps the models
in its folder, like pretrained ones.
"""

import dataclasses
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp

from coplay.algorithms.hop_plus.config import HopPlusConfig, RecordingsConfig
from coplay.algorithms.rules import draw_rules, make_rule_partner
from coplay.algorithms.scripted import Habitual, Mix, draw_habits
from coplay.core.config import with_fields
from coplay.core.errors import UserError, see
from coplay.core.game import Game
from coplay.core.player import Player
from coplay.core.progress import Told, untold
from coplay.matches.population import Population
from coplay.training.collect import collect_from
from coplay.training.config import RunConfig, TrainConfig
from coplay.training.partner_packs import load_partner
from coplay.training.players import make_player
from coplay.training.pretrain_goals import pretrain_goals
from coplay.training.pretrained import FitConfig, PretrainedGoalsConfig
from coplay.training.run import RunFolder

GOALS_FIT = with_fields(FitConfig(epochs=8), {"optimiser.learning_rate": 4e-3})
"""How goals are fitted where nothing is said."""

RULES, HABITS, PACKED = "rules", "habits", "partners"
"""The kinds of recorded players that are partners made of rules, habitual players, or the partners
of a pack."""


def records(learner: Any) -> bool:
    """Whether a learner's goals are to be learned from recordings that the run makes."""
    return (
        isinstance(learner, HopPlusConfig)
        and learner.recordings.samples > 0
        and not learner.goals.from_
    )


def check_taught(config: TrainConfig, game: Game) -> None:
    """An error if an opponent model would learn from nothing."""
    learner, run = config.learner, config.run
    if not isinstance(learner, HopPlusConfig):
        return
    if run.partners:
        _check_pack(config, game)
        return
    if learner.goals.from_:
        return
    if learner.models.learn_opponents and not learner.recordings.samples:
        return
    if not learner.recordings.samples:
        raise UserError(
            "goals and opponent model would learn from nothing: give --recordings.samples above 0, "
            "--goals.from, or --models.learn-opponents" + see("explanation/hop-plus")
        )
    if not game.scripted:
        raise UserError(
            f"'{game.name}' has no scripted players to record: give --recordings.samples 0 "
            "--models.learn-opponents, so that goals are learned in self-play"
        )


def _check_pack(config: TrainConfig, game: Game) -> None:
    """An error if the partners of a pack cannot be recorded."""
    learner, run = config.learner, config.run
    if learner.goals.from_ or not learner.recordings.samples:
        raise UserError(
            "--partners are recorded, and goals are learned from the recordings: leave out "
            "--goals.from, and give --recordings.samples above 0"
        )
    plain = RunConfig()
    if (run.company, run.meeting_episodes) != (plain.company, plain.meeting_episodes):
        raise UserError(
            f"'{config.player}' records partners episode by episode, every seat another one: leave "
            "out --company and --meeting-episodes"
        )
    load_partner(f"{run.partners}@partner=each", game)


def population(
    game: Game, config: RecordingsConfig, seed: int, pack: str = ""
) -> tuple[Mix, tuple[str, ...]]:
    """Who is recorded, and the names of their kinds: the game's scripted players; as often as all
    of them together, partners made of rules; half as often habitual players. Or the partners of a
    pack alone."""
    if pack:
        drawn = load_partner(f"{pack}@partner=each", game)
        assert isinstance(drawn, Population)
        return Mix((dataclasses.replace(drawn, meeting=1),), (1.0,)), (PACKED,)
    kinds = [*game.scripted, "random"]
    players: list[Player] = [make_player(kind, game) for kind in kinds]
    weights = [1.0] * len(kinds)
    scripted = float(len(kinds))
    if config.partners and game.blocks and game.symmetric:
        partners = make_rule_partner(game, draw_rules(game, config.partners, seed))
        players.append(one_of_each(partners, config.partners))
        weights.append(scripted)
        kinds.append(RULES)
    if config.habits:
        habitual = Habitual(jnp.asarray(draw_habits(game.actions, config.habits, seed)))
        players.append(one_of_each(habitual, config.habits))
        weights.append(scripted / 2)
        kinds.append(HABITS)
    return Mix(tuple(players), tuple(weights)), tuple(kinds)


def one_of_each(partners: Player, number: int) -> Population:
    """Every seat has one of so many partners, [partner, ...], in every episode another one."""
    place = jnp.stack([jnp.zeros(number, int), jnp.arange(number)], axis=1)
    return Population((partners,), place, meeting=1, alike=False)


def prepare_goals(
    config: TrainConfig,
    game: Game,
    folder: RunFolder,
    say: Callable[[str], None],
    told: Told = untold,
) -> None:
    """Record, learn goals and opponent model, and keep them in the folder of the run."""
    learner, seed = config.learner, config.run.seed
    wanted = learner.recordings
    mix, kinds = population(game, wanted, seed, config.run.partners)
    say(
        f"stage 1 of 3: recording {wanted.samples} steps of {', '.join(kinds)}"
        + (f" ({wanted.partners} partners)" if RULES in kinds else "")
        + (f" of {config.run.partners}" if PACKED in kinds else "")
    )
    dataset = collect_from(config.game_name, config.game, mix, kinds, wanted.samples, seed, told)
    say(f"stage 2 of 3: goals and opponent model, {wanted.epochs} passes over the recordings")
    model = with_fields(
        PretrainedGoalsConfig(),
        {name: getattr(learner.goals, name) for name in vars(learner.goals.model)},
    )
    fit = with_fields(GOALS_FIT, {"epochs": wanted.epochs, "seed": seed})
    with tempfile.TemporaryDirectory() as temporary:
        made = Path(temporary) / "goals"
        recorded = Path("recordings of the run itself")
        pretrain_goals(recorded, dataset, model, fit, made, say, told)
        folder.keep_model("goals.from", made)
    say(f"stage 3 of 3: the policy, {config.run.steps} steps")
