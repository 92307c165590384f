"""Fields that change nothing are named before a sweep begins."""

from pathlib import Path
from typing import Any

import pytest

from coplay.api.training import make_config
from coplay.core.errors import UserError
from coplay.sweeps import acting
from coplay.sweeps.acting import inert, refuse_inert
from coplay.sweeps.space import dimensions
from coplay.training.config import TrainConfig


def of(player: str, **fields: Any) -> TrainConfig:
    return make_config(player, "matrix:stag-hunt", {}, {"network.hidden": (4,)} | fields)


def quiet(text: str) -> None:
    pass


@pytest.mark.slow
def test_programs_tell_which_fields_act() -> None:
    config = of("ppo", **{"optimiser.kind": "sgd"})
    space = dimensions(config, {"discount": "0.9,0.99", "optimiser.epsilon": "1e-5,1e-6"})
    found = inert(config, space, quiet, seconds=1000.0)
    assert found["inert"] == ["optimiser.epsilon"] and not found["untried"]
    assert found["why"] == "optimiser.epsilon does nothing here: optimiser.kind is sgd"


def test_the_answer_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("COPLAY_CACHE", raising=False)
    config, asked = of("ppo"), list[str]()

    def fingerprints(config: TrainConfig, varied: str) -> list[str]:
        asked.append(varied)
        return [str(config.learner.discount)]

    monkeypatch.setattr(acting, "fingerprints", fingerprints)
    space = dimensions(config, {"discount": "0.9,0.99", "clip": "0.1,0.2"})
    for _ in range(2):
        with pytest.raises(UserError, match="clip would change nothing"):
            refuse_inert(config, space, quiet)
    first = len(asked)
    refuse_inert(config, space[:1], quiet)
    assert first == asked.count("discount") + asked.count("clip") - 2 < len(asked)


def test_what_takes_too_long_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COPLAY_CACHE", "off")
    config, said = of("ppo"), list[str]()
    refuse_inert(config, dimensions(config, {"clip": "0.1,0.2"}), said.append, seconds=-1.0)
    assert said == ["note: not asked whether it acts: clip"]
