"""How a trained player plays: with the fields of its run, or with the better ones for playing."""

import json
from collections.abc import Mapping
from typing import Any

from coplay.core.config import get_field, inert_fields, leaves, with_fields
from coplay.core.learner import Learner


def playing(config: Any, better: Mapping[str, Any] | None = None) -> Any:
    """A learner's configuration with its defaults for playing, where the run left them alone.
    better: these defaults (`Learner.play_defaults`); None: those that the configuration names."""
    better = getattr(config, "play_defaults", {}) if better is None else better
    return with_defaults(config, better)


def plays_otherwise(config: Any, better: Mapping[str, Any] | None = None) -> list[str]:
    """In which fields players of a run differ from those that its own evaluations play, as a user
    sets them: a planner searches longer than it could while learning. Fields that do nothing are
    left out."""
    evaluated = {leaf.path: leaf.value for leaf in leaves(config)}
    other = playing(config, better)
    inert = {text.partition(" ")[0] for text in inert_fields(other)}
    return [
        f"{leaf.path}={json.dumps(leaf.value).strip(chr(34))}"
        for leaf in leaves(other)
        if leaf.value != evaluated[leaf.path] and leaf.path not in inert
    ]


def with_defaults(config: Any, better: Mapping[str, Any]) -> Any:
    """A configuration with other values in the fields that have their defaults."""
    usual = {leaf.path: leaf.default for leaf in leaves(config)}
    left = {path: value for path, value in better.items() if get_field(config, path) == usual[path]}
    return with_fields(config, left)


def play_fields(learner: Learner) -> list[str]:
    """The fields that may be set for a player of a run, those of parts one by one."""
    return [
        leaf.path
        for leaf in leaves(learner.config)
        if any(f"{leaf.path}.".startswith(f"{path}.") for path in learner.play_fields)
    ]
