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
    """Bytes of memory that no program has taken, where the system says it; else all there is."""
    info = Path("/proc/meminfo")
    lines = info.read_text().splitlines() if info.exists() else []
    for line in lines:
        name, _, size = line.partition(":")
        if name == "MemAvailable":
            return 1024 * int(size.split()[0])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
