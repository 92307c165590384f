"""coplay presets: settings by name, and what they reproduce."""

import sys
from dataclasses import dataclass
from typing import Annotated

import tyro

from coplay.cli.arguments import parse


@dataclass(frozen=True)
class PresetsArguments:
    """List the presets of coplay train, or print the configuration of one."""

    name: Annotated[str, tyro.conf.Positional] = ""
    """The preset to print as a TOML file with what every field means; without one, all are
    listed."""
    json: bool = False
    """Print a JSON list on standard output."""


def run(arguments: list[str]) -> int:
    """coplay presets [NAME]"""
    given: PresetsArguments = parse(PresetsArguments, arguments, "presets", computes=False)

    from coplay.core.errors import unknown
    from coplay.reports.results import print_json
    from coplay.training.config_file import as_toml
    from coplay.training.presets import from_preset, presets

    if given.name and given.name not in presets():
        raise unknown("preset", given.name, presets())
    chosen = [preset for preset in presets().values() if given.name in ("", preset.name)]
    if given.json:
        print_json([preset._asdict() for preset in chosen])
    elif given.name:
        sys.stdout.write(as_toml(from_preset(given.name, chosen[0].players[0])))
    else:
        print("coplay train PLAYER --preset NAME; other options override it\n")
        for preset in chosen:
            print(f"{preset.name}: {' or '.join(preset.players)} on {preset.game}")
            print(f"    {preset.reproduces}")
            at = f" at commit {preset.commit[:12]}" if preset.commit else ""
            print(f"    from {preset.source}{at}: {', '.join(preset.files)}")
            if preset.differs:
                print(f"    differs: {preset.differs}")
    return 0
