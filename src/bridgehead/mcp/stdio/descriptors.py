"""Descriptors: what a file descriptor is, and with that how it can be waited for."""

from __future__ import annotations

import os
import stat
import sys


def is_watchable(descriptor: int) -> bool:
    """Tell whether the event loop can watch a descriptor."""
    mode = os.fstat(descriptor).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))
