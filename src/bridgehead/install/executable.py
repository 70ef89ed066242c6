"""Executable: the command that starts Bridgehead, in full, because a client starts it from anywhere."""

from __future__ import annotations

import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

from bridgehead import __spec__ as package

from .failure import InstallError

_FLEETING = ("archive-v0", "environments-v2")
"""Folders of uv's cache, in which `uvx` runs a program: they come and go."""


def installed() -> tuple[str, ...]:
    """Return the command of the installation that is running."""
    archive = getattr(getattr(package, "loader", None), "archive", None)
    name = "bridgehead.exe" if sys.platform == "win32" else "bridgehead"
    return found(Path(sysconfig.get_path("scripts"), name), sys.executable, archive)


def found(script: Path, python: str, archive: str | None) -> tuple[str, ...]:
    """Return the script, or what does the same where there is none."""
    if archive is not None:
        return python, str(Path(archive).absolute())
    return (str(script),) if script.is_file() else (python, "-m", "bridgehead")


def named(text: str, *, is_windows: bool) -> tuple[str, ...]:
    """Return a command that a person named, with the full path of its program."""
    if Path(text).is_file():
        return (str(Path(text).absolute()),)
    try:
        program, *arguments = shlex.split(text, posix=not is_windows)
    except ValueError:
        program, arguments = "", []
    path = shutil.which(program) if program else None
    if path is None:
        raise InstallError(
            f"--command {text!r} is no program that can be run here.",
            next_step="Name a file, or a program that your shell finds.",
        )
    return str(Path(path).absolute()), *arguments


def is_fleeting(command: tuple[str, ...]) -> bool:
    """Tell whether a command may be gone tomorrow."""
    return any(part in _FLEETING for word in command for part in Path(word).parts)
