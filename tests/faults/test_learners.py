"""Every learner, one seed and several: crash states are resumed to the same bits."""

import random
from pathlib import Path
from typing import Any

import pytest

from coplay.api.training import make_config
from coplay.core import files
from coplay.training.run import RunFolder
from coplay.training.trainer import Trainer, Watcher
from tests.faults.disks import RecordingDisk, put_back
from tests.faults.tiny import outcome, quick_folder

SMALL: dict[str, Any] = {
    **{"copies": 4, "rollout": 4, "block": 2, "steps": 256, "episodes": 4, "keep": 2},
    **{"checkpoint_every": 32, "evaluate_every": 64, "evaluate_episodes": 2},
}
PASSES: dict[str, Any] = {"minibatches": 2, "epochs": 1}
PLANNER: dict[str, Any] = {"search.simulations": 2}
OWN: dict[str, dict[str, Any]] = {
    "ppo": PASSES,
    "ppo-gru": PASSES,
    "mappo": PASSES,
    "hyper-mappo": PASSES,
    "hop": PLANNER | {"replay.capacity": 64, "replay.batch": 8},
    "hop-plus": PASSES
    | PLANNER
    | {"models.chunk_length": 2, "recordings.samples": 200, "recordings.epochs": 1},
}


@pytest.mark.faults
@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("player", OWN)
def test_crash_states_of_every_learner(
    player: str, seeds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(player, "stag-hunt", {}, SMALL | OWN[player] | {"seeds": seeds})
    programs: list[Any] = []
    compile_block = Trainer._compile

    def compile_once(self: Trainer, phase: Any, state: Any) -> Any:
        if not programs:
            programs.append(compile_block(self, phase, state))
        return programs[0]

    monkeypatch.setattr(Trainer, "_compile", compile_once)
    with quick_folder() as folder:
        disk = RecordingDisk(folder / "whole")
        with files.using(disk):
            Trainer(config, folder / "whole", Watcher()).run()
        wanted = outcome(folder / "whole")
        for number in random.Random(0).sample(range(len(disk.states)), 20):
            place: Path = folder / f"crash-{number}"
            put_back(disk.states[number], place)
            Trainer(config, place, Watcher(), resume=RunFolder(place).exists()).run()
            assert outcome(place) == wanted, number
