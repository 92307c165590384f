"""What a user sees of runs and matches: tables, JSON, pictures, films."""

import json
import shlex
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from coplay.core.errors import UserError, WorkerFailed
from coplay.core.game import Game
from coplay.core.group import group_players
from coplay.core.loading import short_name
from coplay.core.player import Player
from coplay.core.reading import read_field, read_json, shown, shown_in_line
from coplay.evaluation.audits.checks import Audit
from coplay.games.adapters.trusted import naming
from coplay.games.adapters.worker_game import WorkerGame
from coplay.matches.match import RecordedEpisode, play_match, record_episode
from coplay.matches.recording import EpisodeRecord
from coplay.reports.audit_page import power_words
from coplay.reports.curves import learning_curve
from coplay.reports.episode import frames, terminal, write_gif, write_mp4
from coplay.reports.replay import Order, Replay, make_replay
from coplay.reports.run_page import write_run_page
from coplay.training.play_defaults import plays_otherwise
from coplay.training.players import make_player
from coplay.training.records import last_rows, read_rows
from coplay.training.run import Run, RunFolder, load_run
from coplay.training.seating import split_seating
from coplay.training.trainer import Watcher

REFERENCE_EPISODES = 4000
TEXTS = ("run", "player", "game", "seating", "state")  # columns that are not numbers


def print_json(data: Any) -> None:
    """Exactly one JSON value on standard output."""
    print(json.dumps(data))


class PlainConsole(Console):
    """Shows texts as they are: brackets and colons in a name are no markup, and nothing in it
    steers the terminal. stderr: write there."""

    def __init__(self, stderr: bool = False, width: int | None = None):
        super().__init__(highlight=False, markup=False, emoji=False, stderr=stderr, width=width)

    def render_str(self, text: str, **settings: Any) -> Text:
        return super().render_str(shown(text), **settings)


def console_for_tables() -> Console:
    """Standard output; wide where there is no terminal whose width would count."""
    console = PlainConsole()
    return console if console.is_terminal else PlainConsole(width=140)


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
    console = console_for_tables()
    console.print(table)
    if "policies" in record:
        exact = record["policies"]
        for seat, (worth, best) in enumerate(
            zip(exact["expected"], exact["best_response"], strict=True)
        ):
            console.print(f"seat {seat}: {worth:.3f} per round; the best answer brings {best:.3f}")
        console.print(f"exploitability of a round: {exact['exploitability']:.3f}")


def print_audit(audit: Audit, page: Path, as_json: bool) -> None:
    """The verdict of an audit and where its page is."""
    if as_json:
        print_json(audit.as_json() | {"page": str(page)})
        return
    console = console_for_tables()
    console.print(f"{'pass' if audit.passed else 'FAIL'}: {audit.words}", soft_wrap=True)
    if words := power_words(audit):
        console.print(words, soft_wrap=True)
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
    config = run.config.learner
    learner = next((one for one in run.learners if isinstance(one.config, type(config))), None)
    if other := plays_otherwise(config, None if learner is None else learner.play_defaults):
        console.print(
            f"its evaluations search as in training; its players use {', '.join(other)}",
            soft_wrap=True,
        )
    references(console, run)
    if folder.page_file.exists():
        console.print(f"\nopen {folder.page_file} in a browser: curves, metrics, a replay")
    console.print("what to try next:")
    film = own = ""
    if isinstance(run.game, WorkerGame):
        film, own = " --out film.gif", naming(run.game.source)
    elif type(run.game).text is Game.text:  # a page shows any game
        film = f" --out {folder.path}/episode.html"
    if loads := folder.loads():
        own = "".join(f" --load {shlex.quote(short_name(name))}" for name in loads)
    for text in (
        f"coplay watch {folder.path}{film}{own}",
        f"coplay play --seating {mixed_seating(run)} --episodes 2000{own}",
        f"tensorboard --logdir {folder.path}/tensorboard   (after pip install tensorboard)",
        f"coplay train {summary['player']} --resume {folder.path} --steps "
        f"{2 * summary['steps']}{own}",
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


def after_training(folder: RunFolder, watcher: Watcher) -> None:
    """What every finished run leaves to look at: learning curve, an episode, and the page."""
    rows = read_rows(folder.metrics_file)
    run = load_run(folder.path)
    title = f"{run.config.player} on {run.game.name}"
    try:
        learning_curve(folder.curve_file, rows, run.game.seats, title)
    except UserError as error:
        watcher.say(f"no learning curve: {error}")
    try:
        leave_episode(run)
    except (UserError, WorkerFailed) as error:
        watcher.say(f"no film: {error}")
    try:
        write_run_page(folder.path)
    except UserError as error:
        watcher.say(f"no page: {error}")


def leave_episode(run: Run) -> None:
    """An episode of a run's players in its folder: a replay and, if it can be drawn, a film."""
    if isinstance(run.game, WorkerGame):
        write_episode(run, run.folder.gif_file)
        return
    replay = replay_of(run, "", 1, 0, False, False, "played")
    replay.write(run.folder.replay_file)
    replay.write(run.folder.gif_file)


def one_episode(
    run: Run, seating: str, seed: int, greedy: bool
) -> tuple[Game, list[str], RecordedEpisode]:
    """An episode of a run's players, or of others in the run's game."""
    labels, players = seated(run, seating, greedy)
    return run.game, labels, record_episode(run.game, group_players(players), seed)


def seated(run: Run, seating: str, greedy: bool) -> tuple[list[str], list[Player]]:
    """Who plays in a run's game, by name: its own players unless a seating says otherwise."""
    game = run.game
    entries = split_seating(seating, game) if seating else run.entries
    players = [make_player(entry, game, seat, greedy) for seat, entry in enumerate(entries)]
    return [shown_in_line(entry) for entry in entries], players


def replay_of(
    run: Run, seating: str, episodes: int, seed: int, greedy: bool, full_trees: bool, order: Order
) -> Replay:
    """A replay of a run's players, or of others in the run's game."""
    labels, players = seated(run, seating, greedy)
    return make_replay(run.game, players, labels, episodes, seed, full_trees, order)


def write_episode(
    run: Run,
    path: Path,
    seating: str = "",
    seed: int = 0,
    greedy: bool = False,
    fps: float = 3.0,
) -> None:
    """An episode as a film, by the ending of the path: .gif or .mp4."""
    write = {".gif": write_gif, ".mp4": write_mp4}[path.suffix.lower()]
    game, labels, episode = one_episode(run, seating, seed, greedy)
    pictures = frames(game, episode.states, episode.rewards, labels, actions=episode.actions)
    write(path, pictures, fps)


def show_episode(run: Run, seating: str, seed: int, greedy: bool, fps: float) -> None:
    """An episode in the terminal."""
    game, labels, episode = one_episode(run, seating, seed, greedy)
    show_frames(game, labels, episode, fps)


def show_frames(
    game: Game, labels: list[str], episode: RecordedEpisode | EpisodeRecord, fps: float
) -> None:
    """An episode in the terminal, frame after frame; without a terminal all frames at once."""
    texts = terminal(game, episode.states, episode.rewards, episode.actions, labels)
    console = PlainConsole()
    for text in texts:
        if console.is_terminal:
            console.clear()
        console.print(text, markup=False)
        console.print()
        if console.is_terminal:
            time.sleep(1 / fps)


def run_overview(folder: RunFolder) -> dict[str, Any]:
    """One run in a few numbers. Nothing of its game or its learner is needed, so own ones need not
    be known. damaged: what is wrong with its files, else None."""
    try:
        return _overview(folder) | {"damaged": None}
    except UserError as error:
        unknown = dict.fromkeys(("player", "game", "seating", "seeds", "step", "steps"))
        state = {"finished": False, "team_mean": None, "damaged": str(error)}
        return {"run": str(folder.path)} | unknown | state


def _overview(folder: RunFolder) -> dict[str, Any]:
    where = str(folder.config_file)
    about = read_json(folder.config_file)
    player, game = (read_field(about, name, str, where) for name in ("player", "game_name"))
    settings = read_field(about, "run", dict, where)
    seating = read_field(settings, "seating", str, where)
    seeds, steps = (read_field(settings, name, int, where) for name in ("seeds", "steps"))
    last = last_rows(folder.metrics_file)
    for row in last[:1]:
        read_field(row, "step", int, str(folder.metrics_file))
    summary = folder.read_summary()
    finished = summary is not None and summary["steps"] >= steps
    means = [row["team_mean"] for row in last if isinstance(row.get("team_mean"), int | float)]
    mean = sum(means) / len(means) if means else None
    if summary is not None and finished:
        mean = summary["team_mean"]
    return {
        "run": str(folder.path),
        "player": player,
        "game": game,
        "seating": seating or f"{player} in every seat",
        "seeds": seeds,
        # Rows become rarer with time; the last one may be behind the last checkpoint.
        "step": max(last[0]["step"] if last else 0, folder.checkpoints().last_step()),
        "steps": steps,
        "finished": finished,
        "team_mean": mean,
    }


def find_runs(folder: Path) -> list[RunFolder]:
    """All runs below a folder, damaged ones too, without what is known to be something else."""
    found = [RunFolder(path.parent) for path in sorted(folder.glob("**/config.json"))]
    return [run for run in found if not _is_model(run)]


def _is_model(folder: RunFolder) -> bool:
    """Whether a folder holds a pretrained model."""
    try:
        return "part" in read_json(folder.config_file)
    except UserError:
        return False


def run_cells(row: dict[str, Any]) -> list[str]:
    """A run as a row of the table."""
    if row["damaged"]:
        return [row["run"], "", "", "", "", "", "damaged", "-"]
    return [
        row["run"],
        row["player"],
        row["game"],
        row["seating"],
        str(row["seeds"]),
        f"{row['step']:,} of {row['steps']:,}",
        "finished" if row["finished"] else "can resume",
        "-" if row["team_mean"] is None else f"{row['team_mean']:.3f}",
    ]
