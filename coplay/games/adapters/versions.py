"""Which release, or which commit, of another library a game is played with."""

import json
from importlib import metadata

DISTRIBUTIONS = {
    "jaxmarl": "jaxmarl",
    "smax": "jaxmarl",
    "smac": "smac",
    "smacv2": "smacv2",
    "smaclite": "smaclite",
    "meltingpot": "dm-meltingpot",
}
"""Family of a game -> the installed distribution that plays it."""


def library_versions(game: str) -> dict[str, str]:
    """The library behind a game by its name, and what is installed of it: a version, and the commit
    if it was installed from a repository. Empty for games of our own."""
    family, _, rest = game.partition(":")
    name = DISTRIBUTIONS.get(family)
    if family == "pettingzoo":
        name = rest.partition(":")[0].partition(".")[0]
    if not name:
        return {}
    try:
        found = metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        return {}  # a module of the user's own, or a stand-in
    return {name: found.version + _commit(found)}


def _commit(found: metadata.Distribution) -> str:
    """What pip noted of where it took a distribution from."""
    try:
        noted = json.loads(found.read_text("direct_url.json") or "{}")
        commit = str(noted["vcs_info"]["commit_id"])
    except (KeyError, TypeError, ValueError):
        return ""
    return f" (commit {commit[:12]})"
