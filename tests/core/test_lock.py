"""One writer per folder; the lock ends with its process."""

import subprocess
import sys
from pathlib import Path

import pytest

from coplay.core.errors import UserError
from coplay.core.lock import Lock, is_held

HOLD = "import sys; from pathlib import Path; from coplay.core.lock import Lock\n"
HOLD += "lock = Lock(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"


def test_the_second_writer_is_told_who_holds_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with pytest.raises(UserError, match=rf"being written by process {holder.pid} on .* since "):
        Lock(tmp_path)
    holder.kill()
    holder.wait()
    Lock(tmp_path).release()  # no file has to be removed by hand


def test_released_locks_can_be_taken(tmp_path: Path) -> None:
    first = Lock(tmp_path)
    with pytest.raises(UserError, match="being written"):
        Lock(tmp_path)
    first.release()
    Lock(tmp_path).release()


def test_a_folder_in_which_nothing_was_written_disappears(tmp_path: Path) -> None:
    Lock(tmp_path / "a" / "b").release(discard=True)
    assert list(tmp_path.iterdir()) == []
    lock = Lock(tmp_path / "a")
    (tmp_path / "a" / "config.json").write_text("{}")
    lock.release(discard=True)
    assert (tmp_path / "a" / "config.json").exists()


@pytest.mark.parametrize("name", ["x" * 300, "file/below"])
def test_folders_that_cannot_be_made_are_a_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write in"):
        Lock(tmp_path / name)


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("keep")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / "mine")
    with pytest.raises(UserError, match="cannot write in"):
        Lock(tmp_path / "run")
    assert (tmp_path / "mine").read_text() == "keep"


def test_whether_a_lock_is_held_is_told_without_taking_it(tmp_path: Path) -> None:
    assert not is_held(tmp_path / "run")
    lock = Lock(tmp_path / "run")
    assert is_held(tmp_path / "run")
    lock.release()
    assert not is_held(tmp_path / "run") and (tmp_path / "run" / ".lock").exists()
