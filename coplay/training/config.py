"""The configuration of a training run, whatever is trained on whatever game."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from coplay.algorithms.registry import learner_parts
from coplay.core.config import (
    Config,
    NonNegativeInt,
    PositiveInt,
    Range,
    Seed,
    from_json,
    leaves,
    only_if,
    to_json,
    with_fields,
)
from coplay.core.errors import UserError, unknown
from coplay.core.reading import read_field
from coplay.games.registry import game_parts
from coplay.training.loggers.registry import chosen_loggers
from coplay.training.upgrade import as_of_today, is_old, upgraded_learner


@dataclass(frozen=True)
class RunConfig(Config):
    """One training run, apart from its game and its learner."""

    seating: str = ""
    """Who sits where, one player per seat, as in ppo,ns,ns,ns; empty: the learner in every seat."""
    switch: tuple[str, ...] = ()
    """Changes of a seat's player during the run, as STEP:SEAT=PLAYER, e.g. 200000:0=ppo."""
    partners: str = ""
    """A pack of partners (coplay partners make) to train with: the learner holds one seat, another
    one of the game in every copy, and the other seats hold partners drawn from the pack. HOP+
    records them instead, and learns its goals and its opponent model from the recordings."""
    company: Annotated[Literal["alike", "mixed"], only_if("partners")] = "alike"
    """Partners at a table: the same one in all seats, or one drawn for each seat."""
    meeting_episodes: Annotated[PositiveInt, only_if("partners")] = 10
    """Episodes with the same partners. Then new ones are drawn, and everybody forgets all."""
    steps: PositiveInt = 1_000_000
    """Game steps in total, over all game copies (of each seed)."""
    seed: Seed = 0
    """Seed of all randomness; with several seeds, the first of them."""
    seeds: Annotated[int, Range(least=1, most=10_000)] = 1
    """Independent seeds trained side by side in one compiled program."""
    devices: PositiveInt = 1
    """Devices that share the seeds, if their number divides that of the seeds, else the game
    copies of each seed: every device plays and learns from its own, and gradients are summed."""
    copies: PositiveInt = 256
    """Game copies played at once."""
    rollout: PositiveInt = 32
    """Steps every copy plays between two updates."""
    block: PositiveInt = 4
    """Updates compiled into one block; progress, logs and checkpoints come between blocks."""
    checkpoint_every: PositiveInt = 100_000
    """Game steps between checkpoints (rounded up to blocks)."""
    keep: PositiveInt = 3
    """How many of the last checkpoints are kept, beside the best."""
    episodes: Annotated[int, Range(least=2)] = 10_000
    """Episodes of the final evaluation."""
    evaluate_every: NonNegativeInt = 0
    """Game steps between evaluations during the run (evaluations.jsonl), the first before any
    learning; 0: none."""
    evaluate_episodes: Annotated[PositiveInt, only_if("evaluate_every")] = 32
    """Episodes of each of these evaluations, for each seed."""
    log: str = ""
    """Other places for the metrics, beside metrics.jsonl and TensorBoard: csv, wandb, mlflow, or
    several with commas between them."""
    preset: str = ""
    """Start from settings by name, published ones or measured ones; other options override them.
    coplay presets lists them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        chosen_loggers(self.log)
        if self.seed + self.seeds > 2**31:
            raise UserError(f"the last of {self.seeds} seeds from {self.seed} on is above 2^31 - 1")
        if self.partners and (self.seating or self.switch):
            raise UserError(
                "partners say who sits where: leave out seating and switch, or name partners in "
                "the seating, as in ppo,packs/sh4@partner=3,ns,ns"
            )


def run_defaults(learner: type) -> RunConfig:
    """The run's fields where nothing is said; a learner's configuration may have its own."""
    return with_fields(RunConfig(), getattr(learner, "run_defaults", {}))


@dataclass(frozen=True)
class TrainConfig:
    """Everything that determines a training run.

    player, game_name: the learner and the game by name. learner, game: their configurations.
    dropped: fields of a file of an older program that are gone.
    """

    player: str
    game_name: str
    learner: Any
    game: Any
    run: RunConfig = field(default_factory=RunConfig)
    dropped: tuple[str, ...] = field(default=(), compare=False)

    @property
    def seated_partners(self) -> str:
        """The pack whose partners hold the other seats of the run; empty: none do."""
        return "" if getattr(self.learner, "records_partners", False) else self.run.partners

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in to_json(self).items() if name != "dropped"}

    @staticmethod
    def from_json(data: Any, where: str) -> "TrainConfig":
        """A configuration from what `as_json` gave; errors say which field is wrong."""
        names = ("player", "game_name", "game", "learner", "run")
        for name in names:
            if not isinstance(data, dict) or name not in data:
                raise UserError(f"{where} is not a run's configuration: it lacks '{name}'")
        for name in data:
            if name not in (*names, "coplay", "loads", "partners"):
                raise unknown(f"field in {where}", name, names)
        player, game_name = (read_field(data, name, str, where) for name in names[:2])
        learner = data["learner"]
        dropped: list[str] = []
        if is_old(data.get("coplay")) and isinstance(learner, dict):
            learner, dropped = upgraded_learner(player, learner)
        kind = learner_parts(player)[0]
        if isinstance(learner, dict):
            learner, gone = as_of_today(learner, {leaf.path for leaf in leaves(kind())})
            dropped += gone
        return TrainConfig(
            player=player,
            game_name=game_name,
            learner=_over_defaults(kind, learner, f"{where}: learner"),
            game=from_json(game_parts(game_name)[0], data["game"], f"{where}: game"),
            run=from_json(RunConfig, data["run"], f"{where}: run"),
            dropped=tuple(dropped),
        )


def _over_defaults(kind: type, data: Any, where: str) -> Any:
    """A configuration with the given fields over its defaults, part by part: a learner's defaults
    of a part may be others than the part's own."""
    if not isinstance(data, dict):
        raise UserError(f"{where} must be an object with fields, not {data!r}")
    return with_fields(kind(), data, where)
