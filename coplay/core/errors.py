"""Errors that a user can act on, and the nearest valid name for a mistyped one."""

import difflib
from collections.abc import Iterable

OWN = "own {0}s are known after coplay.register_{0}, or with --load FILE_OR_MODULE"
"""What to add to an error about an unknown game, player or learner."""


class UserError(ValueError):
    """Something the user asked for cannot be done; the message says what, where, and what to do.

    The command line prints the message alone and exits with code 2.

        try:
            coplay.make_game("stag-hnt")
        except coplay.UserError as error:
            print(error)  # unknown game 'stag-hnt': did you mean 'stag-hunt'? …
    """


def unknown(kind: str, name: str, valid: Iterable[str]) -> UserError:
    """An error for a name that is not among the valid ones, with the nearest of them."""
    valid = sorted(valid)
    near = difflib.get_close_matches(name, valid, n=1, cutoff=0.4)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return UserError(f"unknown {kind} '{name}': {hint}valid: {', '.join(valid)}")


class WorkerFailed(RuntimeError):
    """An environment in a worker process raised, crashed or hung; the message says which one, at
    which step, with its traceback. All workers are gone then."""


class RunStopped(Exception):
    """A run that could not go on; the message says why and where it can be taken up."""


class Interrupted(Exception):
    """A run that was asked to stop and did so after saving."""
