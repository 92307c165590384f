"""All that the page of a run shows, as plain data.

Nothing of the run is executed, and its game and learner need not be known: what cannot be read is
said in `notes`, and the rest is shown.
"""

import math
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from coplay.core.config import Leaf, leaves, to_json
from coplay.core.errors import UserError
from coplay.core.reading import read_field, read_json
from coplay.games.drawing import seat_colour
from coplay.games.registry import GAMES
from coplay.matches.statistics import bootstrap_band, iqm
from coplay.reports.thinning import MOST_SEEDS, Curves, read_curves
from coplay.training.config import TrainConfig, run_defaults
from coplay.training.metrics import GROUPS, METRICS, plain_name
from coplay.training.records import HISTORY, read_rows
from coplay.training.run import RunFolder, make_game_of

SCHEMA = 1
"""The version of the data."""
POINTS = 200
"""The most points of a curve."""
DIGITS = 4
"""Significant digits of a point."""
RESAMPLES = 500
"""Of the bootstrap, at each point."""
MODELS = ("Models of others", "Opponent model", "Goals", "World model")
"""Groups of metrics that say how good a model is."""
ELSEWHERE = ("team_mean", "reward/…")
"""Metrics that the learning curve shows."""
OTHER = "Other metrics"
"""The group of metrics that no table explains."""

Data = dict[str, Any]


def run_data(folder: str | Path) -> Data:
    """What is known of the run in a folder, ready for JSON; docs/reference/files.md says what each
    part means. An error if the folder holds no run that can be read."""
    run = RunFolder(Path(folder))
    if not run.exists():
        raise UserError(f"{run.path} holds no run: there is no {run.config_file}")
    about = _about(run)
    notes: list[str] = []
    config = _or_note(run.read_config, notes)
    summary = _or_note(run.read_summary, notes)
    seeds = about["seeds"]
    if len(seeds) > MOST_SEEDS:
        notes.append(f"the first {MOST_SEEDS} of {len(seeds)} seeds are shown")
    curves = read_curves(run.metrics_file, seeds, POINTS)
    last = float(curves.steps[-1]) if len(curves.steps) else 0
    step = max(int(last), run.checkpoints().last_step(), summary["steps"] if summary else 0)
    seats = _seats(curves, summary)
    return {
        "kind": "run",
        "schema": SCHEMA,
        "name": run.path.resolve().name,
        "folder": str(run.path),
        **about,
        "seats": seats,
        "colours": [seat_colour(seat) for seat in range(seats)],
        "step": step,
        "finished": summary is not None and summary["steps"] >= about["steps"],
        "notes": notes,
        "curve": _learning_curve(curves, seats),
        "evaluations": _evaluations(run, seeds),
        "summary": summary,
        "groups": _groups(curves),
        "made": _made(run, config),
        "files": _files(run),
        "commands": _commands(run, about, config, max(seats, 1), step),
    }


def _or_note(read: Any, notes: list[str]) -> Any:
    """What can be read, or None and a note why not."""
    try:
        return read()
    except UserError as error:
        notes.append(str(error))
        return None


def _about(run: RunFolder) -> Data:
    """Who was trained where, and for how long."""
    where, stated = str(run.config_file), read_json(run.config_file)
    settings = read_field(stated, "run", dict, where)
    first, count = (read_field(settings, name, int, where) for name in ("seed", "seeds"))
    return {
        "player": read_field(stated, "player", str, where),
        "game": read_field(stated, "game_name", str, where),
        "seating": read_field(settings, "seating", str, where),
        "seeds": list(range(first, first + min(count, 10_000))),
        "steps": read_field(settings, "steps", int, where),
    }


def _seats(curves: Curves, summary: Data | None) -> int:
    """How many seats the game has, as far as the run has told."""
    if summary is not None:
        return len(summary["seats"])
    named = [name.partition("/seat_")[2] for name in curves.values if name.startswith("reward/")]
    return max((int(seat) + 1 for seat in named if seat.isdigit() and len(seat) < 4), default=0)


# --- curves ------------------------------------------------------------------------------------


def _learning_curve(curves: Curves, seats: int) -> Data:
    """Rewards over training: of the team, of each seat, and of the team for each seed."""
    team = curves.values.get("team_mean")
    found = [curves.values.get(f"reward/seat_{seat}") for seat in range(seats)]
    of_seeds = [] if team is None or len(team) < 2 else [_points(one) for one in team]
    return {
        "steps": _points(curves.steps),
        "rows": curves.rows,
        "team": None if team is None else _middle(team),
        "seats": [None if values is None else _middle(values) for values in found],
        "seeds": of_seeds,
    }


def _middle(values: np.ndarray) -> Data:
    """The interquartile mean over the seeds, with its 95 % bootstrap interval; [seed, point]. A
    point counts the seeds that have a number there."""
    with np.errstate(invalid="ignore"):
        middle = iqm(values, axis=0)
    if len(values) < 2:
        return {"mean": _points(middle)}
    low, high = np.full((2, values.shape[1]), np.nan)
    whole = np.isfinite(values).all(axis=0)
    low[whole], high[whole] = bootstrap_band(values[:, whole], resamples=RESAMPLES)
    for point in np.flatnonzero(~whole & np.isfinite(values).any(axis=0)):
        known = values[np.isfinite(values[:, point]), point]
        middle[point] = iqm(known)
        (low[point],), (high[point],) = bootstrap_band(known[:, None], resamples=RESAMPLES)
    return {"mean": _points(middle), "low": _points(low), "high": _points(high)}


def _spread(values: np.ndarray) -> Data:
    """The mean over the seeds, and the lowest and highest of them; [seed, point]."""
    known = np.isfinite(values)
    count = known.sum(axis=0)
    mean = np.where(known, values, 0.0).sum(axis=0) / np.where(count, count, np.nan)
    found = {"mean": _points(mean)}
    if len(values) > 1:
        none = ~known.any(axis=0)
        low, high = np.where(known, values, np.inf).min(0), np.where(known, values, -np.inf).max(0)
        low[none] = high[none] = np.nan
        found |= {"low": _points(low), "high": _points(high)}
    return found


def _points(values: np.ndarray) -> list[float | int | None]:
    """Numbers in few digits; None for what is none."""
    return [_rounded(float(value)) for value in values]


def _rounded(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    if abs(value) >= 10**DIGITS:
        return round(value)
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() else rounded


def _evaluations(run: RunFolder, seeds: list[int]) -> Data | None:
    """Evaluations during the run: their steps, and each measure over them."""
    found = read_curves(run.evaluations_file, seeds, POINTS)
    measures = {name: values for name, values in found.values.items() if name != "episodes"}
    if not measures:
        return None
    return {
        "steps": _points(found.steps),
        "episodes": _rounded(float(np.nanmax(found.values.get("episodes", np.full(1, np.nan))))),
        "measures": {name: _middle(values) for name, values in measures.items()},
    }


def _groups(curves: Curves) -> list[Data]:
    """The metrics in the groups of `coplay/training/metrics.py`, each with its meaning and a curve
    for each seat."""
    titles = {name: title for title, (_, table) in GROUPS.items() for name in table}
    groups: dict[str, dict[str, Data]] = {title: {} for title in (*GROUPS, OTHER)}
    for name, values in curves.values.items():
        plain = plain_name(name)
        if plain in ELSEWHERE or not np.isfinite(values).any():
            continue
        stem, _, seat = name.partition("/")
        metrics = groups[titles.get(plain, OTHER)]
        metric = metrics.setdefault(stem, {"name": stem, "words": METRICS.get(plain), "curves": []})
        metric["curves"].append({"label": seat.replace("_", " ") or stem} | _spread(values))
    for metrics in groups.values():
        for metric in metrics.values():
            metric["curves"] = _once(metric["curves"])
    return [
        {"title": title, "model": title in MODELS, "metrics": list(metrics.values())}
        for title, metrics in groups.items()
        if metrics
    ]


def _once(curves: list[Data]) -> list[Data]:
    """One curve for all seats where all are the same: seats may share what learns."""
    alike = all(curve | {"label": ""} == curves[0] | {"label": ""} for curve in curves)
    return [curves[0] | {"label": "all seats"}] if alike and len(curves) > 1 else curves


# --- how it was made ---------------------------------------------------------------------------


def _made(run: RunFolder, config: TrainConfig | None) -> Data:
    """Command, fields, versions, machine, and what happened to the run."""
    history = [
        {name: row.get(name) for name in ("time", "event", "step", "coplay", "what")}
        for row in read_rows(run.path / HISTORY)
    ]
    tellers = [row for row in read_rows(run.path / HISTORY) if isinstance(row.get("machine"), dict)]
    last: Data = tellers[-1] if tellers else {}
    return {
        "command": None if config is None else command_of(config, run.path, run.loads()),
        "fields": _raw_fields(run) if config is None else changed_fields(config),
        "versions": _texts(last.get("versions")),
        "machine": _texts(last.get("machine")),
        "history": history[-20:],
    }


def _texts(stated: Any) -> dict[str, str]:
    return {str(k): str(v) for k, v in stated.items()} if isinstance(stated, dict) else {}


def changed_fields(config: TrainConfig) -> list[Data]:
    """The fields that are not at their defaults, as users write them."""
    return [
        {"path": leaf.path, "value": to_json(leaf.value), "default": to_json(leaf.default)}
        for leaf in _changed(config)
    ]


def _changed(config: TrainConfig) -> Iterator[Leaf]:
    """The fields of game, learner and run that are not at their defaults."""
    usual = {leaf.path: leaf.value for leaf in leaves(run_defaults(type(config.learner)))}
    found = [leaf._replace(path=f"game.{leaf.path}") for leaf in leaves(config.game)]
    found += leaves(config.learner)
    found += (leaf._replace(default=usual[leaf.path]) for leaf in leaves(config.run))
    return (leaf for leaf in found if leaf.value != leaf.default)


def _raw_fields(run: RunFolder) -> list[Data]:
    """All fields as the file says them, where nobody knows the defaults."""
    stated = read_json(run.config_file)
    found: list[Data] = []

    def visit(inside: str, value: Any) -> None:
        if isinstance(value, dict) and value and len(inside) < 200:
            for name, part in value.items():
                visit(f"{inside}.{name}" if inside else str(name), part)
        else:
            found.append({"path": inside, "value": value, "default": None})

    for part in ("game", "learner", "run"):
        visit("game" if part == "game" else "", stated.get(part))
    return found


def command_of(config: TrainConfig, out: Path, loads: list[str]) -> str:
    """The command that trains such a run."""
    words = ["coplay", "train", config.player, "--game", config.game_name]
    for leaf in _changed(config):
        words += _option(leaf)
    words += ["--out", str(out)]
    for name in loads:
        words += ["--load", name]
    return shlex.join(words)


def _option(leaf: Leaf) -> list[str]:
    """A field as an option of the command line."""
    name = leaf.path.replace("_", "-")
    if leaf.hint is bool:
        head, dot, last = name.rpartition(".")
        return [f"--{name}" if leaf.value else f"--{head}{dot}no-{last}"]
    values = leaf.value if isinstance(leaf.value, tuple) else (leaf.value,)
    return [f"--{name}", *map(str, values)]


# --- what is there, and how to go on -----------------------------------------------------------


def _files(run: RunFolder) -> list[Data]:
    """The files of a run that are worth opening; names are below its folder."""
    saved = run.checkpoints()
    named: list[tuple[Path, str]] = [
        (run.replay_file, "an episode, step by step, with what each player thought"),
        (run.gif_file, "an episode as a film"),
        (run.curve_file, "the learning curve as a picture"),
        *((path, f"what coplay {_looked(path)} found") for path in _inspections(run)),
        *((path, "checkpoint: everything that a resumed run needs") for path in saved.all()),
        (saved.best, "checkpoint: the learners of each seed when their team mean was highest"),
        (run.config_file, "everything that determines the run"),
        (run.metrics_file, "all metrics, one row per update and seed"),
        (run.evaluations_file, "evaluations during the run"),
        (run.summary_file, "the final evaluation"),
    ]
    return [
        {
            "name": path.relative_to(run.path).as_posix(),
            "bytes": path.stat().st_size,
            "words": words,
        }
        for path, words in named
        if path.is_file()
    ]


def _inspections(run: RunFolder) -> list[Path]:
    """The pages of `coplay inspect` in the folder of a run."""
    return sorted(run.path.glob("inspect-*/index.html"))


def _looked(page: Path) -> str:
    return page.parent.name.replace("-", " ", 1)


def _commands(
    run: RunFolder, about: Mapping[str, Any], config: TrainConfig | None, seats: int, step: int
) -> list[Data]:
    """What to do next with the run."""
    path = str(run.path)
    others = _others(config, seats - 1)
    own = [word for name in run.loads() for word in ("--load", name)]
    watch = ["watch", path, "--out", "replay.html"]
    found: list[tuple[str, list[str]]] = [("look at an episode", watch)]
    if others:
        found += [
            ("count what it gets among others", ["play", "--seating", ",".join([path, *others])]),
            ("let it adapt to co-players", ["adapt", path, "--against", ",".join(others)]),
        ]
    resume = ["train", about["player"], "--resume", path]
    if step >= about["steps"]:
        found.append(("train it for longer", [*resume, "--steps", str(2 * about["steps"])]))
    else:
        found.append(("go on with it if it was stopped", resume))
    return [
        {"words": words, "command": shlex.join(["coplay", *command, *own])}
        for words, command in found
    ]


def _others(config: TrainConfig | None, count: int) -> list[str]:
    """Co-players that the run's game knows, one for each other seat."""
    names = ["random"]
    if config is not None and config.game_name in GAMES:
        names = [*list(make_game_of(config).scripted)[::-1], "random"]
    return [names[index % len(names)] for index in range(count)]
