"""What a user sees of runs and matches: tables, JSON, pictures, films."""

import json
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from coplay.core.errors import UserError, WorkerFailed
from coplay.core.game import Game
from coplay.core.group import group_players
from coplay.evaluation.audits.checks import Audit
from coplay.games.adapters.worker_game import WorkerGame
from coplay.matches.match import RecordedEpisode, play_match, record_episode
from coplay.reports.curves import learning_curve
from coplay.reports.episode import frames, terminal, write_gif
from coplay.training.logs import read_rows
from coplay.training.players import make_player
from coplay.training.run import Run, RunFolder, load_run, read_json
from coplay.training.seating import split_seating
from coplay.training.trainer import Trainer, Watcher

REFERENCE_EPISODES = 4000
TEXTS = ("run", "player", "game", "seating", "state")  # columns that are not numbers


def print_json(data: Any) -> None:
    """Exactly one JSON value on standard output."""
    print(json.dumps(data))


def console_for_tables() -> Console:
    """Standard output; wide where there is no terminal whose width would count."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=140)


def print_match(record: dict[str, Any], as_json: bool) -> None:
    """What every seat got."""
    if as_json:
        print_json(record)
        return
    table = Table(title=f"{record['game']}: {record['episodes']} episodes")
    for name in ("seat", "player", "reward", "± error", "steps in game"):
        table.add_column(name, justify="left" if name == "player" else "right")
    for seat, row in enumerate(record["seats"]):
        table.add_row(
            str(seat),
            row["player"],
            f"{row['reward']:.3f}",
            f"{row['stderr']:.3f}",
            f"{row['steps']:.1f}",
        )
    table.add_row("team", "", f"{record['team_mean']:.3f}", "", "", style="bold")
    for name, score in record.get("scores", {}).items():
        table.add_row(name, "", f"{score:.3f}", "", "")
    console_for_tables().print(table)


def print_audit(audit: Audit, page: Path, as_json: bool) -> None:
    """The verdict of an audit and where its page is."""
    if as_json:
        print_json(audit.as_json() | {"page": str(page)})
        return
    console = console_for_tables()
    console.print(f"{'pass' if audit.passed else 'FAIL'}: {audit.words}", soft_wrap=True)
    console.print(f"all checks with pictures: {page}")


def print_summary(summary: dict[str, Any], as_json: bool, folder: RunFolder | None = None) -> None:
    """The result of a run beside the scripted references, and what to try next."""
    if as_json:
        print_json(summary)
        return
    print_match(summary, False)
    console = console_for_tables()
    if "iqm" in summary:
        low, high = summary["interval"]
        means = " ".join(f"{row['team_mean']:.2f}" for row in summary["seeds"])
        console.print(
            f"team mean over {len(summary['seeds'])} seeds: interquartile mean "
            f"{summary['iqm']:.3f}, 95 % interval {low:.3f} to {high:.3f} (seeds: {means})"
        )
    console.print(
        f"{summary['steps']:,} steps in {summary['seconds']:.1f} s "
        f"({summary['steps_per_second'] or 0:,.0f} steps/s) after "
        f"{summary['compile_seconds']:.1f} s of compiling"
    )
    if folder is None:
        return
    run = load_run(folder.path)
    references(console, run)
    console.print(f"\nthe run is in {folder.path}: learning_curve.png, episode.gif, metrics.jsonl")
    console.print("what to try next:")
    film = " --out film.gif" if isinstance(run.game, WorkerGame) else ""
    for text in (
        f"coplay watch {folder.path}{film}",
        f"coplay play --seating {mixed_seating(run)} --episodes 2000",
        f"tensorboard --logdir {folder.path}/tensorboard   (after pip install tensorboard)",
        f"coplay train {summary['player']} --resume {folder.path} --steps {2 * summary['steps']}",
    ):
        console.print(f"  {text}", soft_wrap=True)


def mixed_seating(run: Run) -> str:
    """The run's players in half of the seats, scripted ones in the others."""
    game = run.game
    own = -(-game.seats // 2)
    others = ["random", *game.scripted][::-1]
    names = [others[index % len(others)] for index in range(game.seats - own)]
    return ",".join([str(run.folder.path)] * own + names)


def references(console: Console, run: Run) -> None:
    """What random and scripted players get in the run's game, every seat alike."""
    game = run.game
    # Episodes in worker processes take their time.
    episodes = run.config.run.episodes if isinstance(game, WorkerGame) else REFERENCE_EPISODES
    table = Table(title=f"for comparison, the same player in every seat, {episodes} episodes")
    table.add_column("player")
    for seat in range(game.seats):
        table.add_column(f"seat {seat}", justify="right")
    table.add_column("team", justify="right")
    for name in ("random", *game.scripted):
        players = [make_player(name, game, seat) for seat in range(game.seats)]
        match = play_match(game, group_players(players), episodes)
        table.add_row(
            name, *(f"{x:.3f}" for x in match.reward.mean(0)), f"{match.reward.mean():.3f}"
        )
    console.print(table)


def after_training(folder: RunFolder, trainer: Trainer, watcher: Watcher) -> None:
    """The pictures that every finished run leaves: learning curve and, if drawable, a film."""
    rows = read_rows(folder.metrics_file)
    title = f"{trainer.config.player} on {trainer.game.name}"
    try:
        learning_curve(folder.curve_file, rows, trainer.game.seats, title)
    except UserError as error:
        watcher.say(f"no learning curve: {error}")
    try:
        write_episode(load_run(folder.path), folder.gif_file)
    except (UserError, WorkerFailed) as error:
        watcher.say(f"no film: {error}")


def one_episode(
    run: Run, seating: str, seed: int, greedy: bool
) -> tuple[Game, list[str], RecordedEpisode]:
    """An episode of a run's players, or of others in the run's game."""
    game = run.game
    entries = split_seating(seating, game) if seating else run.entries
    players = [make_player(entry, game, seat, greedy) for seat, entry in enumerate(entries)]
    return game, entries, record_episode(game, group_players(players), seed)


def write_episode(
    run: Run,
    path: Path,
    seating: str = "",
    seed: int = 0,
    greedy: bool = False,
    fps: float = 3.0,
) -> None:
    """An episode as a GIF."""
    if path.suffix.lower() != ".gif":
        raise UserError(f"--out {path}: a film is written as .gif")
    game, labels, episode = one_episode(run, seating, seed, greedy)
    pictures = frames(game, episode.states, episode.rewards, labels, actions=episode.actions)
    write_gif(path, pictures, fps)


def show_episode(run: Run, seating: str, seed: int, greedy: bool, fps: float) -> None:
    """An episode in the terminal, frame after frame; without a terminal all frames at once."""
    game, labels, episode = one_episode(run, seating, seed, greedy)
    texts = terminal(game, episode.states, episode.rewards, episode.actions, labels)
    console = Console(highlight=False)
    for text in texts:
        if console.is_terminal:
            console.clear()
        console.print(text, markup=False)
        console.print()
        if console.is_terminal:
            time.sleep(1 / fps)


def run_overview(folder: RunFolder) -> dict[str, Any]:
    """One run in a few numbers. Nothing of its game or its learner is needed, so own ones need not
    be known."""
    about = read_json(folder.config_file)
    try:
        player, game, settings = about["player"], about["game_name"], about["run"]
        seating, seeds, steps = (settings[name] for name in ("seating", "seeds", "steps"))
    except (KeyError, TypeError) as error:
        raise UserError(f"{folder.config_file} is not a run's configuration") from error
    rows = read_rows(folder.metrics_file)
    summary = folder.read_summary()
    finished = summary is not None and summary["steps"] >= steps
    last = [row for row in rows if row["step"] == rows[-1]["step"]] if rows else []
    means = [row["team_mean"] for row in last if row["team_mean"] is not None]
    mean = summary["team_mean"] if finished and summary else None
    return {
        "run": str(folder.path),
        "player": player,
        "game": game,
        "seating": seating or f"{player} in every seat",
        "seeds": seeds,
        "step": rows[-1]["step"] if rows else 0,
        "steps": steps,
        "finished": finished,
        "team_mean": mean if mean is not None else (sum(means) / len(means) if means else None),
    }


def print_runs(folder: Path, as_json: bool) -> None:
    """All runs below a folder."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    found = [RunFolder(path.parent) for path in sorted(folder.glob("**/config.json"))]
    overviews, unreadable = [], []
    for run in found:
        try:
            overviews.append(run_overview(run))
        except UserError as error:
            unreadable.append(str(error))
    if as_json:
        print_json(overviews)
        return
    table = Table(title=f"{len(overviews)} runs in {folder}")
    for name in ("run", "player", "game", "seating", "seeds", "steps", "state", "team mean"):
        table.add_column(name, overflow="fold", justify="left" if name in TEXTS else "right")
    for row in overviews:
        table.add_row(
            row["run"],
            row["player"],
            row["game"],
            row["seating"],
            str(row["seeds"]),
            f"{row['step']:,} of {row['steps']:,}",
            "finished" if row["finished"] else "can resume",
            "-" if row["team_mean"] is None else f"{row['team_mean']:.3f}",
        )
    console = console_for_tables()
    console.print(table)
    for text in unreadable:
        console.print(f"not readable: {text}", style="red")
