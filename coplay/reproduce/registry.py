"""All experiments by name."""

from coplay.reproduce import (
    adaptation,
    audits,
    large_board,
    matrix,
    parts,
    play,
    self_play,
    sets,
    settings,
    snowdrift,
    speed,
    strangers,
    teams,
)
from coplay.reproduce.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for module in (
        self_play,
        settings,
        adaptation,
        strangers,
        snowdrift,
        large_board,
        play,
        matrix,
        sets,
        teams,
        parts,
        audits,
        speed,
    )
    for experiment in module.EXPERIMENTS
}
