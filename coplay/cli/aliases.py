"""Names of options that people bring from other libraries."""

import sys
from collections.abc import Callable, Collection

ALIASES = {
    "lr": "optimiser.learning-rate",
    "learning-rate": "optimiser.learning-rate",
    "max-grad-norm": "optimiser.max-grad-norm",
    "grad-clip": "optimiser.max-grad-norm",
    "num-envs": "copies",
    "n-envs": "copies",
    "n-rollout-threads": "copies",
    "num-steps": "rollout",
    "n-steps": "rollout",
    "rollout-fragment-length": "rollout",
    "total-timesteps": "steps",
    "total-steps": "steps",
    "num-env-steps": "steps",
    "gamma": "discount",
    "lambda": "gae-lambda",
    "update-epochs": "epochs",
    "num-epochs": "epochs",
    "n-epochs": "epochs",
    "ppo-epoch": "epochs",
    "num-minibatches": "minibatches",
    "num-mini-batch": "minibatches",
    "clip-coef": "clip",
    "clip-param": "clip",
    "clip-range": "clip",
    "clip-eps": "clip",
    "ent-coef": "entropy-weight",
    "entropy-coef": "entropy-weight",
    "entropy-coeff": "entropy-weight",
    "vf-coef": "value-weight",
    "value-loss-coef": "value-weight",
    "vf-loss-coeff": "value-weight",
    "hidden-size": "network.hidden",
    "env": "game",
    "env-id": "game",
    "env-name": "game",
}
"""Their name -> ours. What they mean is the same."""


def in_our_names(arguments: list[str], own: Callable[[], Collection[str]] = tuple) -> list[str]:
    """The arguments with our names of options. What was renamed is said on standard error.

    own: the options of the command, asked for only where a name could be another's: a learner of
    the user's own may have a field of that name.
    """
    renamed = []
    for argument in arguments:
        name, equals, value = argument[2:].partition("=")
        ours = ALIASES.get(name.replace("_", "-")) if argument.startswith("--") else None
        if ours is not None and f"--{name.replace('_', '-')}" not in own():
            print(f"note: --{name} is --{ours} here", file=sys.stderr)
            argument = f"--{ours}{equals}{value}"
        renamed.append(argument)
    return renamed
