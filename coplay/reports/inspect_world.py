"""The page of a world model: index.html, figures.json, planes.csv, horizon.csv, rewards.csv,
pictures."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes

from coplay.core.files import write_json
from coplay.games.drawing import FAINT_INK, INK, seat_colour
from coplay.matches.world_model_quality import (
    FAULTS,
    OpenLoopErrors,
    StepErrors,
    calibration,
    figures,
    open_loop,
    psnr,
    step_errors,
)
from coplay.models.world_model import expected_board
from coplay.reports import charts, page
from coplay.reports.inspected import SeenWorld

HORIZON, STARTS = 15, 2000
BINS, CALIBRATED = 20, 5000
PICTURES = 4  # of chosen and of the worst steps each


def write(out: Path, seen: SeenWorld) -> dict[str, Any]:
    """Write the folder; the figures."""
    out.mkdir(parents=True, exist_ok=True)
    samples, model = seen.samples, seen.model
    errors = step_errors(model, samples)
    names = seen.game.plane_names
    found: dict[str, Any] = dict(figures(errors, samples))
    found["planes"] = {
        name: {"mse": float(errors.squared[:, k].mean()), "psnr": psnr(errors.squared[:, k])}
        for k, name in enumerate(names)
    }
    found["faults"] = {name: float(errors.impossible[:, k].mean()) for k, name in enumerate(FAULTS)}
    found["samples"] = len(samples.time)
    far = open_loop(model, samples, HORIZON, STARTS)
    by_horizon = _by_horizon(far)
    found["horizon"] = by_horizon
    write_json(out / "figures.json", found)
    charts.write_csv(
        out / "planes.csv",
        ("plane", "mse", "psnr"),
        ((name, one["mse"], one["psnr"]) for name, one in found["planes"].items()),
    )
    charts.write_csv(
        out / "horizon.csv",
        ("steps", "starts", "exact", "psnr", "reward_right"),
        (
            [row[k] for k in ("steps", "starts", "exact", "psnr", "reward_right")]
            for row in by_horizon
        ),
    )
    rewards = _rewards(errors, samples)
    charts.write_csv(out / "rewards.csv", ("true", "steps", "right", "mean_predicted"), rewards)
    _draw_planes(out / "planes.png", found)
    _draw_horizon(out / "horizon.png", by_horizon)
    _draw_calibration(out / "calibration.png", seen)
    _draw_rewards(out / "rewards.png", errors, samples)
    error = errors.squared.mean(1)
    gone = np.flatnonzero(samples.terminated)
    chosen = np.unique(
        np.concatenate(
            [gone[: PICTURES // 2], np.linspace(0, len(error) - 1, PICTURES).astype(int)]
        )
    )[:PICTURES]
    worst = np.argsort(-error, kind="stable")[:PICTURES]
    _draw_steps(out / "chosen.png", seen, errors, chosen)
    _draw_steps(out / "worst.png", seen, errors, worst)
    if len(seen.rows) > 1:
        _draw_training(out / "training.png", seen.rows)
    _page(out, seen, found)
    return found


def _by_horizon(far: OpenLoopErrors) -> list[dict[str, Any]]:
    rows = []
    for step in range(far.alive.shape[1]):
        there = far.alive[:, step]
        if there.sum() >= 20:
            rows.append(
                {
                    "steps": step + 1,
                    "starts": int(there.sum()),
                    "exact": float(far.exact[there, step].mean()),
                    "psnr": psnr(far.squared[there, step]),
                    "reward_right": float((far.reward_error[there, step] <= 0.01).mean()),
                }
            )
    return rows


def _rewards(errors: StepErrors, samples: Any) -> list[tuple]:
    true = np.round(samples.reward, 3)
    return [
        (
            float(value),
            int((true == value).sum()),
            float((errors.reward_error[true == value] <= 0.01).mean()),
            float(errors.reward[true == value].mean()),
        )
        for value in np.unique(true)
    ]


def _draw_planes(path: Path, found: dict[str, Any]) -> None:
    figure, (left, right) = charts.panels(2)
    names = list(found["planes"])
    left.bar(names, [max(one["mse"], 1e-10) for one in found["planes"].values()], color="#3b6fb6")
    left.set_yscale("log")
    left.set_title("mean squared error of each plane", fontsize=11, color=INK)
    left.tick_params(axis="x", rotation=45)
    shares = [100 * value for value in found["faults"].values()]
    right.bar(list(found["faults"]), shares, color="#b3476b")
    right.axhline(0.1, color=FAINT_INK, linestyle="--")
    right.set_ylim(0, max(0.2, 1.1 * max(shares)))
    right.set_title("impossible predictions, % of steps (dashed: aim)", fontsize=11, color=INK)
    right.tick_params(axis="x", rotation=45)
    charts.save(figure, path)


def _draw_horizon(path: Path, rows: list[dict[str, Any]]) -> None:
    figure, axes = charts.panels(3, width=11.0)
    steps = [row["steps"] for row in rows]
    for one, name, title in zip(
        axes,
        ("exact", "psnr", "reward_right"),
        ("board exactly right", "PSNR, dB", "reward right"),
        strict=True,
    ):
        one.plot(steps, [row[name] for row in rows], "o-", markersize=3, color=charts.colour(0))
        one.set_title(title, fontsize=11, color=INK)
        one.set_xlabel("imagined steps", color=INK)
        if name != "psnr":
            one.set_ylim(min([0.9, *(row[name] for row in rows)]) - 0.01, 1.005)
    charts.save(figure, path)


def _draw_calibration(path: Path, seen: SeenWorld) -> None:
    counts, predicted, observed = calibration(seen.model, seen.samples, BINS, CALIBRATED)
    figure, (left, right) = charts.panels(2)
    there = counts > 0
    left.plot([0, 1], [0, 1], color=FAINT_INK, linewidth=1)
    left.scatter(predicted[there], observed[there], s=20, color=charts.colour(0))
    left.set_xlabel("predicted probability", color=INK)
    left.set_ylabel("observed share", color=INK)
    left.set_title("calibration of moves and things", fontsize=11, color=INK)
    right.bar((np.arange(BINS) + 0.5) / BINS, np.maximum(counts, 0.5), 0.9 / BINS)
    right.set_yscale("log")
    right.set_xlabel("predicted probability", color=INK)
    right.set_title("how often", fontsize=11, color=INK)
    charts.save(figure, path)


def _draw_rewards(path: Path, errors: StepErrors, samples: Any) -> None:
    figure, (left, right) = charts.panels(2)
    spread = np.random.default_rng(0).normal(scale=0.03, size=(2, len(samples.reward)))
    ends = [samples.reward.min(), samples.reward.max()]
    left.plot(ends, ends, color=FAINT_INK, linewidth=1)
    left.scatter(samples.reward + spread[0], errors.reward + spread[1], s=4, alpha=0.3)
    left.set_xlabel("true reward", color=INK)
    left.set_ylabel("predicted", color=INK)
    left.set_title("rewards (points spread a little)", fontsize=11, color=INK)
    right.hist(errors.reward_error, bins=40, color=charts.colour(0))
    right.set_yscale("log")
    right.set_xlabel("error of the reward", color=INK)
    right.set_title("how often", fontsize=11, color=INK)
    charts.save(figure, path)


def _draw_training(path: Path, rows: list[dict[str, Any]]) -> None:
    figure, axes = charts.panels(3, width=15.0)
    epoch = [row["epoch"] for row in rows]
    wrong = [max(1 - row["exact"], 1e-5) for row in rows]
    axes[0].plot(epoch, wrong, color=charts.colour(0), label="board not exact")
    axes[0].plot(
        epoch,
        [max(row["impossible"], 1e-5) for row in rows],
        charts.dash(1),
        color=charts.colour(4),
        label="impossible",
    )
    axes[0].plot(
        epoch,
        [max(1 - row["reward_right"], 1e-5) for row in rows],
        charts.dash(2),
        color=charts.colour(1),
        label="reward wrong",
    )
    axes[0].set_yscale("log")
    axes[0].set_title("shares of held-out steps", fontsize=11, color=INK)
    axes[1].plot(epoch, [row["psnr"] for row in rows], color=charts.colour(0), label="PSNR, dB")
    axes[1].axhline(40, color=FAINT_INK, linestyle="--")
    axes[1].set_title("raw probabilities (dashed: aim)", fontsize=11, color=INK)
    for index, name in enumerate(n for n in rows[-1] if n.startswith("world_")):
        values = [row.get(name, np.nan) for row in rows]
        axes[2].plot(epoch, values, charts.dash(index), color=charts.colour(index), label=name)
    axes[2].set_yscale("log")
    axes[2].set_title("terms of the loss", fontsize=11, color=INK)
    for one in axes:
        one.set_xlabel("epoch", color=INK)
        charts.legend_beside(one)
    charts.save(figure, path)


# --- boards --------------------------------------------------------------------------------------


def _draw_steps(path: Path, seen: SeenWorld, errors: StepErrors, rows: np.ndarray) -> None:
    """Board, true next board, raw probabilities, error: a line of four for each step."""
    samples, names = seen.samples, seen.game.plane_names
    now = jnp.asarray(samples.planes[rows], jnp.float32)
    beliefs = seen.model(now, jnp.asarray(samples.action[rows]))
    raw = np.asarray(expected_board(now, beliefs))
    colours = _plane_colours(seen)
    figure, axes = charts.panels(4, len(rows), width=11.0, height=2.9 * len(rows), grid=False)
    actions = seen.game.action_names
    for line, row in enumerate(rows):
        true = samples.next_planes[row].astype(float)
        four = (samples.planes[row].astype(float), true, raw[line], np.abs(raw[line] - true))
        done = ", ".join(
            actions[a] if there else "-"
            for a, there in zip(samples.action[row], samples.others[row], strict=True)
        )
        titles = (
            f"step {samples.time[row]}: {done}",
            f"next (reward {samples.reward[row]:.3g})",
            f"predicted, raw (reward {errors.reward[row]:.3g})",
            f"error (MSE {errors.squared[row].mean():.1e})",
        )
        for one, planes, title in zip(axes[4 * line :], four, titles, strict=False):
            _board(one, planes, samples.planes[row][..., seen.game.seats], colours, seen.game.seats)
            one.set_title(title, fontsize=8, color=INK)
    handles = [
        axes[0].scatter([], [], s=40, color=shade, marker="s" if k >= seen.game.seats else "o")
        for k, shade in enumerate(colours)
    ]
    figure.legend(
        handles, names, loc="outside lower center", ncols=len(names), frameon=False, fontsize=8
    )
    charts.save(figure, path)


def _plane_colours(seen: SeenWorld) -> list[str]:
    seats = seen.game.seats
    rest = ("#3A404C", "#8a5a2b", "#F2A7A0", "#5aa0c8", "#8d5bb0")
    return [
        *(str(seat_colour(seat)) for seat in range(seats)),
        *(rest[k % len(rest)] for k in range(seen.samples.planes.shape[-1] - seats)),
    ]


def _board(
    axes: Axes, planes: np.ndarray, walls: np.ndarray, colours: list[str], seats: int
) -> None:
    """Every plane has its place within a cell; how dark its mark is shows the value as it is."""
    height, width, count = planes.shape
    side = int(np.ceil(np.sqrt(count)))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.set_aspect("equal")
    axes.set_xticks(range(width + 1), [""] * (width + 1))
    axes.set_yticks(range(height + 1), [""] * (height + 1))
    axes.grid(visible=True, color="#DDD9CF")
    axes.imshow(walls.astype(float), extent=(0, width, height, 0), cmap="Greys", vmin=0, vmax=4)
    size = (170 / max(height, width) / side) ** 2 * 0.35
    for k in range(count):
        row, column = np.nonzero(planes[..., k] > 0.004)
        if not len(row):
            continue
        x = column + (k % side + 0.5) / side
        y = row + (k // side + 0.5) / side
        values = np.clip(planes[row, column, k], 0, 1)
        marker = "o" if k < seats else "s"
        axes.scatter(x, y, s=size, color=colours[k], alpha=values, marker=marker, linewidths=0)


# --- the page ------------------------------------------------------------------------------------


def _page(out: Path, seen: SeenWorld, found: dict[str, Any]) -> None:
    number = charts.number
    aims = (
        ("board exactly right", "exact", "at least 0.995", found["exact"] >= 0.995),
        ("PSNR of raw probabilities, dB", "psnr", "at least 40", found["psnr"] >= 40),
        ("board MSE", "board_mse", "", None),
        ("reward within 0.01", "reward_right", "at least 0.999", found["reward_right"] >= 0.999),
        ("reward MSE", "reward_mse", "at most 0.001", found["reward_mse"] <= 1e-3),
        ("leaving right", "leaves_right", "", None),
        ("legal actions right", "legal_right", "", None),
        ("impossible", "impossible", "at most 0.001", found["impossible"] <= 1e-3),
    )
    verdicts = {None: "", True: "passed", False: "FAILED"}
    missed = [title for title, _, _, good in aims if good is False]
    words = f"It misses these aims: {', '.join(missed)}." if missed else "It reaches all aims."
    parts = [
        page.paragraph(words, f"verdict {'fail' if missed else 'pass'}"),
        page.paragraph(
            f"{seen.title}: {found['samples']} steps of {seen.game.name} that were not learned "
            "from, while the ego player is in the game."
        ),
        *charts.shown(
            out / "planes.png",
            "Planes and impossible predictions",
            "Jumped: a player is more than one cell from where it was, or in a wall. Vanished: it "
            "is gone although nothing was taken from its cell.",
        ),
        *charts.shown(
            out / "horizon.png",
            "Open-loop imagination",
            "Each prediction is made from the one before, from a real board on, with the actions "
            "that were taken.",
        ),
        *charts.shown(
            out / "calibration.png",
            "Calibration",
            "How often predictions of a given probability came true.",
        ),
        *charts.shown(out / "rewards.png", "Rewards", "True rewards and predicted ones."),
        *charts.shown(
            out / "chosen.png",
            "Chosen steps",
            "Board with the actions (ego first), true next board, predicted next board as raw "
            "probabilities (faint marks are small ones), and error.",
        ),
        *charts.shown(out / "worst.png", "The worst steps", "Those of the largest error."),
    ]
    if len(seen.rows) > 1:
        parts += charts.shown(out / "training.png", "Over training", "On held-out episodes.")
    parts += [
        page.heading("Figures"),
        page.table(
            ("", "figure", "aim", ""),
            ((title, number(found[name]), aim, verdicts[good]) for title, name, aim, good in aims),
        ),
    ]
    parts.append(page.link_to_run(out, seen.title))
    page.write_page(out / "index.html", f"World model: {seen.title}", parts)
