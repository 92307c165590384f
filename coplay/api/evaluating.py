"""Evaluations from Python: adaptation, comparison, audits."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coplay.algorithms.registry import entry_of, learner_parts
from coplay.api.arguments import (
    Entry,
    game_and_config,
    game_fields_of,
    seating_text,
    share_fields,
    watching,
)
from coplay.core.config import PositiveFloat, PositiveInt, checked, with_fields
from coplay.core.errors import UserError, see
from coplay.core.files import new_folder, write_json
from coplay.core.game import Game
from coplay.evaluation.adaptation.best_response import BestResponseConfig
from coplay.evaluation.adaptation.companies import (
    companies,
    known_to,
    summarise_companies,
    were_met,
)
from coplay.evaluation.adaptation.meetings import KeptResults, Request, meet_all
from coplay.evaluation.adaptation.protocol import AdaptConfig, make_meeting, split_against
from coplay.evaluation.adaptation.suites import suite_sets, suite_side
from coplay.evaluation.audits.checks import Audit
from coplay.evaluation.audits.seats import audit_seats as audit_seats_of
from coplay.evaluation.audits.wiring import audit_wiring as audit_wiring_of
from coplay.evaluation.compare import load_runs
from coplay.games.registry import game_parts
from coplay.reports.adaptation import draw_adaptation, draw_suite
from coplay.reports.adaptation_page import write_adaptation_page
from coplay.reports.audit_page import write_audit
from coplay.reports.compare import write_comparison
from coplay.reports.partners import draw_companies, draw_families
from coplay.sweeps.adapt_parts import meet_in_parts
from coplay.sweeps.config import SweepConfig
from coplay.sweeps.jobs import ADAPTED_FILE
from coplay.training.config import RunConfig, TrainConfig
from coplay.training.partner_packs import read_pack
from coplay.training.run import RunFolder, make_game_of
from coplay.training.seating import is_run
from coplay.training.trainer import Watcher

REFERENCES = Path("runs/best-responses")
"""Where best responses are kept, for all who ask for them."""


# --- adaptation --------------------------------------------------------------------------------


def adapt(
    player: Entry,
    against: str | Sequence[Entry] = "",
    *,
    suite: str = "",
    partners: str | Path = "",
    mixed: int = 0,
    learners: str = "ppo",
    side: str = "",
    game: str | Game | None = None,
    game_fields: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    references: str | Path = REFERENCES,
    normalise: bool = True,
    on: str = "",
    quiet: bool = False,
    watcher: Watcher | None = None,
    **fields: Any,
) -> Any:
    """Let a player adapt to co-players it does not know; the result is what `coplay adapt --json`
    prints: of a suite, a list; of a pack, a summary with the list of its companies.

    player: the focal player. against: its co-players, one per other seat; or suite: a suite of sets
        of them by name, in which `learners` says what the learning ones are; or partners: the
        folder of a pack, or several with commas between them, each of whose partners takes all
        other seats, and so many `mixed` companies besides.
    side: on which the focal player is in a game with sides. It takes all seats of that side, and
        `against` names the other side; or one seat in turn if its companions are named first.
    game: default: the game of the run, else stag-hunt.
    out: folder of the results; default: a new one below runs/.
    references: where best responses are kept. normalise: measure scores by random play and by the
        best response. on: where several sets are played at a time: local:K, ray or ray:ADDRESS.
    fields: of the protocol (`steps`, `seeds`, …) and of the training of best responses
        (`best={"stage": …}`), as in `coplay adapt --help`.

        coplay.adapt("runs/hop", ["nh", MyPlayer(), "random"], steps=2400)
    """
    focal = entry_of(player)
    from_file = game is None
    if game is None:
        game, own = game_of_entry(focal)
        if own is not None and not game_fields:
            game = game_parts(game)[1](own)
    rest, of_game = game_fields_of(fields, game_fields)
    name, game_config = game_and_config(game, of_game, from_file)
    best = with_fields(BestResponseConfig(), _part(rest, "best"), "best")
    (config,) = share_fields(rest, AdaptConfig())
    request = make_request(
        focal,
        seating_text(against),
        suite,
        str(partners),
        mixed,
        learners,
        name,
        game_config,
        config,
        normalise,
        best,
        side,
    )
    folder = Path(out) if out is not None else new_folder("adapt", focal.split("/")[-1])
    with watching(watcher, quiet) as told:
        return run_adaptation(request, folder, Path(references), told, on)


def _part(fields: dict[str, Any], name: str) -> dict[str, Any]:
    """Take out of the fields those of a part: `name={…}` and `name.FIELD`."""
    inside = dict(fields.pop(name, {}))
    for path in [path for path in fields if path.startswith(f"{name}.")]:
        inside[path.removeprefix(f"{name}.")] = fields.pop(path)
    return inside


def game_of_entry(entry: str) -> tuple[str, Any]:
    """The game of a run that an entry names, and its configuration; else stag-hunt and None."""
    if not is_run(entry):
        return "stag-hunt", None
    config = RunFolder(Path(entry.split("@")[0])).read_config()
    return config.game_name, config.game


def make_request(
    focal: str,
    against: str,
    suite: str,
    partners: str,
    mixed: int,
    learners: str,
    game_name: str,
    game: Any,
    config: AdaptConfig,
    normalise: bool,
    best: BestResponseConfig,
    side: str = "",
) -> Request:
    """What is asked for: against one set of co-players, a suite, or the partners of a pack."""
    if sum(map(bool, (against, suite, partners))) != 1:
        raise UserError(
            "say who the co-players are: one of --against A,B,C, --suite NAME and --partners PACK"
            + see("how-to/adapt")
        )
    made = game_parts(game_name)[1](game)
    families: tuple[str, ...] = ()
    if mixed < 0 or (mixed and not partners):
        raise UserError(
            "mixed companies are drawn from a pack: give --partners PACK, and 0 or more"
        )
    if partners:
        found: dict[str, str] = {}
        for path in partners.split(","):
            found |= companies(read_pack(Path(path.strip())), made, mixed)
        sets, families = tuple(found), tuple(found.values())
    elif suite:
        sets = tuple(suite_sets(suite, made, learners))
        side = suite_side(suite, side)
    else:
        sets = (",".join(split_against(against, made, side)),)
    return Request(
        focal, sets, game_name, game, config, normalise, best, bool(suite), families, side
    )


def run_adaptation(
    request: Request, out: Path, references: Path, watcher: Watcher, on: str = ""
) -> Any:
    """Play, keep and draw: the result; of a suite the list of results against its sets, of a pack
    a summary with that list. on: where several sets are played at a time."""

    def finished(kept: KeptResults, result: dict[str, Any]) -> None:
        draw_adaptation(kept.path(result["against"], "png"), result)

    if on:
        meet_in_parts(request, out, references, SweepConfig(on=on), watcher.say)
    game = game_parts(request.game_name)[1](request.game)
    results = meet_all(request, game, out, references, watcher, finished)
    found: Any = results if request.suite else results[0]
    if request.families:
        known = known_to(request.focal)
        met = were_met(request.sets, known)
        results = [result | {"met": one} for result, one in zip(results, met, strict=True)]
        summary = summarise_companies(results, request.families, known=known)
        found = {"player": request.focal, "summary": summary, "companies": results}
        draw_companies(out / "partners.png", found, request.families)
        draw_families(out / "families.png", found)
    write_json(out / "adapt.json", found)
    if request.suite:
        draw_suite(out / "suite.png", results)
    # Pictures of a pack show normalised scores alone.
    measured = not request.families or any(one["normalised"] is not None for one in results)
    write_adaptation_page(out, results, _pictures(out, request) if measured else [])
    return found


def check_adapts(config: TrainConfig, against: str) -> None:
    """An error if players of such a run could not adapt to these co-players."""
    game = make_game_of(config)
    make_meeting("random", split_against(against, game), game, AdaptConfig())


def adapt_seeds(folder: RunFolder, against: str, watcher: Watcher) -> None:
    """Let the player of every seed of a finished run adapt to co-players; their normalised scores
    come into `adapted.json` of its folder, all else below `adapted/`."""
    config, summary = folder.read_config(), folder.read_summary() or {}
    scores = []
    for one in summary.get("seeds", [{"seed": config.run.seed}]):
        focal = f"{folder.path}@seed={one['seed']}"
        given = (focal, against, "", "", 0, "ppo", config.game_name, config.game)
        request = make_request(*given, AdaptConfig(), True, BestResponseConfig())
        out = folder.path / "adapted" / f"seed-{one['seed']}"
        found = run_adaptation(request, out, REFERENCES, watcher)
        if found["normalised"] is None:
            raise UserError(
                f"--adapts {against}: there is no best response to them that is better than random "
                "play, so scores cannot be normalised"
            )
        scores.append(found["normalised"])
    write_json(folder.path / ADAPTED_FILE, {"against": against, "scores": scores})


def _pictures(out: Path, request: Request) -> list[tuple[Path, str, str]]:
    """The pictures of an adaptation: file, title, what it shows."""
    if request.families:
        return [
            (out / "families.png", "Families", "Families of partners that it knows, and others."),
            (out / "partners.png", "Companies", "From the worst to the best, with intervals."),
        ]
    if request.suite:
        return [(out / "suite.png", "Reward by episode", "A panel for each set of co-players.")]
    path = KeptResults(out, request).path(request.sets[0], "png")
    words = "With a 95 % interval; below it how well a player that predicts others does so."
    return [(path, "Reward by episode", words)]


# --- comparison --------------------------------------------------------------------------------


def compare(runs: Sequence[str | Path], out: str | Path = "compare") -> dict[str, Any]:
    """Compare finished runs; the result is what `coplay compare --json` prints.

    out: folder for the pictures and the JSON files.

        coplay.compare(["runs/ppo", "runs/mappo"])
    """
    return write_comparison(Path(out), load_runs([Path(run) for run in runs]))


# --- audits ------------------------------------------------------------------------------------


def audit_seats(
    player: str = "ppo",
    game: str | Game = "stag-hunt",
    out: str | Path | None = None,
    *,
    among: Entry = "",
    advantage: float = 0.02,
    episodes: int = 2_000_000,
    keep_going: bool = False,
    training: bool = True,
    game_fields: Mapping[str, Any] | None = None,
    quiet: bool = False,
    watcher: Watcher | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Is every seat treated alike, by the game and by the learner? The result is what
    `coplay audit seats --json` prints.

    among: the player of the other seats while one learner moves through all of them.
    advantage: smallest advantage of one seat, as a share of the reward, that must not be missed.
    episodes: at most, for each player in the test of the seats' worth. keep_going: train also if a
        fault is found before. training: also compare the seats in training runs, which takes most
        of the time.
    fields: of the learner, and `steps`, `seeds`, `seed`, `copies`, `rollout` of its training runs.

        assert coplay.audit_seats("ppo", "stag-hunt")["verdict"] == "pass"
    """
    checked(PositiveFloat, advantage, "advantage")
    checked(PositiveInt, episodes, "episodes")
    rest, of_game = game_fields_of(fields, game_fields)
    name, game_config = game_and_config(game, of_game)
    usual = RunConfig(steps=300_000, seeds=8)
    run, learner = share_fields(rest, usual, learner_parts(player)[0]())
    config = audit_config(player, name, learner, game_config, run)
    folder = Path(out) if out is not None else new_folder("audit", name)
    with watching(watcher, quiet) as told:
        result = audit_seats_of(
            config, folder, entry_of(among), advantage, episodes, keep_going, training, told
        )
    return _audited(result, folder, config, "Seat audit")


def audit_config(
    player: str, game_name: str, learner: Any, game: Any, run: RunConfig
) -> TrainConfig:
    """The training runs of a seat audit, which keep one checkpoint each."""
    kept = with_fields(run, {"checkpoint_every": run.steps, "keep": 1})
    return TrainConfig(player, game_name, learner, game, kept)


def audit_wiring(
    player: str = "ppo",
    game: str | Game = "stag-hunt",
    out: str | Path | None = None,
    *,
    game_fields: Mapping[str, Any] | None = None,
    seed: int = 0,
    configuration: bool = True,
    quiet: bool = False,
    watcher: Watcher | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Does every declared part of a learner act? The result is what `coplay audit wiring --json`
    prints.

    configuration: also look for fields of the configuration without effect, which takes most of the
        time. fields: of the learner.

        assert coplay.audit_wiring("hop", "stag-hunt")["verdict"] == "pass"
    """
    rest, of_game = game_fields_of(fields, game_fields)
    name, game_config = game_and_config(game, of_game)
    (learner,) = share_fields(rest, learner_parts(player)[0]())
    config = TrainConfig(player, name, learner, game_config, RunConfig(seed=seed))
    folder = Path(out) if out is not None else new_folder("audit", name)
    with watching(watcher, quiet) as told:
        result = audit_wiring_of(config, told, configuration)
    return _audited(result, folder, config, "Wiring audit")


def _audited(audit: Audit, folder: Path, config: TrainConfig, title: str) -> dict[str, Any]:
    return audit.as_json() | {"page": str(write_audit(folder, audit, config, title))}
