"""coplay audit: a table of audits."""

from importlib import import_module

from coplay.cli.help import HELP
from coplay.core.errors import unknown

AUDITS = {"seats": "audit_seats", "wiring": "audit_wiring"}
"""name -> its module in `coplay.cli`."""


def run(arguments: list[str]) -> int:
    """coplay audit seats …, coplay audit wiring …"""
    if not arguments or arguments[0] in HELP:
        print(f"usage: coplay audit {'|'.join(AUDITS)} …\n\nadd --help for all options")
        return 0
    if arguments[0] not in AUDITS:
        raise unknown("audit", arguments[0], AUDITS)
    return import_module(f"coplay.cli.{AUDITS[arguments[0]]}").run(arguments[1:])
