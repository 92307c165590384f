"""The page of goal codes: index.html, figures.json, probe.csv, codes.csv, pictures."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from coplay.core.errors import UserError
from coplay.core.files import write_json
from coplay.evaluation.goal_probes import by_step, fit_probe, principal, recognition, tsne
from coplay.games.drawing import FAINT_INK, INK
from coplay.reports import charts, page
from coplay.reports.inspected import SeenGoals

SHOWN = 1500  # codes in the pictures
LEAST = 50  # samples of a step below which nothing is said about it


def figures_of(seen: SeenGoals) -> dict[str, Any]:
    """What a linear probe reads from the codes, beside the filter."""
    if len(seen.kinds) < 2:
        raise UserError("goals can be told apart only among two or more kinds of co-player")
    samples, code = seen.samples, seen.found.code
    # The probe learns on every other episode and is measured on the rest.
    learn = samples.episode % 2 == 0
    probe = fit_probe(code[learn], samples.kind[learn], len(seen.kinds))
    test = ~learn
    kind, time, segment = samples.kind[test], samples.time[test], samples.segment[test]
    given = probe(code[test])
    right = given.argmax(1) == kind
    steps = int(time.max()) + 1
    counts, share = by_step(right, time, steps)
    best = best_share = None
    if seen.best is not None:
        best = seen.best.kind[test]
        best_share = by_step(best.argmax(1) == kind, time, steps)[1]
    known: dict[str, Any] = {
        name: {
            "probe": recognition(
                given[kind == index, index], segment[kind == index], time[kind == index]
            )._asdict(),
            "filter": None
            if best is None
            else recognition(
                best[kind == index, index], segment[kind == index], time[kind == index]
            )._asdict(),
        }
        for index, name in enumerate(seen.kinds)
    }
    wanted = "nh" if "nh" in seen.kinds else seen.kinds[-1]
    often = counts >= LEAST
    figures: dict[str, Any] = {
        "probe_accuracy": float(right.mean()),
        "filter_accuracy": None if best is None else float((best.argmax(1) == kind).mean()),
        "steps_to_recognise": known[wanted]["probe"]["steps"],
        "filter_steps_to_recognise": (known[wanted]["filter"] or {}).get("steps"),
        "recognised_kind": wanted,
        "largest_gap": None
        if best_share is None or not often.any()
        else float((best_share[often] - share[often]).max()),
        "recognition": known,
        "by_step": [
            {
                "step": step,
                "samples": int(counts[step]),
                "probe": float(share[step]),
                "filter": None if best_share is None else float(best_share[step]),
            }
            for step in range(steps)
            if counts[step]
        ],
    }
    return _plain(figures)


def write(out: Path, seen: SeenGoals) -> dict[str, Any]:
    """Write the folder; the figures."""
    figures = figures_of(seen)
    out.mkdir(parents=True, exist_ok=True)
    samples, code, known = seen.samples, seen.found.code, figures["recognition"]
    write_json(out / "figures.json", figures)
    charts.write_csv(
        out / "probe.csv",
        ("step", "samples", "probe", "filter"),
        ([row[k] for k in ("step", "samples", "probe", "filter")] for row in figures["by_step"]),
    )
    pick = np.random.default_rng(0).permutation(np.flatnonzero(samples.time > 0))[:SHOWN]
    pick = pick if len(pick) > 3 else np.arange(len(samples.time))
    flat, variance = principal(code)
    near = tsne(code[pick].astype(np.float64))
    charts.write_csv(
        out / "codes.csv",
        ("kind", "goal", "step", "pca_1", "pca_2", "tsne_1", "tsne_2"),
        (
            (
                *(seen.kinds[samples.kind[row]], _goal(seen, int(samples.goal[row]))),
                *(int(samples.time[row]), *flat[row], *near[index]),
            )
            for index, row in enumerate(pick)
        ),
    )
    _draw_probe(out / "probe.png", figures["by_step"], known)
    _draw_codes(out / "pca.png", seen, flat[pick], pick, "principal axis")
    _draw_codes(out / "tsne.png", seen, near, pick, "t-SNE")
    _page(out, seen, figures, variance)
    return figures


def _plain(value: Any) -> Any:
    """Figures with None for what is no number: JSON knows no NaN."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and np.isnan(value) else value


def _goal(seen: SeenGoals, goal: int) -> str:
    goals = seen.game.goals
    return "none shown" if goals is None or goal < 0 else goals.names[goal]


def _draw_probe(path: Path, rows: list[dict[str, Any]], known: dict[str, Any]) -> None:
    figure, (left, right) = charts.panels(2, height=3.8)
    drawn = [row for row in rows if row["samples"] >= LEAST]
    step = [row["step"] for row in drawn]
    left.plot(step, [row["probe"] for row in drawn], color=charts.colour(0), label="linear probe")
    if drawn and drawn[0]["filter"] is not None:
        left.plot(step, [row["filter"] for row in drawn], "--", color=charts.BEST, label="filter")
    left.set_ylim(0, 1.02)
    left.set_xlabel("step of the episode", color=INK)
    left.set_title("share of co-players whose kind is known", fontsize=11, color=INK)
    charts.legend_beside(left)
    place = np.arange(len(known))
    for index, who in enumerate(("probe", "filter")):
        found = [one[who] or {"steps": None, "share": 0} for one in known.values()]
        shade = charts.colour(0) if who == "probe" else charts.BEST
        bars = right.bar(
            # No bar for a kind that nobody of was ever known.
            place + 0.4 * index - 0.2,
            [f["steps"] or 0.0 for f in found],
            0.38,
            color=shade,
            label=who,
        )
        right.bar_label(bars, [f"{100 * f['share']:.0f} %" for f in found], fontsize=8)
    right.set_xticks(place, list(known))
    right.set_title("actions seen until P ≥ 0.9 (%: ever)", fontsize=11, color=INK)
    charts.legend_beside(right)
    charts.save(figure, path)


def _draw_codes(path: Path, seen: SeenGoals, flat: np.ndarray, rows: np.ndarray, axis: str) -> None:
    figure, axes = charts.panels(3, width=15.0, height=4.2, grid=False)
    samples = seen.samples

    def dots(one: Axes, labels: list[str], names: list[str]) -> None:
        shades = [charts.colour(names.index(label)) for label in labels]
        # In random order: those of one name would cover the others.
        order = np.random.default_rng(0).permutation(len(labels))
        one.scatter(flat[order, 0], flat[order, 1], s=6, c=[shades[k] for k in order], alpha=0.6)
        for index, name in enumerate(names):
            one.scatter([], [], s=24, color=charts.colour(index), label=name)
        charts.legend_beside(one)

    dots(axes[0], [seen.kinds[k] for k in samples.kind[rows]], list(seen.kinds))
    axes[0].set_title("co-player", fontsize=11, color=INK)
    shown = axes[1].scatter(
        flat[:, 0], flat[:, 1], c=samples.time[rows], s=6, cmap="viridis", alpha=0.7
    )
    figure.colorbar(shown, ax=axes[1], shrink=0.8)
    axes[1].set_title("step of the episode", fontsize=11, color=INK)
    goals = [_goal(seen, int(goal)) for goal in samples.goal[rows]]
    dots(axes[2], goals, sorted(set(goals)))
    axes[2].set_title("goal in hindsight", fontsize=11, color=INK)
    for one in axes:
        one.set_xlabel(f"{axis} 1", color=INK, fontsize=9)
        one.set_ylabel(f"{axis} 2", color=INK, fontsize=9)
        one.tick_params(labelsize=7, color=FAINT_INK)
    charts.save(figure, path)


def _page(out: Path, seen: SeenGoals, figures: dict[str, Any], variance: np.ndarray) -> None:
    number = charts.number
    rows = []
    for name, one in figures["recognition"].items():
        other = one["filter"] or {"steps": None, "share": None}
        rows.append(
            (
                *(name, str(one["probe"]["segments"]), number(one["probe"]["steps"])),
                *(number(one["probe"]["share"]), number(other["steps"]), number(other["share"])),
            )
        )
    words = f"A linear probe on z knows the kind of co-player in {figures['probe_accuracy']:.3f} "
    words += "of the steps"
    if figures["filter_accuracy"] is not None:
        words += (
            f"; the exact filter, which knows all policies, in {figures['filter_accuracy']:.3f}"
        )
    parts = [
        page.paragraph(words + ".", "verdict"),
        page.paragraph(
            f"{seen.title}: codes of {len(seen.samples.time)} steps of {seen.game.name} that were "
            "not learned from, inferred from the past only. The probe learns on every other "
            "episode and is measured on the rest."
        ),
        *charts.shown(
            out / "probe.png",
            "What a linear probe reads from the codes",
            "Left: by step. Right: how many actions are seen until a co-player is recognised.",
        ),
        *charts.shown(
            out / "pca.png",
            "Principal axes of the codes",
            f"The first two hold {100 * variance[:2].sum():.0f} % of the variance. First steps of "
            "episodes, of which nothing can be known, are left out.",
        ),
        *charts.shown(
            out / "tsne.png", "t-SNE of the codes", "The same codes; near ones stay near."
        ),
        page.heading("When a co-player is recognised"),
        page.table(
            ("co-player", "segments", "actions seen", "share", "filter: actions", "filter: share"),
            rows,
        ),
    ]
    parts.append(page.link_to_run(out, seen.title))
    page.write_page(out / "index.html", f"Goals: {seen.title}", parts)
