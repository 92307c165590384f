"""A trained player as one file to give away, and the folder that its receiver makes of it.

The file is a NumPy archive like a checkpoint. Its note is the card: what the player is, what it
plays, how well. It holds what players need of one seed, for all seats that learned, and nothing
that only training needs. The folder looks like a run's, so that everything that takes the path of a
run takes it. Nothing in a file is executed, and every array is compared with what the configuration
asks for before it is unpacked.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from coplay.core.archive import Form, memory
from coplay.core.config import with_fields
from coplay.core.errors import UserError
from coplay.core.files import write_json
from coplay.core.learner import Learner
from coplay.core.manifest import whole_folder
from coplay.core.reading import Unreadable, read_field, read_json
from coplay.core.version import VERSION
from coplay.nn.networks import view_shape
from coplay.training import checkpoints
from coplay.training.learners import plan_seatings
from coplay.training.partner_packs import refuse_full
from coplay.training.pretrained import MODELS, SHAPES
from coplay.training.run import Run, RunFolder, learner_shapes, open_entry
from coplay.training.seating import is_run
from coplay.training.stored import read_summary

KIND, FORM = "player", 1
LEARNERS, BEGAN_WITH = ".learners", ".began_with"
"""Where the states of the learners and the pretrained models stand in a file."""
ENDING = ".player.npz"
FIELDS = {
    **{"kind": str, "form": int, "step": int, "best": bool},
    **{"config": dict, "models": dict, "seated": dict, "versions": dict},
}
"""Fields of every card."""


# --- from a run to a file ----------------------------------------------------------------------


def write_player(entry: str, out: Path, met: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Write the player of an entry like `runs/ppo@seed=3@best` into a new file; its card.

    met: which partners it was trained with, as {"families", "partners"}, if anybody knows.
    """
    opened = open_entry(entry)
    if opened.seat is not None or opened.fields:
        raise UserError(
            f"'{entry}': a player is exported with all seats it learned, as it was trained: only "
            "@seed=N and @best may be given here; say the rest where it is seated"
        )
    if out.exists():
        raise UserError(f"{out} is there already; choose another --out")
    run = opened.run
    seed = run.seeds[0] if opened.seed is None else opened.seed
    run.learner(run.learned[0], seed)  # an error says which seeds there are
    index = run.seeds.index(seed)
    states = [jax.tree.map(lambda x: x[index : index + 1], state) for state in run.states]
    arrays: dict[str, np.ndarray] = {}
    for number, (learner, state) in enumerate(zip(run.learners, states, strict=True)):
        named = checkpoints.named_arrays(state)
        arrays |= {
            f"{LEARNERS}[{number}]{name}": named[name] for name in kept_names(learner, state)
        }
    models = dict(_models(run))
    for path, (model, _) in models.items():
        named = checkpoints.named_arrays(model)
        arrays |= {f"{BEGAN_WITH}[{path!r}]{name}": array for name, array in named.items()}
    card = _card(run, seed) | {
        "models": {path: about for path, (_, about) in models.items()},
        **({} if met is None else {"met": dict(met)}),
    }
    checkpoints.save_named(out, arrays, card)
    return {"coplay": VERSION} | card


def kept_names(learner: Learner, state: Any) -> list[str]:
    """The names of the arrays of a state, or of its shapes, that players need."""
    return [
        jax.tree_util.keystr(path)
        for path, _ in jax.tree_util.tree_leaves_with_path(state)
        if not any(getattr(place, "name", None) in learner.training_only for place in path)
    ]


def _models(run: Run) -> Iterator[tuple[str, tuple[Any, dict[str, Any]]]]:
    """Field -> the pretrained model that a run began with, and its description."""
    paths = {path for learner in run.learners for path in getattr(learner.config, "pretrained", ())}
    for path in sorted(paths):
        folder = run.folder.model_folder(path)
        if (folder / "config.json").exists():
            model, _ = MODELS[path](folder)
            about = read_json(folder / "config.json")
            yield path, (model, about | {"data": Path(str(about.get("data"))).name})


def _card(run: Run, seed: int) -> dict[str, Any]:
    """What a run's player says about itself; no path and no name of a machine is in it."""
    saved, shape = run.folder.checkpoints(), view_shape(run.game)
    best = run.best and saved.best.exists()
    note = checkpoints.load_note(saved.best) if best else saved.newest(checkpoints.load_note)
    return {
        "kind": KIND,
        "form": FORM,
        "step": int(note.get("step", 0)),
        "best": best,
        "config": _stated(run, seed),
        "seated": {
            "game": run.game.name,
            "seats": run.game.seats,
            "learned": run.learned,
            "planes": list(shape.planes),
            "features": shape.features,
            "actions": shape.actions,
        },
        "summary": _summary(run, seed),
        "versions": checkpoints.versions(),
    }


def _stated(run: Run, seed: int) -> dict[str, Any]:
    """The configuration of one seed that needs nothing outside of its folder."""
    config = run.folder.read_config()
    learner = config.learner
    named = (*getattr(learner, "pretrained", ()), *getattr(learner, "taken_over", ()))
    learner = with_fields(learner, dict.fromkeys(named, ""))
    given = config.run
    alone = dataclasses.replace(
        given,
        seed=seed,
        seeds=1,
        seating=_without_folders(given.seating),
        switch=tuple(_without_folders(text) for text in given.switch),
        partners="partners" if given.partners else "",
    )
    about: dict[str, Any] = {"coplay": VERSION}
    if loads := run.folder.loads():
        about["loads"] = [Path(name).name for name in loads]
    whole = dataclasses.replace(config, learner=learner, run=alone)
    return about | whole.as_json()


def _without_folders(text: str) -> str:
    """A seating, or a switch, with random players in place of other runs."""
    return "".join(map(_or_random, re.split("([,:])", text)))


def _or_random(part: str) -> str:
    seat, equals, player = part.partition("=")
    if equals and seat.isdigit():  # of a switch, as in 200000:0=runs/hop
        return f"{seat}={_or_random(player)}"
    return "random" if "/" in part or "@" in part or _holds_run(part) else part


def _holds_run(name: str) -> bool:
    return bool(name.strip()) and RunFolder(Path(name.strip())).exists()


def _summary(run: Run, seed: int) -> dict[str, Any] | None:
    """The final evaluation of one seed; None: the run is not finished, or it was another state."""
    summary = None if run.best and run.folder.checkpoints().best.exists() else run.summary
    if summary is None:
        return None
    own = dict(summary)
    rows = own.pop("seeds", None)
    for name in ("iqm", "interval"):
        own.pop(name, None)
    if rows is not None:
        own |= next({"scores": {}} | row for row in rows if row["seed"] == seed)
        own["episodes"] = summary["episodes"] // len(rows)
        del own["seed"]
    seats = [row | {"player": _plain_name(row["player"])} for row in own["seats"]]
    return own | {"seats": seats}


def _plain_name(entry: str) -> str:
    return Path(entry.split("@")[0]).name if is_run(entry) else entry


def not_in_file(entry: str) -> list[str]:
    """Players that sat beside the run's own and that no file of it holds, each in its words."""
    run = open_entry(entry).run
    return list(
        dict.fromkeys(
            one
            for _, entries in plan_seatings(run.config, run.game)
            for one in entries
            if _or_random(one) != one
        )
    )


# --- from a file to a folder -------------------------------------------------------------------


def read_card(file: Path) -> dict[str, Any]:
    """The card of a file; an error if it is no player that this version reads."""
    if not file.exists():
        raise UserError(f"cannot read {file}: there is no such file")
    try:
        card = checkpoints.load_note(file)
    except checkpoints.DamagedCheckpoint as error:
        raise UserError(f"this is no exported player: {error}") from error
    return _checked(card, str(file))


def _checked(card: dict[str, Any], where: str) -> dict[str, Any]:
    if card.get("kind") != KIND or card.get("form") != FORM:
        raise UserError(f"{where} is no player that this version reads (coplay export makes one)")
    for name, kind in FIELDS.items():
        read_field(card, name, kind, where)
    if not 0 <= card["step"] < 10**15:
        raise Unreadable(f"{where}: 'step' must be from 0 to 10^15")
    if card.get("summary") is not None:
        read_field(card, "summary", dict, where)
    for path in card["models"]:
        if path not in SHAPES:
            raise Unreadable(f"{where} begins with a model that is unknown here: {path[:80]!r}")
        read_field(card["models"], path, dict, where)
    return card


def read_player(file: Path, out: Path) -> dict[str, Any]:
    """Make a folder of a file of somebody, whole or not at all; the card."""
    card = read_card(file)
    RunFolder(out).refuse_if_taken()
    refuse_full(out)
    with whole_folder(out) as unfinished:
        folder = RunFolder(unfinished)
        try:
            _unpack(file, card, folder)
        except checkpoints.DamagedCheckpoint as error:
            raise UserError(f"damaged player: {error}; ask for the file anew") from error
        except UserError as error:
            # What it says of a folder that is never seen is true of the file.
            raise UserError(str(error).replace(str(unfinished), str(file))) from error
    return card


def _unpack(file: Path, card: Mapping[str, Any], folder: RunFolder) -> None:
    write_json(folder.config_file, card["config"])
    write_json(folder.card_file, card)
    if card.get("summary") is not None:
        write_json(folder.summary_file, card["summary"])
        read_summary(folder.summary_file)
    for path, about in card["models"].items():
        write_json(folder.model_folder(path) / "config.json", about)
    seeds = folder.read_config().run.seeds
    if seeds != 1:
        raise Unreadable(f"{file}: a player has one seed, not {seeds}")
    _fill(file, card, folder)


def _fill(file: Path, card: Mapping[str, Any], folder: RunFolder) -> None:
    """Unpack the arrays of a file, once all are of the forms that the configuration asks for."""
    models = {path: SHAPES[path](folder.model_folder(path))[0] for path in card["models"]}
    wanted = {
        f"{BEGAN_WITH}[{path!r}]{name}": form
        for path, like in models.items()
        for name, form in checkpoints.named_forms(like).items()
    }
    arrays = checkpoints.load_named(file, wanted, partly=True)
    for path, like in models.items():
        place = f"{BEGAN_WITH}[{path!r}]"
        named = {name: arrays[place + name] for name in checkpoints.named_forms(like)}
        about = {"coplay": card["models"][path].get("coplay", VERSION)}
        checkpoints.save_named(folder.model_folder(path) / "model.npz", named, about)
    run = Run(folder)
    everything: dict[str, Form] = {}
    kept: dict[str, Form] = {}
    for number, learner in enumerate(run.learners):
        shapes = learner_shapes(learner, run.config, run.game)
        forms = checkpoints.named_forms(shapes)
        everything |= {f"{LEARNERS}[{number}]{name}": form for name, form in forms.items()}
        for name in kept_names(learner, shapes):
            kept[f"{LEARNERS}[{number}]{name}"] = forms[name]
    arrays = checkpoints.load_named(file, kept | wanted)
    rest = sum(form.size for name, form in everything.items() if name not in kept)
    if rest > memory() // 4:
        raise UserError(
            f"{file}: its configuration asks for {rest / 2**30:,.0f} GB of arrays that only "
            "training needs, more than a quarter of this machine's memory"
        )
    filled = {
        name: arrays[name] if name in kept else np.zeros(form.shape, form.dtype)
        for name, form in everything.items()
    }
    saved = folder.checkpoints().folder / f"step-{card['step']:015d}.npz"
    checkpoints.save_named(saved, filled, {"step": card["step"], "versions": card["versions"]})


def read_imported(folder: Path) -> dict[str, Any]:
    """The card of a folder that `read_player` made."""
    path = RunFolder(folder).card_file
    return _checked(read_json(path), str(path))


def card_line(card: Mapping[str, Any]) -> str:
    """A card in a few words."""
    summary = card.get("summary")
    words = f"{card['config'].get('player')}, {card['step']:,} steps"
    if summary is not None and isinstance(summary.get("team_mean"), int | float):
        words += f", team mean {summary['team_mean']:.3f}"
    return words
