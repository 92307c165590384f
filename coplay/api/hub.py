"""Exported players on the Hugging Face hub: one file and its card in a repository.

`huggingface_hub` (extra `hub`) does the talking and knows who you are. `HF_ENDPOINT` names another
server than the public one.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from coplay.core.errors import UserError, how_to_install

PREFIX = "hf:"
FILE = "player.npz"
"""The name of a player's file in its repository."""
MOST_BYTES = 1 << 30
"""Of a file that is downloaded."""


class HubPlace(NamedTuple):
    """A repository of the hub. revision: a branch, tag or commit; None: the newest."""

    repository: str
    revision: str | None = None

    def __str__(self) -> str:
        return f"{PREFIX}{self.repository}" + (f"@{self.revision}" if self.revision else "")


def is_on_hub(text: str) -> bool:
    """Whether a text names a place on the hub."""
    return text.startswith(PREFIX)


def parse_place(text: str) -> HubPlace:
    """A text such as `hf:OWNER/NAME` or `hf:OWNER/NAME@REVISION`."""
    name, at, revision = text.removeprefix(PREFIX).partition("@")
    word = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?"
    if not is_on_hub(text) or not re.fullmatch(f"{word}/{word}", name) or (at and not revision):
        raise UserError(f"'{text}': a place on the hub is hf:OWNER/NAME or hf:OWNER/NAME@REVISION")
    return HubPlace(name, revision or None)


def upload(file: Path, page: str, place: HubPlace, private: bool) -> str:
    """Put a player's file and the page about it into a repository, which is made if there is none;
    the address of the commit."""
    hub = _library()
    if place.revision is not None:
        raise UserError(f"'{place}': a player is uploaded to the newest state: leave out the @")
    api = hub.HfApi(endpoint=_endpoint(), library_name="coplay")
    with _said(place):
        api.create_repo(place.repository, private=private, exist_ok=True)
        done = api.create_commit(
            place.repository,
            [
                hub.CommitOperationAdd(FILE, str(file)),
                hub.CommitOperationAdd("README.md", page.encode()),
            ],
            commit_message="Add a player of coplay",
        )
    return str(done.commit_url)


def download(place: HubPlace, folder: Path) -> Path:
    """Get a player's file into a folder."""
    hub = _library()
    where = {"revision": place.revision, "endpoint": _endpoint()}
    with _said(place):
        url = hub.hf_hub_url(place.repository, FILE, **where)
        size = hub.get_hf_file_metadata(url, endpoint=_endpoint()).size
        if size is None or size > MOST_BYTES:
            raise UserError(
                f"{place} has {size or 'unknown':,} bytes; at most {MOST_BYTES:,} are read"
            )
        # Not into the library's cache, whose files are links: those are refused by our readers.
        return Path(hub.hf_hub_download(place.repository, FILE, local_dir=folder, **where))


def _endpoint() -> str | None:
    return os.environ.get("HF_ENDPOINT") or None


def _library() -> ModuleType:
    try:
        import huggingface_hub
    except ModuleNotFoundError as error:
        raise UserError(
            f"the hub needs huggingface_hub, which is not installed: {how_to_install('hub')}"
        ) from error
    return huggingface_hub


@contextmanager
def _said(place: HubPlace) -> Iterator[None]:
    """Whatever goes wrong with the hub is one sentence."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        # The library raises errors of its own, of its HTTP client, and of the system.
        status = getattr(getattr(error, "response", None), "status_code", None)
        words = " ".join(str(error).split())[:300] or type(error).__name__
        if status in (401, 403) or type(error).__name__ == "LocalTokenNotFoundError":
            hint = "; log in with `hf auth login`, or set HF_TOKEN"
        elif status == 404:
            hint = f"; is there such a repository, with a file {FILE}?"
        else:
            hint = ""
        raise UserError(f"{place}: the hub says: {words}{hint}") from error
