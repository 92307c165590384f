"""coplay doctor: what is installed here, and what computes."""

from dataclasses import dataclass

from coplay.cli.arguments import parse


@dataclass(frozen=True)
class DoctorArguments:
    """Say which versions, devices, threads and cache are used here, and which optional parts are
    installed.

    Exit code 0: it can compute; 1: it cannot, and the first line says why."""

    json: bool = False
    """Print it as one JSON object on standard output."""


def run(arguments: list[str]) -> int:
    """coplay doctor"""
    given = parse(DoctorArguments, arguments, "doctor", computes=False)
    from coplay.api.doctor import doctor, print_doctor
    from coplay.reports.results import print_json

    found = doctor()
    if given.json:
        print_json(found)
    else:
        print_doctor(found)
    return 0 if found["problem"] is None else 1
