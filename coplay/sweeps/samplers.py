"""Which setting comes next: a list, or Optuna, which learns from what came before."""

import json
import math
from collections.abc import Sequence
from typing import Any, Protocol

from coplay.core.errors import UserError, how_to_install
from coplay.sweeps.config import SweepConfig
from coplay.sweeps.space import Dimension, Setting, drawn, grid

USUAL_TRIALS = 20


class Sampler(Protocol):
    """Chooses settings, one for each trial, and hears how they did."""

    count: int
    """Settings that it gives in all."""

    def ask(self, number: int) -> Setting:
        """The setting of a trial; numbers come in order, from 0 on."""

    def take_up(self, number: int, setting: Setting, state: str, value: float | None) -> None:
        """A trial of an earlier process. state: finished, pruned, failed, or another word if it is
        still to be run."""

    def hopeless(self, number: int, step: int, value: float) -> bool:
        """Whether a trial whose evaluation at a step gave this value is to be stopped."""

    def tell(self, number: int, state: str, value: float | None) -> None:
        """How a trial ended: finished, pruned or failed."""


class Listed:
    """Settings of a list, in its order."""

    def __init__(self, settings: Sequence[Setting]):
        self.settings, self.count = settings, len(settings)

    def ask(self, number: int) -> Setting:
        return self.settings[number]

    def take_up(self, number: int, setting: Setting, state: str, value: float | None) -> None:
        pass

    def hopeless(self, number: int, step: int, value: float) -> bool:
        return False

    def tell(self, number: int, state: str, value: float | None) -> None:
        pass


class OptunaSampler:
    """Settings by Optuna's TPE, or those of a list, and Optuna's pruning.

    The study is kept in memory. A sweep that is taken up tells it all earlier trials again.
    """

    def __init__(
        self,
        space: Sequence[Dimension],
        count: int,
        config: SweepConfig,
        seed: int,
        settings: Sequence[Setting] | None = None,
    ):
        self.optuna = import_optuna()
        self.optuna.logging.set_verbosity(self.optuna.logging.ERROR)
        self.space, self.count, self.settings = space, count, settings
        self.prunes = config.prune
        self.study = self.optuna.create_study(
            direction="minimize" if config.minimise else "maximize",
            sampler=self.optuna.samplers.TPESampler(seed=seed),
            pruner=self.optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=0),
        )
        self.trials: dict[int, Any] = {}

    def ask(self, number: int) -> Setting:
        if self.settings is not None:
            self.study.enqueue_trial(self._coded(self.settings[number]))
        self.trials[number] = trial = self.study.ask(self._distributions())
        return self._decoded(trial.params)

    def take_up(self, number: int, setting: Setting, state: str, value: float | None) -> None:
        states = self.optuna.trial.TrialState
        known = {"finished": states.COMPLETE, "pruned": states.PRUNED, "failed": states.FAIL}
        if state not in known:
            self.study.enqueue_trial(self._coded(setting))
            self.trials[number] = self.study.ask(self._distributions())
            return
        usable = value is not None and state != "failed"
        self.study.add_trial(
            self.optuna.trial.create_trial(
                state=known[state] if usable else states.FAIL,
                params=self._coded(setting),
                distributions=self._distributions(),
                value=value if usable else None,
            )
        )

    def hopeless(self, number: int, step: int, value: float) -> bool:
        trial = self.trials.get(number)
        if trial is None or not self.prunes or not math.isfinite(value):
            return False
        trial.report(value, step)
        return bool(trial.should_prune())

    def tell(self, number: int, state: str, value: float | None) -> None:
        trial = self.trials.pop(number)
        states = self.optuna.trial.TrialState
        if state == "finished" and value is not None:
            self.study.tell(trial, value)
        else:
            self.study.tell(trial, state=states.PRUNED if state == "pruned" else states.FAIL)

    # Values of lists may be anything that JSON holds; Optuna takes texts.

    def _distributions(self) -> dict[str, Any]:
        kinds = self.optuna.distributions
        found: dict[str, Any] = {}
        for one in self.space:
            if one.listed:
                texts = [json.dumps(value) for value in one.values]
                found[one.path] = kinds.CategoricalDistribution(texts)
            elif one.scale == "int":
                found[one.path] = kinds.IntDistribution(int(one.low), int(one.high))
            else:
                found[one.path] = kinds.FloatDistribution(one.low, one.high, log=one.scale == "log")
        return found

    def _coded(self, setting: Setting) -> dict[str, Any]:
        listed = {one.path for one in self.space if one.listed}
        return {path: json.dumps(x) if path in listed else x for path, x in setting.items()}

    def _decoded(self, params: dict[str, Any]) -> Setting:
        listed = {one.path for one in self.space if one.listed}
        return {
            one.path: json.loads(params[one.path]) if one.path in listed else params[one.path]
            for one in self.space
        }


def import_optuna() -> Any:
    """Optuna, or an error that says how to get it."""
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise UserError(
            f"--sampler optuna and --prune need Optuna: {how_to_install('sweep')}"
        ) from error
    return optuna


def make_sampler(config: SweepConfig, space: Sequence[Dimension], seed: int) -> Sampler:
    """The sampler of a sweep. seed: of what it draws."""
    kind = config.sampler
    if kind == "auto":
        kind = "grid" if all(one.listed or one.scale == "int" for one in space) else "random"
    if kind == "optuna":
        return OptunaSampler(space, config.trials or USUAL_TRIALS, config, seed)
    if kind == "grid":
        settings = grid(space)
        settings = settings[: config.trials] if config.trials else settings
    else:
        settings = drawn(space, config.trials or USUAL_TRIALS, seed)
    if config.prune:
        return OptunaSampler(space, len(settings), config, seed, settings)
    return Listed(settings)
