"""A wrong command line is answered in one sentence, with code 2, and leaves nothing behind."""

from pathlib import Path
from typing import Any

import pytest

from coplay.cli.main import run

WRONG = {
    "trian ppo": "unknown command 'trian': did you mean 'train'?",
    "train pppo": "unknown player to train 'pppo': did you mean 'ppo'?",
    "train ppo --game stag-hnt": "unknown game 'stag-hnt': did you mean 'stag-hunt'?",
    "train ppo --preset cleanrl": "unknown preset 'cleanrl': did you mean 'cleanrl-ppo'?",
    "train ppo --game.heigth 8": "unknown option --game.heigth: did you mean --game.height?",
    "train hop-plus --simulations 4": "--simulations: did you mean --search.simulations? coplay",
    "train ppo --no-picture": "unknown option --no-picture: did you mean --no-pictures?",
    "train ppo --optimiser.learning-rate fast": "takes float above 0, not 'fast'; coplay train ppo",
    "train ppo --copies 1.5": "--copies takes int above 0, not '1.5'",
    "train ppo --optimiser.kind sgdd": "kind takes adam, rmsprop, sgd, not 'sgdd'",
    "train ppo --steps": "--steps takes int above 0, and nothing was given",
    "train ppo --steps -5": "steps must be above 0, not -5",
    "train ppo --copies 7": "copies (7) must be a multiple of minibatches (8)",
    "train ppo --seating ppo,ns": "names 2 players; stag-hunt has 4 seats here",
    "train hop --search.backend mctxx": "--search.backend takes coplay, mctx, not 'mctxx'",
    "train hop --search.backend mctx --search.resample": "coplay: resample has trees of its own",
    "train ppo extra": "it is not clear what 'extra' is for",
    "train ppo --config none.yaml": "cannot read none.yaml: No such file or directory",
    "adapt": "PLAYER is missing: the focal player: a run such as runs/hop",
    "collect": "--out is missing: folder of the new dataset; coplay collect --help explains",
    "bench serch": "unknown part to bench 'serch': did you mean 'search'?",
    "completion tcsh": "SHELL takes bash, zsh, fish, not 'tcsh'",
    "watch runs/none": "runs/none holds no run",
    "import none.player.npz": "coplay: cannot read none.player.npz: there is no such file",
}


@pytest.mark.parametrize("line, said", WRONG.items())
def test_a_wrong_line_is_answered_in_one_sentence(
    line: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(line.split()) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("coplay: ") and said in shown.err
    assert shown.err.count("\n") == 1 and not set("│╭╰─") & set(shown.err)
    assert not list(tmp_path.iterdir())
