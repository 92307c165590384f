"""The page of an opponent model: index.html, figures.json, classes.csv, confusion.csv, pictures."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from matplotlib.ticker import MaxNLocator

from coplay.core.files import write_json
from coplay.games.drawing import INK
from coplay.matches.bayes_filter import BestTop1, best_top1
from coplay.models.opponent_model import Accuracy, accuracy
from coplay.reports import charts, page
from coplay.reports.inspected import SeenGoals

LEAST = 50  # samples below which a step's share is not drawn


def write(out: Path, seen: SeenGoals) -> dict[str, Any]:
    """Write the folder; the figures."""
    out.mkdir(parents=True, exist_ok=True)
    names = seen.game.action_names
    action = seen.samples.action[:, 0].astype(int)
    groups = {"all": np.ones(len(action), bool)} | {
        kind: seen.samples.kind == index for index, kind in enumerate(seen.kinds)
    }
    ours = {kind: _accuracy(seen.found.action, action, mask) for kind, mask in groups.items()}
    best = None
    if seen.best is not None:
        best = {kind: _best(seen.best.action, action, mask) for kind, mask in groups.items()}
    tops = None
    if seen.best is not None:
        hits = seen.best.hits()
        tops = {kind: best_top1(hits[mask]) for kind, mask in groups.items() if mask.any()}
    figures = _figures(seen, ours, best, tops)
    write_json(out / "figures.json", figures)
    charts.write_csv(
        out / "classes.csv",
        (
            "kind",
            "action",
            "count",
            "ratio",
            "predicted",
            "precision",
            "recall",
            "f1",
            "best_recall",
        ),
        (
            (
                *(kind, name, int(found.counts[k]), found.ratio[k], found.confusion[:, k].sum()),
                *(found.precision[k], found.recall[k], found.f1[k]),
                best[kind].recall[k] if best else "",
            )
            for kind, found in ours.items()
            for k, name in enumerate(names)
        ),
    )
    charts.write_csv(
        out / "confusion.csv",
        ("kind", "action", *names),
        (
            (kind, name, *found.confusion[k].astype(int))
            for kind, found in ours.items()
            for k, name in enumerate(names)
        ),
    )
    _draw_confusion(out / "confusion.png", ours, names)
    _draw_classes(out / "classes.png", ours, best, names)
    _draw_steps(out / "by_step.png", seen, action, groups)
    if len(seen.rows) > 1:
        _draw_training(out / "training.png", seen, tops)
    _page(out, seen, figures, tops)
    return figures


def _accuracy(log_probs: np.ndarray, action: np.ndarray, mask: np.ndarray) -> Accuracy:
    found = accuracy(jnp.asarray(log_probs), jnp.asarray(action), jnp.asarray(mask))
    return Accuracy(*(np.asarray(x) for x in found))  # type: ignore[arg-type]


def _best(probs: np.ndarray, action: np.ndarray, mask: np.ndarray) -> Accuracy:
    """The filter's accuracy. Its ties are exact and many: one of equally probable actions is
    sampled, so that no action is preferred for its number."""
    uniform = np.random.default_rng(0).random(probs.shape) * 1e-5
    return _accuracy(np.log(np.maximum(probs, 1e-9)) + uniform, action, mask)


def _figures(
    seen: SeenGoals,
    ours: dict[str, Accuracy],
    best: dict[str, Accuracy] | None,
    tops: dict[str, BestTop1] | None,
) -> dict[str, Any]:
    names = seen.game.action_names

    def one(kind: str) -> dict[str, Any]:
        found = ours[kind]
        figures: dict[str, Any] = {
            "samples": int(found.counts.sum()),
            "top1": float(found.top1),
            "top3": float(found.top3),
            "loss": float(found.loss),
            "bayes_top1": None,
            "bayes_interval": None,
            "best_top3": None,
            "best_loss": None,
            "share_of_bayes": None,
        }
        if best is not None and tops is not None and kind in tops:
            figures |= {
                "bayes_top1": tops[kind].expected,
                "bayes_interval": list(tops[kind].interval),
                "best_top3": float(best[kind].top3),
                "best_loss": float(best[kind].loss),
                "share_of_bayes": float(found.top1) / max(tops[kind].expected, 1e-9),
            }
        figures["classes"] = {
            name: {
                "count": int(found.counts[k]),
                "ratio": float(found.ratio[k]),
                "precision": float(found.precision[k]),
                "recall": float(found.recall[k]),
                "f1": float(found.f1[k]),
            }
            for k, name in enumerate(names)
        }
        return figures

    return one("all") | {"kinds": {kind: one(kind) for kind in seen.kinds}}


def _draw_confusion(path: Path, ours: dict[str, Accuracy], names: tuple[str, ...]) -> None:
    figure, axes = charts.panels(len(ours), width=1.2 + 3.4 * len(ours), height=4.0, grid=False)
    for one, (kind, found) in zip(axes, ours.items(), strict=True):
        confusion = np.asarray(found.confusion)
        share = confusion / np.maximum(confusion.sum(1, keepdims=True), 1)
        charts.matrix(one, share, names if one is axes[0] else [""] * len(names), names)
        one.set_title(f"{kind}: {int(found.counts.sum())} samples", fontsize=11, color=INK)
        one.set_xlabel("predicted", color=INK)
    axes[0].set_ylabel("taken", color=INK)
    charts.save(figure, path)


def _draw_classes(
    path: Path,
    ours: dict[str, Accuracy],
    best: dict[str, Accuracy] | None,
    names: tuple[str, ...],
) -> None:
    figure, axes = charts.panels(len(ours), 2, width=1.2 + 3.2 * len(ours), height=6.4)
    place = np.arange(len(names))
    for column, (kind, found) in enumerate(ours.items()):
        top, below = axes[column], axes[len(ours) + column]
        top.bar(place - 0.2, found.ratio, 0.4, color=charts.colour(0), label="taken")
        predicted = (
            np.asarray(found.confusion).mean(0) * len(names) / max(float(found.counts.sum()), 1.0)
        )
        top.bar(place + 0.2, predicted, 0.4, color=charts.colour(1), label="predicted")
        top.set_title(kind, fontsize=11, color=INK)
        below.bar(place, found.recall, 0.6, color=charts.colour(2), label="recall")
        if best is not None:
            below.plot(
                place, best[kind].recall, "_", color=charts.BEST, markersize=14, label="best"
            )
        below.set_ylim(0, 1.02)
        for one in (top, below):
            one.set_xticks(place, names, rotation=45, ha="right")
    axes[0].set_ylabel("share of the samples", color=INK)
    axes[len(ours)].set_ylabel("recall", color=INK)
    parts = [one.get_legend_handles_labels() for one in (axes[0], axes[len(ours)])]
    charts.legend_below(figure, *(above + under for above, under in zip(*parts, strict=True)))
    charts.save(figure, path)


def _draw_steps(
    path: Path, seen: SeenGoals, action: np.ndarray, groups: dict[str, np.ndarray]
) -> None:
    """Top-1 by step of the episode, beside the best possible."""
    figure, axes = charts.panels(len(groups), width=1.2 + 3.2 * len(groups), height=3.4)
    time = seen.samples.time
    right = seen.found.action.argmax(1) == action
    able = None if seen.best is None else seen.best.hits()
    for one, (kind, mask) in zip(axes, groups.items(), strict=True):
        count = np.bincount(time[mask], minlength=1)
        drawn = np.flatnonzero(count >= LEAST)
        for share, shade, label in (
            (right, charts.colour(0), "model"),
            (able, charts.BEST, "best"),
        ):
            if share is not None:
                mean = np.bincount(time[mask], weights=share[mask]) / np.maximum(count, 1)
                style = "-" if label == "model" else "--"
                one.plot(drawn, mean[drawn], style, color=shade, label=label)
        one.set_ylim(0, 1.02)
        one.set_title(kind, fontsize=11, color=INK)
        one.set_xlabel("step of the episode", color=INK)
        one.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[0].set_ylabel("top-1", color=INK)
    charts.legend_below(figure, *axes[0].get_legend_handles_labels())
    charts.save(figure, path)


def _draw_training(path: Path, seen: SeenGoals, tops: dict[str, BestTop1] | None) -> None:
    figure, (left, right) = charts.panels(2, width=13.0, height=3.8)
    epoch = [row["epoch"] for row in seen.rows]
    for index, kind in enumerate(("all", *seen.kinds)):
        name = "top1" if kind == "all" else f"top1/{kind}"
        if name in seen.rows[-1]:
            shade = charts.colour(index)
            left.plot(epoch, [row.get(name, np.nan) for row in seen.rows], color=shade, label=kind)
            if tops is not None and kind in tops:
                left.axhline(tops[kind].expected, color=shade, linestyle="--", linewidth=1)
    left.set_title("top-1 on held-out episodes (dashed: best possible)", fontsize=11, color=INK)
    left.set_ylim(0, 1.02)
    names = [n for n in seen.rows[-1] if n.endswith(("_loss", "_kl", "_reconstruction"))]
    for index, name in enumerate(names):
        values = [row.get(name, np.nan) for row in seen.rows]
        right.plot(epoch, values, charts.dash(index), color=charts.colour(index), label=name)
    right.set_yscale("log")
    right.set_title("terms of the loss", fontsize=11, color=INK)
    for one in (left, right):
        one.set_xlabel("epoch", color=INK)
        charts.legend_beside(one)
    charts.save(figure, path)


def _page(
    out: Path, seen: SeenGoals, figures: dict[str, Any], tops: dict[str, BestTop1] | None
) -> None:
    number = charts.number
    rows = [("all", figures), *figures["kinds"].items()]
    words = f"Top-1 {figures['top1']:.3f}, top-3 {figures['top3']:.3f}"
    if tops is not None:
        words += f"; {tops['all'].words(figures['top1'])}"
    titles = ("co-player", "samples", "top-1", "best top-1", "share", "top-3", "loss", "best loss")
    parts = [
        page.paragraph(words + ".", "verdict"),
        page.paragraph(
            f"{seen.title}: {figures['samples']} steps of {seen.game.name} that were not learned "
            "from, only while the co-player is in the game; its goal code comes from the past "
            "only. Best possible: the exact Bayes filter over the kinds of co-player, its expected "
            "value over what they may do."
        ),
        *charts.shown(
            out / "confusion.png",
            "Confusion",
            "Rows: actions that were taken; columns: what was predicted, as shares of the row.",
        ),
        *charts.shown(
            out / "classes.png",
            "Actions taken and predicted, and recall",
            "A model that predicts only the most frequent action shows here. Black marks: the best "
            "possible filter's recall.",
        ),
        *charts.shown(
            out / "by_step.png",
            "By step",
            "Accuracy by step. Model and filter begin without knowing the co-player.",
        ),
    ]
    if (out / "training.png").exists() and len(seen.rows) > 1:
        parts += charts.shown(out / "training.png", "Over training", "Every term by its own name.")
    parts += [
        page.heading("By co-player"),
        page.table(
            titles,
            (
                (
                    *(kind, str(f["samples"]), number(f["top1"]), number(f["bayes_top1"])),
                    *(number(f["share_of_bayes"]), number(f["top3"]), number(f["loss"])),
                    number(f["best_loss"]),
                )
                for kind, f in rows
            ),
        ),
        page.heading("By action"),
        page.table(
            ("co-player", "action", "count", "ratio", "precision", "recall", "F1"),
            (
                (
                    *(kind, name, str(one["count"]), number(one["ratio"])),
                    *(number(one[x]) for x in ("precision", "recall", "f1")),
                )
                for kind, f in rows
                for name, one in f["classes"].items()
            ),
        ),
    ]
    parts.append(page.link_to_run(out, seen.title))
    page.write_page(out / "index.html", f"Opponent model: {seen.title}", parts)
