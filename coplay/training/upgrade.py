"""Configurations of older programs.

Of version 0.1: a map of old names to the paths of today. A field that is gone maps to None: it is
dropped, and the user is told. Early files of version 0.2.0 hold a few fields more than today's:
these are dropped likewise.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

Renamed = Mapping[str, str | tuple[str, ...] | None]

NETWORK: Renamed = {
    "network": "network.kind",
    "hidden": "network.hidden",
    "channels": "network.channels",
    "activation": "network.activation",
}
OPTIMISER: Renamed = {
    "learning_rate": "optimiser.learning_rate",
    "schedule": "optimiser.schedule",
    "gradient_clip": "optimiser.max_grad_norm",
}
PPO: Renamed = {**NETWORK, **OPTIMISER, "trace": "gae_lambda"}
MAPPO: Renamed = {
    **NETWORK,
    "layer_norm": "network.layer_norm",
    "actor_rate": "optimiser.learning_rate",
    "critic_rate": "critic_learning_rate",
    "schedule": "optimiser.schedule",
    "gradient_clip": "optimiser.max_grad_norm",
    "trace": "gae_lambda",
    "critic": "critic_input",
    "memory": "memory.kind",
    "units": "memory.units",
    "chunk": "memory.chunk_length",
    "normalise_values": "value_norm",
    "value_decay": None,
}
HYPER_MAPPO: Renamed = {
    **MAPPO,
    "context": "hypernetwork.context",
    "layers": "hypernetwork.layers",
    "increments": "hypernetwork.increments",
    "use": "hypernetwork.use",
    "ids": "hypernetwork.ids",
    "latent": "hypernetwork.latent",
    "accumulation": "hypernetwork.accumulation",
    "context_width": "hypernetwork.width",
    "context_units": "hypernetwork.units",
    "context_memory": "hypernetwork.memory",
    "hyper_rate": "hypernetwork.learning_rate",
    "generate_critic": "hypernetwork.generate_critic",
}
SEARCH: Renamed = {
    "simulations": "search.simulations",
    "draws": "search.draws",
    "depth": "search.depth",
    "search": "search.kind",
    "exploration": "search.exploration",
    "beta": "search.beta",
    "q_range": None,
}
HOP: Renamed = {
    **NETWORK,
    **OPTIMISER,
    **SEARCH,
    "backend": "search.backend",
    "resample": "search.resample",
    "share_tree": "search.share_tree",
    "raw_puct": "search.raw_q",
    "backup": "search.backup",
    "normalise_q": "search.normalise_q",
    # One discount stood for both.
    "discount": ("discount", "search.discount"),
    "inter": "belief.inter",
    "intra": "belief.intra",
    "prior": "belief.prior",
    "remember": "belief.keep",
    "concentration": "belief.concentration",
    "goal_change": "belief.goal_change",
    "aimless": "belief.random_goal",
    "characters": "personas.share",
    "characters_from": "personas.first_episode",
    "school": "personas.curriculum",
    "character_episodes": "personas.episodes",
    "character_beta": "personas.beta",
    "guides": "personas.guide_search",
    "direct_om": "goals.source",
    "replay": "replay.capacity",
    "updates": "replay.updates",
    "batch": "replay.batch",
    "trace": "gae_lambda",
}
HOP_PLUS: Renamed = {
    **PPO,
    **SEARCH,
    "plan_discount": "search.discount",
    "plan_training": "plan_while_learning",
    "goal": "goals.use",
    "goals": "goals.from",
    "goal_loss": "goals.loss",
    "goal_dim": "goals.dim",
    "inference": "goals.inference",
    "prototypes": "goals.prototypes",
    "goal_units": None,
    "goal_width": "goals.width",
    "opponent_hidden": "goals.opponent_hidden",
    "kl_weight": "goals.kl_weight",
    "match_weight": "goals.inference_kl_weight",
    "ahead": "goals.horizon",
    "selector": "goals.selector",
    "world_model": "world_model.from",
    "world_channels": "world_model.channels",
    "imagination": "imagination.share",
    "strangers": "imagination.strangers",
    "imagine_over": "imagination.over",
    "imagine_after": "imagination.after",
    "line": "models.chunk_length",
    "buffer_lines": "models.buffer_chunks",
    "buffer_steps": "models.buffer_transitions",
    "model_updates": "models.updates",
    "model_every": "models.every",
    "model_lines": "models.batch_chunks",
    "model_steps": "models.batch_transitions",
    "model_rate": "models.learning_rate",
    "learn_opponents": "models.learn_opponents",
    "learn_world": "models.learn_world",
}
LEARNERS: Mapping[str, Renamed] = {
    "ppo": PPO,
    "ppo-gru": {**PPO, "units": "memory.units", "keep_memory": "memory.keep"},
    "mappo": MAPPO,
    "hyper-mappo": HYPER_MAPPO,
    "hop": HOP,
    "hop-plus": HOP_PLUS,
}
"""Learner -> field of version 0.1 -> its path today, or paths. Other fields kept their names."""

GOALS: Renamed = {
    "goal_dim": "dim",
    "units": None,
    "match_weight": "inference_kl_weight",
    "ahead": "horizon",
}
FIT: Renamed = {
    "learning_rate": "optimiser.learning_rate",
    "gradient_clip": "optimiser.max_grad_norm",
}
"""The same of pretrained models: of goals, and of how they were fitted."""

GONE = (
    *("optimiser.weight_decay", "value_norm.decay", "search.min_q_range", "goals.units"),
    "units",  # of a pretrained model of goals
)
"""Fields that early files of version 0.2.0 hold."""

ADDED: Mapping[str, Any] = {
    "belief.action_rates": False,
    "belief.corrected": False,
    "belief.inter": False,
    "personas.random_rates": False,
    "recordings.habits": 0,
}
"""Fields that earlier files lack, with the values that say what the program did then."""

VALUES: Mapping[tuple[str, str], Callable[[Any], Any]] = {
    ("hop", "planner"): lambda value: {"on": "search", "off": "none"}.get(value, value),
    ("hop", "direct_om"): lambda value: "none" if value else "auto",
}
"""(Learner, field of version 0.1) -> its value today."""


def is_old(version: Any) -> bool:
    """Whether a file was written by version 0.1."""
    return str(version).startswith("0.1.")


def upgraded(renamed: Renamed, data: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Fields of version 0.1 as a nested dictionary of today, and those that are gone."""
    nested: dict[str, Any] = {}
    gone = []
    for name, value in data.items():
        paths = renamed.get(name, name)
        if paths is None:
            gone.append(name)
            continue
        for path in (paths,) if isinstance(paths, str) else paths:
            *parts, last = path.split(".")
            place = nested
            for part in parts:
                place = place.setdefault(part, {})
            place[last] = value
    return nested, gone


def upgraded_learner(player: str, data: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """See `upgraded`: the configuration of a learner."""
    values = {
        name: VALUES.get((player, name), lambda value: value)(value) for name, value in data.items()
    }
    return upgraded(LEARNERS.get(player, {}), values)


def as_of_today(
    data: Mapping[str, Any], known: Collection[str]
) -> tuple[dict[str, Any], list[str]]:
    """A configuration in the fields of today: without those of `GONE` that are not known, which are
    also returned, and with those of `ADDED`.

    known: paths of the fields of today. What is left of `value_norm` is its only field, whether
    values are normalised. `direct_om` became one of the sources of goals.
    """
    kept = {
        name: dict(value) if isinstance(value, Mapping) else value for name, value in data.items()
    }
    found = []
    for path in GONE:
        part, dot, name = path.rpartition(".")
        place = kept.get(part) if dot else kept
        if path not in known and isinstance(place, dict) and name in place:
            del place[name]
            found.append(path)
    if "goals.source" in known and "direct_om" in kept:
        kept["goals"] = {"source": "none" if kept.pop("direct_om") else "auto"}
    norm = kept.get("value_norm")
    if "value_norm" in known and isinstance(norm, dict) and set(norm) == {"enabled"}:
        kept["value_norm"] = norm["enabled"]
    for path in ADDED.keys() & set(known):
        part, _, name = path.partition(".")
        place = kept.setdefault(part, {})
        if isinstance(place, dict):
            place.setdefault(name, ADDED[path])
    return kept, found
