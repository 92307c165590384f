"""The page of a pack: who its partners are, how they differ, who answers whom, who was selected."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coplay.core.reading import shown_in_line
from coplay.games.drawing import INK
from coplay.reports import charts, page
from coplay.reports.partners import how_words

MOST_NUMBERS = 16  # with more rows or columns than this, cells are too small for words
MOST_NAMED = 16  # with more curves than this, a legend is longer than their picture is high


def write_partner_page(out: Path, found: dict[str, Any]) -> Path:
    """Write index.html and its pictures into a folder; found: as `describe_pack` gives it whole."""
    out.mkdir(parents=True, exist_ok=True)
    names = [shown_in_line(one["name"]) for one in found["partners"]]
    about = page.paragraph(
        f"{len(names)} partners for {found['game_name']}, made from seed {found['seed']}. "
        + _times(found["seconds"])
    )
    seating = f"coplay play --seating {found['pack']}@partner=0,…"
    parts = [about]
    who = [
        page.heading("Who they are"),
        page.table(
            ("number", "name", "reward", "steps in the game", "how it was made"),
            (
                (
                    str(one["number"]),
                    name,
                    f"{one['reward']:.3f}",
                    f"{one['steps']:.1f}",
                    shown_in_line(how_words(one["how"])),
                )
                for one, name in zip(found["partners"], names, strict=True)
            ),
        ),
        page.paragraph(
            f"Rewards and steps: means of {found['episodes']} episodes of each among its own kind."
        ),
        page.heading("Play with one: one entry for each seat"),
        page.command_line(seating),
    ]
    features = np.array(found["features"])
    path = out / "behaviour.png"
    values = _standard(features)
    far = max(float(np.abs(values).max()), 1.0)
    words = "standard deviations"
    _heat(path, values, names, found["feature_names"], words, "PuOr", (-far, far))
    parts += charts.shown(
        path,
        "How they differ",
        "Each row is a partner among its own kind. Colours say how far a number is above the mean "
        "of all partners (violet) or below it (orange), in standard deviations of the partners.",
    )
    if found["matrix"] is not None:
        crossed = [shown_in_line(name) for name in found["matrix"]["partners"]]
        path = out / "cross.png"
        rewards = np.array(found["matrix"]["reward"])
        _heat(path, rewards, crossed, crossed, "reward per episode")
        parts += charts.shown(
            path,
            "Who answers whom",
            "What the partner of a row gets per episode, alone among partners of a column. "
            "Planners are left out: their games take long.",
        )
    parts += _responses(out, found["responses"])
    parts += who
    parts += _diverse(found)
    parts += _selection(found["selection"])
    page.write_page(out / "index.html", f"Partners: {shown_in_line(found['pack'])}", parts)
    return out / "index.html"


def _times(seconds: dict[str, float]) -> str:
    told = ", ".join(f"{name} {spent:.0f} s" for name, spent in seconds.items())
    return f"Time: {told}." if told else ""


def _standard(values: np.ndarray) -> np.ndarray:
    """Columns in standard deviations from their mean."""
    spread = values.std(0)
    return np.asarray((values - values.mean(0)) / np.where(spread > 1e-9, spread, 1.0))


def _heat(
    path: Path,
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    words: str,
    colours: str = "cividis",
    limits: tuple[float, float] | None = None,
) -> None:
    """A picture of a matrix. words: what its numbers are. limits: of the colours, else those of the
    numbers. Numbers stand in the cells as long as there are few of them."""
    # The bar's words need a height of their own, however few rows there are.
    figure = charts.new_figure(
        3.5 + 0.44 * len(columns), max(2.0 + 0.3 * len(rows), 3.6), roomy=True
    )
    axes = figure.subplots()
    low, high = limits or (None, None)
    image = axes.imshow(values, cmap=colours, vmin=low, vmax=high, aspect="auto")
    axes.set_xticks(range(len(columns)), columns, rotation=90)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0, colors=INK, labelsize=8)
    axes.spines[:].set_visible(False)
    if max(values.shape) <= MOST_NUMBERS:
        for (row, column), value in np.ndenumerate(values):
            red, green, blue, _ = image.to_rgba(value)
            ink = "white" if 0.3 * red + 0.59 * green + 0.11 * blue < 0.5 else INK
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8, color=ink)
    bar = figure.colorbar(image, ax=axes)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=INK, labelsize=8)
    bar.set_label(words, fontsize=9, color=INK)
    charts.save(figure, path)


def _diverse(found: dict[str, Any]) -> list[str]:
    """The matrix by which the family `diverse` was trained, if it is there whole."""
    kinds = [one for one in found["partners"] if one["family"] == "diverse"]
    rows = [one["how"].get("matrix") for one in kinds]
    if not rows or not all(isinstance(row, list) for row in rows):
        return []
    return [
        page.heading("The population that was trained to differ"),
        page.paragraph(
            "Return of a seat in the company of one of a row's kind among others of a column's "
            "kind. Training makes the diagonal large and the rest small."
        ),
        page.table(
            ("", *(str(number) for number in range(len(rows[0])))),
            (
                (shown_in_line(one["name"]), *(shown_in_line(str(value)) for value in row))
                for one, row in zip(kinds, rows, strict=True)
            ),
        ),
    ]


def _responses(out: Path, responses: dict[str, Any]) -> list[str]:
    if not responses:
        return []
    figure = charts.new_figure(9.0, 4.0, roomy=True)
    axes = figure.subplots()
    rows = []
    for number, (name, one) in enumerate(responses.items()):
        evidence = one["evidence"]
        curve = [x for x in evidence.get("curve", []) if isinstance(x, int | float)]
        look: dict[str, Any] = {
            "color": charts.colour(number),
            "linewidth": 1.5,
            "label": shown_in_line(name),
        }
        axes.plot(np.linspace(0, 1, len(curve)), curve, charts.dash(number), **look)
        settled = "yes" if evidence.get("settled") else "no"
        reward = f"{one['reward']:.3f} ± {one['stderr']:.3f}"
        rows.append((shown_in_line(name), reward, shown_in_line(one["by"]), settled))
    axes.set_xlabel("share of training", color=INK)
    axes.set_ylabel("reward per episode", color=INK)
    charts.make_plain(axes)
    if len(responses) <= MOST_NAMED:
        charts.legend_beside(axes)
    path = out / "responses.png"
    charts.save(figure, path)
    return [
        *charts.shown(
            path, "Best responses", "A learning curve for each partner, of who learns to answer it."
        ),
        page.table(("partner", "reward of the best response", "found by", "settled"), rows),
    ]


def _selection(selection: dict[str, Any] | None) -> list[str]:
    if not isinstance(selection, dict) or not isinstance(selection.get("parts"), dict):
        return []
    parts = [
        page.heading("Selection"),
        page.paragraph(
            "Partners were taken in this order. The number says by what factor each leaves the "
            "determinant of the kernel of their best responses: 1 is unlike all before, 0 is like "
            "one of them."
        ),
    ]
    for name, one in selection["parts"].items():
        pairs = zip(one.get("partners", []), one.get("gains", []), strict=False)
        rows = [(shown_in_line(str(who)), shown_in_line(str(gain))) for who, gain in pairs]
        parts.append(page.table((shown_in_line(str(name)), "factor"), rows))
    return parts
