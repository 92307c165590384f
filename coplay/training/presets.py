"""Presets: settings of a run by name, published ones and measured ones, from `presets.toml`."""

import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from coplay.algorithms.registry import learner_parts
from coplay.core.config import with_fields
from coplay.core.errors import UserError, see, unknown
from coplay.games.registry import game_parts
from coplay.training.config import TrainConfig, run_defaults

FILE = Path(__file__).with_name("presets.toml")


class Preset(NamedTuple):
    """Settings by name.

    players: the learners that they are for. game: where nothing is said. reproduces: what they are
        for. source, files, commit: where they are from; without a commit, this project. differs:
        what is not the same here. run, learner: fields. fields: of the game, if it is that one.
        own: learner -> its fields beside those.
    """

    name: str
    players: tuple[str, ...]
    game: str
    reproduces: str
    source: str
    files: tuple[str, ...]
    commit: str
    differs: str
    run: dict[str, Any]
    learner: dict[str, Any]
    fields: dict[str, Any]
    own: dict[str, dict[str, Any]]

    def fields_for(self, game: str) -> dict[str, Any]:
        """Fields of a game: none if it is another than the preset's own."""
        return self.fields if game == self.game else {}


@cache
def presets() -> dict[str, Preset]:
    """All presets by name."""
    found = {}
    for name, stated in tomllib.loads(FILE.read_text()).items():
        own = {player: stated[player] for player in stated["players"] if player in stated}
        found[name] = Preset(
            name=name,
            players=tuple(stated["players"]),
            game=stated["game"],
            reproduces=stated["reproduces"],
            source=stated["source"],
            files=tuple(stated["files"]),
            commit=stated.get("commit", ""),
            differs=stated["differs"],
            run=stated.get("run", {}),
            learner=stated.get("learner", {}),
            fields=stated.get("fields", {}),
            own=own,
        )
    return found


def preset_game(name: Any) -> str | None:
    """The game of a preset; None: there is no such preset."""
    return presets()[name].game if name in presets() else None


def presets_of(player: str) -> list[Preset]:
    """The presets for a learner."""
    return [preset for preset in presets().values() if player in preset.players]


def from_preset(name: str, player: str, game_name: str | None = None) -> TrainConfig:
    """The configuration that a preset stands for. game_name: another game than its own."""
    if name not in presets():
        raise unknown("preset", name, presets())
    preset = presets()[name]
    if player not in preset.players:
        fitting = ", ".join(one.name for one in presets_of(player)) or "none"
        raise UserError(
            f"the preset '{name}' is for {' and '.join(preset.players)}; for '{player}' there are: "
            f"{fitting}{see('how-to/presets')}"
        )
    kind, game = learner_parts(player)[0], game_name or preset.game
    where = f"the preset '{name}'"
    return TrainConfig(
        player,
        game,
        with_fields(with_fields(kind(), preset.learner, where), preset.own.get(player, {}), where),
        with_fields(game_parts(game)[0](), preset.fields_for(game), where),
        replace(with_fields(run_defaults(kind), preset.run, where), preset=name),
    )
