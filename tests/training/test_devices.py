"""Seeds shared by several devices give the same bits as on one."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from coplay.api.training import make_config
from coplay.core.errors import UserError
from coplay.training.devices import Devices
from coplay.training.run import make_game_of

RUN = """
import sys
import coplay
small = dict(copies=8, rollout=4, minibatches=1, epochs=1, block=2, steps=256, episodes=2, seeds=4)
small |= {"network.hidden": (8,), "game.height": 3, "game.width": 3, "game.players": 2}
for name, devices in (("one", 1), ("four", 4)):
    coplay.train("ppo", out=f"{sys.argv[1]}/{name}", devices=devices, quiet=True, pictures=False,
                 **small)
coplay.train("ppo", out=f"{sys.argv[1]}/four", resume=True, steps=384, quiet=True, pictures=False)
coplay.train("ppo", out=f"{sys.argv[1]}/one", resume=True, steps=384, quiet=True, pictures=False)
"""


@pytest.mark.slow
def test_seeds_over_devices_are_bit_equal(tmp_path: Path) -> None:
    flags = "--xla_force_host_platform_device_count=4 --xla_cpu_multi_thread_eigen=false"
    home = str(Path(__file__).parents[2])
    variables = os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": home}
    subprocess.run([sys.executable, "-c", RUN, str(tmp_path)], check=True, env=variables)
    one, four = (
        sorted((tmp_path / name / "checkpoints").glob("*.npz")) for name in ("one", "four")
    )
    assert [path.name for path in one] == [path.name for path in four] and len(one) > 1
    for mine, theirs in zip(one, four, strict=True):
        with np.load(mine) as first, np.load(theirs) as second:
            assert first.files == second.files
            for name in first.files:
                if name != "note.json":
                    assert first[name].tobytes() == second[name].tobytes(), name


def test_what_does_not_fit_is_refused() -> None:
    config = make_config("ppo", "stag-hunt", {}, {"devices": 4, "seeds": 4})
    with pytest.raises(UserError, match="--devices 4: JAX has"):
        Devices(config.run, make_game_of(config))
    config = make_config("ppo", "stag-hunt", {}, {"devices": 4, "seeds": 10})
    with pytest.raises(UserError, match="--seeds 8 or 12"):
        Devices(config.run, make_game_of(config))
