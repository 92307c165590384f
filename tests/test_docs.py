"""Pages show what is there: code that runs, commands that parse, files and names that exist."""

import ast
import contextlib
import importlib
import io
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from coplay.algorithms.registry import LEARNERS, PLAYERS, learner_parts
from coplay.cli.arguments import declaration, parse_only
from coplay.cli.main import run
from coplay.core import loading
from coplay.core.config import parse_fields
from coplay.core.errors import UserError
from coplay.games.registry import GAMES, game_parts
from coplay.training import processes
from coplay.training.config import TrainConfig, run_defaults
from coplay.training.run import RunFolder
from tools.docs.command_line import all_options
from tools.docs.source import HOME, Code, all_pages, lines_of_code, shown, text_of

PAGES = all_pages()
STAND_INS = {"COMMAND": "list", "PART": "goals", "PLAYER": "ppo", "RUN": "runs/ppo", "M": "0.5"}
"""Words in capitals that stand for any value of their kind -> one of these values."""
PREFIXES = {
    "gru": "ppo-gru",
    "hopp": "hop-plus",
    "hop": "hop",
    "hyper": "hyper-mappo",
    "mappo": "mappo",
}
"""Beginning of a run's name -> the player, for runs that no page shows how to train."""
PARTS = ("audit", "bench", "inspect", "pretrain")
"""Commands whose first argument is a part of theirs."""
OF_READERS = re.compile(r".*\bmy_\w+.*|.*_my_\w+.*|.*\bNAME\b.*|--game\.cells")
"""What a reader makes: files such as my_game.py, the option of the tutorial's game."""
FILES_OF_READERS = {
    "my_game.py": "own_game.py",
    "my_learner.py": "own_learner.py",
    "my_partners.py": "own_partner.py",
}
"""Files that readers of a tutorial write -> the examples that register the same."""
OF_OTHERS = re.compile(r"(baselines/MAPPO/)?mappo_rnn_(smax|mpe)\.py")
"""Files of JaxMARL."""


@cache
def all_code() -> list[Code]:
    return [code for page in PAGES for code in lines_of_code(page)]


# --- commands -----------------------------------------------------------------------------------


@cache
def shorthands(page: Path) -> dict[str, str]:
    """Words in capitals that a page defines: `WORD` stands for `these options`."""
    pairs = re.findall(r"`([A-Z]+)`\s+(?:stands\s+)?for\s+`([^`]+)`", text_of(page))
    return {word: " ".join(meaning.split()) for word, meaning in pairs}


def spelled_out(code: Code) -> list[str]:
    """The words of a command with all shorthands replaced; … stands for whatever a user likes."""
    known = shorthands(code.page)
    pattern = re.compile(r"(?<![\w/.-])[A-Z]+(?![\w/.-])")
    text = code.text
    for _ in range(3):  # a shorthand may use another
        text = pattern.sub(lambda found: known.get(found[0], found[0]), text)
    text = pattern.sub(lambda found: STAND_INS.get(found[0], found[0]), text)
    words = shlex.split(text)
    before = ["", *words]
    return [
        word
        for word, left in zip(words, before, strict=False)
        if word != "…" or left.startswith("--")
    ]


@cache
def commands() -> list[tuple[Code, list[str], bool]]:
    """All commands of coplay that pages show, their arguments, whether they are only named."""
    found = []
    for code in all_code():
        first, _, rest = code.text.partition(" ")
        meaning = shorthands(code.page).get(first, first if rest else "")
        if meaning.split(" ")[0] in ("coplay", ".venv/bin/coplay"):
            _, *words = spelled_out(code)
            # A command that is only mentioned lacks what it needs: then its name is looked at.
            mentioned = not any(word.startswith("-") for word in words[1:]) and (
                len(words) <= 1 + (words[0] in PARTS)
            )
            found.append((code, words, mentioned))
    return found


@cache
def makers() -> dict[str, tuple[str, str]]:
    """Run -> (player, game) of the command that trains it."""
    found = {}
    for _, words, _ in commands():
        if words[:1] == ["train"] and "--out" in words[:-1] and words[1] in LEARNERS:
            game = words[words.index("--game") + 1] if "--game" in words else "stag-hunt"
            found[words[words.index("--out") + 1]] = words[1], game
    return found


def maker(entry: str) -> tuple[str, str]:
    """(player, game) of a run."""
    path = entry.split("@")[0]
    name = path.split("/")[-1]
    guess = next((player for start, player in PREFIXES.items() if name.startswith(start)), "ppo")
    return makers().get(path, (guess, "stag-hunt"))


RUNS = re.compile(r"runs/[\w-]+(?:@[\w.=-]+)*")
SELECTS = ("seat", "seed", "best")


def make_runs(words: list[str]) -> None:
    """Folders with the configurations of the runs that a command names, below the current one, and
    files of settings that it takes."""
    for name in (word for word in words if word.endswith(".toml") and words[0] != "config"):
        Path(name).write_text(f'player = "{words[1]}"\n')
    for entry in {entry for word in words for entry in RUNS.findall(word)}:
        path, (player, game) = Path(entry.split("@")[0]), maker(entry)
        if words[0] == "train" and "--resume" in words:
            player = words[1]
        path.mkdir(parents=True, exist_ok=True)
        learner = learner_parts(player)[0]
        config = TrainConfig(player, game, learner(), game_parts(game)[0](), run_defaults(learner))
        RunFolder(path).write_config(config)


@pytest.fixture(autouse=True, scope="module")
def parsers_are_made_once() -> Iterator[None]:
    """To make a parser takes a hundred times as long as to parse: commands that are read by one
    class with the same defaults share it."""
    from tyro._parsers import ParserSpecification

    make, made = ParserSpecification.from_callable_or_type, {}

    def remembered(kind: Any, *rest: Any, **how: Any) -> Any:
        if how.get("intern_prefix") != "":
            return make(kind, *rest, **how)
        key = repr((kind, how["default_instance"], how["description"]))
        if key not in made:
            made[key] = make(kind, *rest, **how)
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ParserSpecification, "from_callable_or_type", staticmethod(remembered))
        yield


@pytest.fixture(autouse=True, scope="module")
def examples_are_loaded() -> Iterator[None]:
    """Commands with `--load` name games, players and learners of the examples."""
    tables: list[Any] = [LEARNERS, PLAYERS, GAMES]
    before, loaded = [dict(table) for table in tables], list(loading._LOADED)
    for name in ("own_game", "own_learner", "own_partner"):
        loading.load(str(HOME / "examples" / f"{name}.py"))
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)
    loading._LOADED[:] = loaded


def fault(words: list[str], only_named: bool = False) -> str:
    """What is wrong with a command line; empty if nothing is. only_named: it lacks what it needs,
    so its first words are looked at alone."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            (declaration if only_named else parse_only)(run, words)
    except SystemExit as stop:
        if stop.code:
            return " ".join(re.sub(r"[^\x20-\x7e]|-{3,}", " ", said.getvalue()).split())[:300]
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_parse(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    monkeypatch.setattr(processes, "join", lambda *_: None)  # nobody is there to meet
    (tmp_path / "examples").symlink_to(HOME / "examples")
    for mine, ours in FILES_OF_READERS.items():
        (tmp_path / mine).symlink_to(HOME / "examples" / ours)
    faults = []
    for code, words, mentioned in commands():
        if code.page == page:
            make_runs(words)
            if said := fault(words, mentioned):
                faults.append(f"{code.where}: coplay {' '.join(words)}\n    {said}")
    assert not faults, "\n" + "\n".join(faults)


def test_wrong_commands_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "unknown command" in fault(["tarin", "ppo"])
    assert fault(["play", "--seatings", "ns,ns,ns,ns"])
    assert fault(["train", "ppo", "--copies", "many"])
    assert not fault(["train", "ppo", "--copies", "8"])
    assert fault(["inspect", "goal"], only_named=True)
    assert not fault(["inspect"], only_named=True) and not fault(["adapt"], only_named=True)
    assert not list(tmp_path.iterdir()), "nothing is run"


def test_fields_of_runs_are_there() -> None:
    """In `runs/hop@planner=off` the player has the field, and a run may set it anew."""
    faults = []
    for code in all_code():
        for entry in RUNS.findall(code.text):
            kind, learner = learner_parts(maker(entry)[0])
            may_change = getattr(learner, "play_fields", ())
            for field in entry.split("@")[1:]:
                name = field.split("=")[0]
                if name in SELECTS:
                    continue
                try:
                    parse_fields(kind(), [field], entry)
                    if not any(f"{name}.".startswith(f"{path}.") for path in may_change):
                        faults.append(f"{code.where}: {name} is for training only")
                except UserError as error:
                    faults.append(f"{code.where}: {error}")
    assert not faults, "\n" + "\n".join(faults)


def options_of_scripts() -> set[str]:
    """Options that the benchmarks declare, as text or as fields of a dataclass."""
    texts = [path.read_text() for path in (HOME / "benchmarks").glob("*.py")]
    declared = {name for text in texts for name in re.findall(r'"(--[a-z-]+)"', text)}
    fields = {name for text in texts for name in re.findall(r"^    (\w+): ", text, re.MULTILINE)}
    return declared | {f"--{name.replace('_', '-')}" for name in fields}


def test_options_are_there() -> None:
    """Inline code that begins with an option: each of its options is one of some command."""
    known = all_options() | options_of_scripts()
    faults = [
        f"{code.where}: no command has {name}"
        for code in all_code()
        if code.text.startswith("--")
        for name in re.findall(r"--[a-zA-Z][\w.-]*", code.text)
        if name.rstrip(".") not in known
        and not OF_READERS.fullmatch(name)
        and not name.isupper()
        and not name.endswith(".FIELD")
    ]
    assert not faults, "\n" + "\n".join(faults)


# --- files and names ----------------------------------------------------------------------------


@cache
def files() -> list[str]:
    folders = ("coplay", "tests", "examples", "benchmarks", "tools")
    paths = (path for folder in folders for path in (HOME / folder).rglob("*.py"))
    return ["setup.py", *(str(path.relative_to(HOME)) for path in paths)]


def test_every_benchmark_is_explained() -> None:
    table = (HOME / "benchmarks" / "README.md").read_text()
    names = [path.name for path in (HOME / "benchmarks").glob("*.py")]
    lost = [name for name in names if f"| `{name}" not in table]
    assert not lost, f"benchmarks/README.md does not say which question they answer: {lost}"


def test_files_are_there() -> None:
    """Paths of Python files and of folders of the package, also shortened ones (`block.py`)."""
    faults = []
    for code in all_code():
        for name in re.findall(r"(?<![\w/.-])[\w/*-]+\.py\b|\bcoplay/[\w/]*/(?=\s|$)", code.text):
            pattern = re.compile("(.*/)?" + re.escape(name).replace(r"\*", "[^/]*") + "$")
            known = OF_READERS.fullmatch(name) or OF_OTHERS.fullmatch(name)
            if not known and not (HOME / name).is_dir() and not any(map(pattern.match, files())):
                faults.append(f"{code.where}: there is no {name}")
    assert not faults, "\n" + "\n".join(faults)


def exists(name: str) -> bool:
    """Whether a dotted name can be imported, or reached from what can."""
    module, *rest = name.split(".")
    found: Any = importlib.import_module(module)
    for part in rest:
        module = f"{module}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(module)
            except ImportError:
                return False
    return True


def test_names_are_there() -> None:
    """Dotted names such as `coplay.play`, in prose and in Python alike."""
    faults = []
    for page in PAGES:
        for number, line in enumerate(text_of(page).splitlines(), 1):
            for name in re.findall(r"(?<![\w/.-])coplay(?:\.[A-Za-z_]\w*)+", line):
                if not exists(name):
                    faults.append(f"{shown(page)}:{number}: there is no {name}")
    assert not faults, "\n" + "\n".join(faults)


@cache
def homes() -> dict[str, Path]:
    """Class of the package -> its file."""
    return {
        name: HOME / file
        for file in files()
        if file.startswith("coplay/")
        for name in re.findall(r"^class (\w+)", (HOME / file).read_text(), re.MULTILINE)
    }


@cache
def members(name: str) -> frozenset[str]:
    """What a class of the package and its bases define; nothing for another class."""
    if name not in homes():
        return frozenset()
    tree = ast.parse(homes()[name].read_text())
    (own,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)
    found = {node.name for node in own.body if isinstance(node, ast.FunctionDef)}
    for node in own.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return frozenset(found).union(*(members(base_name(base)) for base in own.bases))


def base_name(base: ast.expr) -> str:
    """The last name of a base class: Module of eqx.Module, View of View[State]."""
    return ast.unparse(base).partition("[")[0].rpartition(".")[2]


def test_members_are_there() -> None:
    """`Game.observe`, `game.observe(state)`: a class of the package, and what it has."""
    faults = []
    for code in all_code():
        found = re.match(r"([A-Z][a-z]\w+|game)\.(\w+)(\(.*\))?$", code.text)
        if found and found[2] not in members(found[1].replace("game", "Game")):
            faults.append(f"{code.where}: there is no {code.text}")
    assert not faults, "\n" + "\n".join(faults)
