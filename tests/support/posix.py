"""POSIX: modules that Windows does not have, so that a test file can be collected there.

The tests that use them are skipped by name (tests/windows/skipped.toml).
"""

import importlib
import os
from typing import Any


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


fcntl = _import("fcntl")
pty = _import("pty")
resource = _import("resource")
termios = _import("termios")
tty = _import("tty")
is_root = hasattr(os, "geteuid") and os.geteuid() == 0
