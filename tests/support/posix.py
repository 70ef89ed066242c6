"""POSIX: modules that Windows does not have, so that a test file can be collected there.

The tests that use them are skipped by name (tests/windows/skipped.toml).
"""

import importlib
import os
import shutil
import signal
import sys
from pathlib import Path
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


def dying_with_us(number: str) -> list[str]:
    """Return what to put before a command so that it gets a signal when our process dies, however that is.

    A run of tests that is killed would leave its servers behind. Where the system cannot, they stay.
    """
    program = shutil.which("setpriv") if sys.platform == "linux" else None
    return [] if program is None else [program, "--pdeathsig", number, "--"]


def read_title(pid: int) -> bytes:
    """Return what others see of a process: its command and its name; nothing where only it can be asked."""
    process = Path(f"/proc/{pid}")
    if sys.platform != "linux":
        return b""
    return (process / "cmdline").read_bytes() + (process / "comm").read_bytes()


KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""What ends a process at once; on Windows every signal that is sent does."""


def is_private(path: Path) -> bool:
    """Tell whether only its owner can look into something; on Windows its place decides that, not a mode."""
    return sys.platform == "win32" or not path.stat().st_mode & 0o077


is_root = hasattr(os, "geteuid") and os.geteuid() == 0
