"""All experiments by name."""

from coplay.reproduce import adaptation, self_play, teams
from coplay.reproduce.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for module in (self_play, adaptation, teams)
    for experiment in module.EXPERIMENTS
}
