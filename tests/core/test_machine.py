"""What a program runs on."""

import os
import platform
from pathlib import Path

import pytest

from coplay.core import machine as module
from coplay.core.machine import allowed_memory, free_memory, machine


def test_no_name_of_the_machine_is_told() -> None:
    told = machine()
    assert told["cores"] == os.cpu_count() and told["cpu"]
    assert not platform.node() or platform.node() not in str(told)


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


def test_memory_is_what_the_group_of_a_job_may_still_take(tmp_path: Path) -> None:
    """A job of 1000 bytes in a group of 5000; files in memory are given up where it is short."""
    write(tmp_path / "proc/self", cgroup="0::/slurm/job_7")
    groups = tmp_path / "sys/fs/cgroup"
    write(groups / "slurm", memory__max="5000", memory__current="1000")
    write(
        groups / "slurm/job_7",
        memory__max="1000",
        memory__current="700",
        memory__stat="anon 300\ninactive_file 400",
    )
    write(groups, memory__max="max", memory__current="9000")
    assert sorted(allowed_memory(tmp_path)) == [700, 4000]


def test_memory_in_a_container_of_the_first_version(tmp_path: Path) -> None:
    """The group's path is that of the system around it, and not there."""
    write(tmp_path / "proc/self", cgroup="4:memory:/docker/abc\n3:cpuset:/\n0::/")
    write(
        tmp_path / "sys/fs/cgroup/memory",
        memory__limit_in_bytes="2000",
        memory__usage_in_bytes="500",
        memory__stat="total_inactive_file 100",
    )
    assert allowed_memory(tmp_path) == [1600]


def test_no_groups_and_no_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert allowed_memory(tmp_path) == []
    monkeypatch.setattr(module, "allowed_memory", lambda: [])
    assert free_memory() > 2**20
    monkeypatch.setattr(module, "allowed_memory", lambda: [5])
    assert free_memory() == 5
