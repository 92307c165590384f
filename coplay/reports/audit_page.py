"""What an audit leaves in its folder: audit.json, index.html, and its pictures."""

from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from coplay.core.config import leaves
from coplay.core.files import write_json
from coplay.evaluation.audits.checks import Audit, Check
from coplay.games.drawing import FAINT_INK, INK, seat_colour
from coplay.reports import charts, page
from coplay.reports.run_data import changed_fields
from coplay.training.config import TrainConfig


def write_audit(out: Path, audit: Audit, config: TrainConfig, title: str = "Seat audit") -> Path:
    """Writes everything and returns the page. config: what was audited."""
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "audit.json", audit.as_json())
    parts = [page.paragraph(audit.words, f"verdict {'pass' if audit.passed else 'fail'}")]
    if words := power_words(audit):
        parts.append(page.paragraph(words))
    for name, heading, words, draw in PICTURES:
        checks = [check for check in audit.checks if check.figures.get(name, {}) != {}]
        if checks:
            path = out / f"{heading.split(':')[0].lower().replace(' ', '_')}.png"
            charts.save(draw(checks), path)
            parts += charts.shown(path, heading, words)
    parts += [
        page.heading("Checks"),
        page.table(
            ("", "stage", "check", "what was found"),
            (
                ("passed" if check.passed else "FAILED", check.stage, check.name, check.detail)
                for check in audit.checks
            ),
        ),
    ]
    changed = changed_fields(config)
    if not any(_trains(check) for check in audit.checks):
        # Without training runs, what they would have been says nothing.
        runs = {leaf.path for leaf in leaves(config.run)} - {"seed"}
        changed = [one for one in changed if one["path"] not in runs]
    if changed:
        rows = ((one["path"], str(one["value"]), str(one["default"])) for one in changed)
        parts.append(page.heading("Configuration that differs from the defaults"))
        parts.append(page.table(("field", "value", "default"), rows))
    path = out / "index.html"
    page.write_page(path, f"{title}: {audit.subject}", parts)
    return path


def power_words(audit: Audit) -> str:
    """What an audit that passed could have found, and what it was not asked; empty: nothing that is
    not clear from its checks."""
    if not audit.passed:
        return ""
    words = []
    if found := [x.figures["detectable"] for x in audit.checks if "detectable" in x.figures]:
        words.append(
            f"What it could have found: a seat's advantage of {100 * max(found):.1f} % or more "
            "would almost certainly have shown. More episodes find smaller ones."
        )
        if not any(_trains(check) for check in audit.checks):
            words.append("No training runs were compared: what only learning shows was not asked.")
    if "loss" in audit.stages and any(INFLUENCES & check.figures.keys() for check in audit.checks):
        words.append(
            "What it could have found: a part without any effect, within a few updates. Whether a "
            "part acts as it should was not asked."
        )
        if not any(check.stage == "configuration" for check in audit.checks):
            words.append("Fields of the configuration were not tried.")
    return " ".join(words)


def _trains(check: Check) -> bool:
    """Whether a check of the seats compares training runs."""
    return bool({"one_learner", "self_play"} & check.figures.keys())


def draw_worth(checks: list[Check]) -> Figure:
    """Every seat's advantage over the team, with its 95 % interval, one panel per player."""
    figure, panels = charts.panels(len(checks))
    for axes, check in zip(panels, checks, strict=True):
        found = check.figures
        mean, low, high = (np.array(found[name]) for name in ("mean", "low", "high"))
        size = np.abs(mean).mean() or 1.0
        team = mean.mean()
        for seat in range(len(mean)):
            middle = 100 * (mean[seat] - team) / size
            reach = 100 * (high[seat] - low[seat]) / 2 / size
            axes.errorbar(seat, middle, reach, fmt="o", color=seat_colour(seat), capsize=4)
        axes.axhline(0, color=FAINT_INK, linewidth=1)
        widest = 100 * found["detectable"]
        for edge in (-widest, widest):
            axes.axhline(edge, color=FAINT_INK, linewidth=1, linestyle=(0, (5, 3)))
        axes.set_xticks(range(len(mean)), [f"seat {seat}" for seat in range(len(mean))])
        axes.set_title(f"{found['player']}: {team:.3g} per episode", fontsize=11, color=INK)
    panels[0].set_ylabel("difference from the team, %", color=INK)
    return figure


def draw_differences(checks: list[Check]) -> Figure:
    """The largest difference of every exact check beside what is allowed, on a logarithmic axis."""
    figure, (axes,) = charts.panels(1, height=0.9 + 0.45 * len(checks), grid=False)
    floor = 1e-9
    for row, check in enumerate(reversed(checks)):
        found = max(check.figures["difference"], floor)
        colour = seat_colour(0) if check.passed else "#b3261e"
        axes.barh(row, np.log10(found / floor), left=np.log10(floor), height=0.5, color=colour)
        allowed = np.log10(check.figures["allowed"])
        axes.plot([allowed, allowed], [row - 0.35, row + 0.35], color=INK, linewidth=2)
        if check.figures["difference"] == 0:
            axes.annotate("bit for bit", (np.log10(floor) + 0.1, row), va="center", fontsize=9)
    axes.set_yticks(range(len(checks)), [check.name for check in reversed(checks)])
    axes.set_xlim(np.log10(floor), 1)
    axes.set_xlabel("largest relative difference, power of ten (black: allowed)", color=INK)
    return figure


def draw_influence(checks: list[Check]) -> Figure:
    """Who learns from whom."""
    influence = np.array(checks[0].figures["influence"])
    figure, (axes,) = charts.panels(1, width=5.0, height=4.0)
    axes.grid(visible=False)
    shown = axes.imshow(np.minimum(influence, 1.0), cmap="Blues", vmin=0, vmax=1)
    for (i, j), value in np.ndenumerate(influence):
        colour = "white" if value > 0.6 else INK
        axes.annotate(f"{value:.2g}", (j, i), ha="center", va="center", color=colour)
    seats = range(len(influence))
    axes.set_xticks(seats, [f"seat {seat}" for seat in seats])
    axes.set_yticks(seats, [f"seat {seat}" for seat in seats])
    axes.set_xlabel("whose rewards are changed", color=INK)
    axes.set_ylabel("whose learning changes", color=INK)
    bar = figure.colorbar(shown, ax=axes, shrink=0.8)
    bar.outline.set_visible(False)
    return figure


def draw_effects(kind: str, words: str, checks: list[Check]) -> Figure:
    """How much every part that was changed changes, on a logarithmic axis. words: of the axis."""
    effects = checks[0].figures[kind]
    declared = checks[0].figures.get("declared", list(effects))
    figure, (axes,) = charts.panels(1, height=0.9 + 0.35 * max(len(effects), 1), grid=False)
    acting = [size for size in effects.values() if size > 0]
    left = 10 ** np.floor(np.log10(min(acting, default=1.0)) - 1)
    for row, (name, size) in enumerate(reversed(effects.items())):
        if size > 0:
            axes.barh(row, size - left, left=left, height=0.5, color=seat_colour(0))
        said = f" {size:.2g}" if size > 0 else " none"
        said += "" if name in declared else " (not declared)"
        axes.annotate(said, (max(size, left), row), va="center", fontsize=9, color=INK)
    axes.set_yticks(range(len(effects)), [name.strip(".") for name in reversed(effects)])
    axes.set_ylim(-0.6, len(effects) - 0.4)
    axes.set_xscale("log")
    axes.set_xlim(left, 8 * max(acting, default=1.0))
    axes.set_xlabel(words, color=INK)
    return figure


def draw_curves(name: str, checks: list[Check]) -> Figure:
    """Curves of every seat: mean over seeds, and the range between the seeds."""
    figure, panels = charts.panels(len(checks), width=4.0 + 2.6 * len(checks))
    for axes, check in zip(panels, checks, strict=True):
        curves = np.array(check.figures[name])  # [seat, seed, window]
        window = np.arange(1, curves.shape[-1] + 1)
        for seat, of_seat in enumerate(curves):
            colour = seat_colour(seat)
            axes.fill_between(window, of_seat.min(0), of_seat.max(0), color=colour, alpha=0.12)
            mean, dash = of_seat.mean(0), charts.dash(seat)
            axes.plot(window, mean, dash, color=colour, label=f"seat {seat}")
        axes.set_title(check.figures["metric"].replace("_", " "), fontsize=11, color=INK)
        axes.set_xticks(window)
        axes.set_xlabel(f"part of the run (of {curves.shape[-1]})", color=INK)
    charts.legend_below(figure, *panels[0].get_legend_handles_labels())
    return figure


INFLUENCES = {"inputs", "data", "coefficients"}
"""Figures of checks that ask whether a part acts."""
PICTURES = (
    (
        "player",
        "Worth of the seats: the same player in all of them",
        "Points: how far each seat's reward per episode is from the mean of all seats, with a 95 % "
        "interval. Dashed: the smallest advantage that the test finds almost certainly.",
        draw_worth,
    ),
    (
        "difference",
        "Exact comparisons: everyone moved to another seat",
        "How far what is computed in the new seats lies from what was computed in the old ones.",
        draw_differences,
    ),
    (
        "influence",
        "Influence: who learns from whom",
        "How much a seat's learning changes when the rewards of a seat change, relative to "
        "all it learns. Separate players: only the diagonal. Shared parameters: everywhere.",
        draw_influence,
    ),
    (
        "inputs",
        "Inputs: what a player is given",
        "How far what the players do changes if a seat is given what another game copy shows; "
        "identity: between seats that are given the very same. What a learner does not declare may "
        "be without effect.",
        partial(draw_effects, "inputs", "largest change of a log-probability"),
    ),
    (
        "data",
        "Data: what a learner is given",
        "How far what is learned changes if this part of the data is another game copy's.",
        partial(draw_effects, "data", "largest change of a parameter"),
    ),
    (
        "coefficients",
        "Coefficients: parts of the loss",
        "How far what is learned changes if a coefficient is halved.",
        partial(draw_effects, "coefficients", "largest change of a parameter"),
    ),
    (
        "one_learner",
        "Moved learner: one learner in every seat",
        "Lines: means over the seeds. Bands: from the lowest to the highest seed.",
        partial(draw_curves, "one_learner"),
    ),
    (
        "self_play",
        "Self-play: the learner in all seats",
        "Lines: means over the seeds. Bands: from the lowest to the highest seed.",
        partial(draw_curves, "self_play"),
    ),
)
"""(figure a check must have, title, words below, how to draw)."""
