"""What a program runs on."""

import os
import platform
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """Processor, cores and system, without names of the machine or its user."""
    return {"cores": os.cpu_count(), "cpu": cpu_model(), "system": platform.system()}


def cpu_model() -> str:
    """The model of the processor, where the system says it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def free_memory() -> int:
    """Bytes of memory that this program may still take: what no program has taken, where the system
    says it, else all there is; and no more than its control groups allow."""
    return min([_unused(), *allowed_memory()])


def _unused() -> int:
    info = Path("/proc/meminfo")
    lines = info.read_text().splitlines() if info.exists() else []
    for line in lines:
        name, _, size = line.partition(":")
        if name == "MemAvailable":
            return 1024 * int(size.split()[0])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


GROUPS = {
    "": ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    "memory": (
        "sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
}
"""Of both versions of Linux's control groups: where they lie, the files of limit and use, and what
of the use is files that the system gives up when memory is short."""


def allowed_memory(root: Path = Path("/")) -> list[int]:
    """Bytes that each control group of this process may still take, as jobs of a cluster and
    containers are limited; groups without a limit are left out."""
    found = []
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        for kind in set(controllers.split(",")) & set(GROUPS):
            home, limit, use, kept = GROUPS[kind]
            top = root / home
            # In a container the path may be that of the system around it.
            folder = top / path.lstrip("/")
            for group in (one for one in (folder, *folder.parents) if one.is_relative_to(top)):
                given = _lines(group / limit)
                if not given or not given[0].isdigit():
                    continue
                stat = dict(one.split() for one in _lines(group / "memory.stat"))
                used = int(_lines(group / use)[0]) - int(stat.get(kept, 0))
                found.append(max(0, int(given[0]) - used))
    return found


def _lines(file: Path) -> list[str]:
    """The lines of a file of the system; none where it cannot be read."""
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
