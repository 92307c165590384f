"""Packs of partners, and a player among them: tables and a picture."""

import os
from collections.abc import Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from coplay.core.reading import shown_in_line
from coplay.games.drawing import FAINT_INK, INK, seat_colour
from coplay.reports import charts
from coplay.reports.adaptation import set_name
from coplay.reports.results import console_for_tables


def print_partners(found: dict[str, Any]) -> None:
    """A row for each partner; everything that a file said is escaped."""
    table = Table(
        title=f"{_plain(found['pack'])}: {len(found['partners'])} partners for "
        f"{_plain(found['game_name'])}; {found['episodes']} episodes each among their own kind"
    )
    for title in ("number", "name", "reward", "steps in the game", "how it was made"):
        text = title in ("name", "how it was made")
        table.add_column(title, justify="left" if text else "right", overflow="fold")
    for partner in found["partners"]:
        table.add_row(
            str(partner["number"]),
            _plain(partner["name"]),
            f"{partner['reward']:.3f}",
            f"{partner['steps']:.1f}",
            _plain(how_words(partner["how"])),
        )
    console_for_tables().print(table)
    print(f"play with one: coplay play --seating {found['pack']}@partner=0,… (one entry per seat)")


def how_words(how: dict[str, Any]) -> str:
    """How a partner was made, what is 0 left out."""
    parts = []
    for name, value in how.items():
        if isinstance(value, dict):
            shares = {key: x for key, x in value.items() if _is_share(x)}
            if shares:
                parts.append(", ".join(f"{key} {x:.2f}" for key, x in shares.items()))
        elif isinstance(value, list):
            continue
        elif value:
            number = isinstance(value, float)
            parts.append(f"{name} {value:.2f}" if number else f"{name} {value}")
    return "; ".join(parts)


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) >= 0.05


def _plain(text: Any) -> str:
    return escape(shown_in_line(str(text)))


# --- a player among them -----------------------------------------------------------------------


def print_companies(found: dict[str, Any], families: Sequence[str]) -> None:
    """Over all companies and by family, then every company, the worst first."""
    summary = found["summary"]
    table = Table(
        title=f"{_plain(found['player'])} among {summary['companies']} companies of partners; "
        "0 is random play, 1 the best response"
    )
    titles = ("mean", "95 % interval", "IQM", "worst", "below 0.5", "below 0.8", "first episode")
    table.add_column("family")
    for title in ("companies", *titles):
        table.add_column(title, justify="right")
    sides = {"families it knows": "in_family", "other families": "out_of_family"}
    apart = {words: summary.get(side) for words, side in sides.items()}
    for name, row in {"all": summary["all"], **apart, **summary["by_family"]}.items():
        if row is not None:
            low, high = row["interval"]
            numbers = [f"{row['mean']:.3f}", f"{low:.3f} to {high:.3f}"]
            numbers += [f"{row[key]:.3f}" for key in ("iqm", "worst")]
            numbers += [f"{row[key]:.0%}" for key in ("below_half", "below_0.8")]
            table.add_row(
                _plain(name), str(row["companies"]), *numbers, f"{row['first_episode']:.3f}"
            )
    console = console_for_tables()
    console.print(table)
    every = Table(title="every company, the worst first")
    every.add_column("co-players", overflow="fold")
    numbers = ["score", "random", "best response", "regret", "normalised", "first episode"]
    for title in ("family", *numbers):
        every.add_column(title, justify="left" if title == "family" else "right")
    for result, family in _from_worst(found["companies"], families):
        values = [result["score"], result["random"], result["best_response"]]
        values.append(result.get("regret"))
        # Where there is nothing to gain, shares of the gain say nothing.
        shares = result["against"] not in summary["left_out"]
        values += [result["normalised"], _first_episode(result)] if shares else [None, None]
        texts = ["-" if value is None else f"{value:.3f}" for value in values]
        mark = " (met in training)" if result.get("met") else ""
        every.add_row(_plain(set_name(result["against"])) + mark, _plain(family), *texts)
    console.print(every)
    if summary["all"] and summary["all"]["above_best"]:
        print(
            f"{summary['all']['above_best']} scores are above 1.05: there the best response is a "
            "poor reference; train it longer (--best.most)"
        )
    if summary["left_out"]:
        print(
            f"{len(summary['left_out'])} of them are in no mean: there the best response gains "
            "nothing, or next to nothing, over random play"
        )
    if any(result.get("met") for result in found["companies"]):
        print("it was trained with partners marked so: what it gets among them is no adaptation")


def draw_families(path: str | os.PathLike[str], found: dict[str, Any]) -> None:
    """The families that the player knows beside the others: mean with its interval, the worst
    company, and the first episode."""
    summary = found["summary"]
    figure = charts.new_figure(8.0, 4.0, roomy=True)
    axes = figure.subplots()
    place = 0.0
    names: list[str] = []
    places: list[float] = []
    words = {"in_family": "families it knows", "out_of_family": "other families"}
    for number, (side, title) in enumerate(words.items()):
        whole = summary.get(side)
        members = summary.get("sides", {}).get(side, [])
        if whole is None:
            continue
        rows = {title: whole} | {name: summary["by_family"][name] for name in members}
        for name, row in rows.items():
            label = None if places else "mean, 95 % interval"
            colour = charts.colour(number)
            low, high = row["interval"]
            middle = row["mean"]
            reach = [[max(middle - low, 0.0)], [max(high - middle, 0.0)]]
            size = 9 if name == title else 6
            axes.errorbar(
                place, middle, reach, fmt="o", markersize=size, label=label, color=colour, capsize=4
            )
            for key, marker, said in (("worst", "v", "worst company"), ("first_episode", "o", "")):
                axes.plot(
                    place,
                    row[key],
                    marker,
                    color=colour if key == "worst" else FAINT_INK,
                    markerfacecolor="none",
                    label=None if places else said or "first episode",
                )
            places.append(place)
            names.append(f"{name}\n({row['companies']})")
            place += 1.0
        place += 0.6
    for height in (0.0, 1.0):
        axes.axhline(height, color=FAINT_INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_xticks(places, names)
    axes.set_ylabel("normalised score", fontsize=11, color=INK)
    charts.make_plain(axes, length=3)
    charts.legend_below(figure, *axes.get_legend_handles_labels())
    charts.save(figure, path)


def _first_episode(result: dict[str, Any]) -> Any:
    """The normalised reward of the first episode; None without references."""
    if result["normalised"] is None:
        return None
    return (result["curve"][0] - result["random"]) / (result["best_response"] - result["random"])


def _from_worst(
    results: Sequence[dict[str, Any]], families: Sequence[str]
) -> list[tuple[dict[str, Any], str]]:
    """Results with their families; those without a normalised score come last."""
    pairs = list(zip(results, families, strict=True))
    return sorted(
        pairs, key=lambda pair: (pair[0]["normalised"] is None, pair[0]["normalised"] or 0.0)
    )


def draw_companies(
    path: str | os.PathLike[str], found: dict[str, Any], families: Sequence[str]
) -> None:
    """A row for each company: its normalised score with its interval, and the first episode."""
    rows = [
        (result, family)
        for result, family in _from_worst(found["companies"], families)
        if result["normalised"] is not None
    ]
    figure = charts.new_figure(9.0, 1.6 + 0.28 * max(len(rows), 1), roomy=True)
    axes = figure.subplots()
    names = list(dict.fromkeys(families))
    told: set[str] = set()
    for height, (result, family) in enumerate(rows):
        colour = seat_colour(names.index(family))
        low, high = result["normalised_interval"]
        label = None if family in told else family
        told.add(family)
        axes.plot([low, high], [height, height], color=colour, linewidth=2, alpha=0.5)
        axes.plot(result["normalised"], height, "o", color=colour, label=label)
        axes.plot(
            _first_episode(result),
            height,
            "o",
            markerfacecolor="none",
            color=FAINT_INK,
            label="first episode" if height == 0 else None,
        )
    for place in (0.0, 1.0):
        axes.axvline(place, color=FAINT_INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_yticks(range(len(rows)), [set_name(result["against"]) for result, _ in rows])
    axes.set_xlabel("normalised score (0 random play, 1 best response)", fontsize=11, color=INK)
    charts.make_plain(axes, length=3)
    charts.legend_below(figure, *axes.get_legend_handles_labels())
    charts.save(figure, path)
