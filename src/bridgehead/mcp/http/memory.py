"""Memory: how much this process uses and may use. Known on Linux only."""

from __future__ import annotations

import os
from pathlib import Path

UNLIMITED = 1 << 62
_CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Version 2, then version 1; a container sees its own group here."""


def resident_bytes() -> int:
    """Return the memory that this process uses; 0 if unknown."""
    try:
        with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123 - a third of the time, and it is read often
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, AttributeError):  # no /proc, or no sysconf
        return 0


def available_bytes() -> int:
    """Return the memory of the control group or of the machine, whichever is less."""
    try:
        limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        limits = [UNLIMITED]
    for path in _CGROUP_LIMITS:
        try:
            text = path.read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():  # "max" means no limit
            limits.append(int(text))
    return min(limits)
