"""coplay config: a run's configuration as a file, with what every field means."""

import sys
from pathlib import Path

from coplay.cli.arguments import option
from coplay.cli.help import HELP
from coplay.cli.train import configured
from coplay.core.errors import UserError


def run(arguments: list[str]) -> int:
    """coplay config PLAYER … : what coplay train PLAYER … would run."""
    from coplay.training.config_file import SUFFIXES, YAML, as_toml, as_yaml

    if not arguments or arguments[0] in HELP:
        from coplay.algorithms.registry import LEARNERS

        print("usage: coplay config PLAYER … --out FILE.toml|FILE.yaml\n")
        print(f"players: {', '.join(LEARNERS)}")
        print("It takes all options of coplay train PLAYER, and writes them with what they mean.")
        print("coplay train PLAYER --config FILE runs it. Without --out it is printed, in TOML.")
        return 0
    out = option(arguments, "out")
    if out is not None and Path(out).exists():
        raise UserError(f"{out} is there already; choose another --out")
    if out is not None and not out.endswith(SUFFIXES):
        raise UserError(
            f"the name must end in .toml or .yaml, as {out}.toml: --config knows files by it"
        )
    given, config, _ = configured(arguments)
    text = as_yaml(config) if out is not None and out.endswith(YAML) else as_toml(config)
    if given.out is None:
        sys.stdout.write(text)
    else:
        given.out.write_text(text)
        print(f"coplay train {config.player} --config {given.out}")
    return 0
