"""How a trained player plays: with the fields of its run, or with the better ones for playing."""

from collections.abc import Mapping
from typing import Any

from coplay.core.config import get_field, leaves, with_fields
from coplay.core.learner import Learner


def playing(config: Any) -> Any:
    """A learner's configuration with its defaults for playing, where the run left them alone."""
    return with_defaults(config, getattr(config, "play_defaults", {}))


def plays_otherwise(config: Any) -> list[str]:
    """In which fields players of a run differ from those that its own evaluations play, as
    FIELD=VALUE: a planner searches longer than it could while learning."""
    evaluated = {leaf.path: leaf.value for leaf in leaves(config)}
    return [
        f"{leaf.path}={leaf.value}"
        for leaf in leaves(playing(config))
        if leaf.value != evaluated[leaf.path]
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
