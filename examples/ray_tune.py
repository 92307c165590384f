"""coplay as a trainable of Ray Tune; needs `pip install -e '.[tune]'`."""

from ray import tune

from coplay.integrations.tune import trainable

tuner = tune.Tuner(
    trainable("ppo", "matrix:stag-hunt", steps=4096, copies=16, rollout=16, episodes=100),
    param_space={"discount": tune.grid_search([0.9, 0.99])},
    tune_config=tune.TuneConfig(metric="team_mean", mode="max"),
)
best = tuner.fit().get_best_result()
print(best.config, best.metrics)
