"""Machine: the system and folders of a machine, and the command that starts Bridgehead on it."""

from __future__ import annotations

import shlex
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

from msgspec import Struct

from bridgehead import __spec__ as package

from .errors import InstallError

_UV_CACHE_FOLDERS = ("archive-v0", "environments-v2")
"""Folders of uv's cache from which `uvx` runs a program; uv may delete them at any time."""


class Machine(Struct, frozen=True):
    """A machine as a value, so that tests can describe another one. `platform` is a `sys.platform`."""

    platform: str
    home: str
    folder: str
    environment: Mapping[str, str]

    @classmethod
    def here(cls, environment: Mapping[str, str]) -> Machine:
        """Describe the machine that this runs on."""
        home = environment.get("USERPROFILE" if sys.platform == "win32" else "HOME") or str(Path.home())
        return cls(sys.platform, home, str(Path.cwd()), environment)

    @property
    def is_windows(self) -> bool:
        """Whether the machine runs Windows."""
        return self.platform == "win32"

    def path(self, *parts: str) -> PurePath:
        """Return a path as this system writes it."""
        return PureWindowsPath(*parts) if self.is_windows else PurePosixPath(*parts)

    def root(self, name: str) -> PurePath:
        """Return a folder under which clients keep their configuration."""
        variable, fallback = {
            "home": ("", self.path(self.home)),
            "project": ("", self.path(self.folder)),
            "config": ("XDG_CONFIG_HOME", self.path(self.home, ".config")),
            "roaming": ("APPDATA", self.path(self.home, "AppData", "Roaming")),
            "local": ("LOCALAPPDATA", self.path(self.home, "AppData", "Local")),
            "support": ("", self.path(self.home, "Library", "Application Support")),
            "claude": ("CLAUDE_CONFIG_DIR", self.path(self.home)),
            "codex": ("CODEX_HOME", self.path(self.home, ".codex")),
        }[name]
        configured = self.path(self.environment.get(variable, "")) if variable else fallback
        # A relative path would mean another folder to the client, which is started elsewhere.
        return configured if configured.is_absolute() else fallback


def installed_command() -> tuple[str, ...]:
    """Return the command that starts this installation; it still works after uv cleans its cache."""
    archive = getattr(getattr(package, "loader", None), "archive", None)
    name = "bridgehead.exe" if sys.platform == "win32" else "bridgehead"
    return make_lasting(choose_command(Path(sysconfig.get_path("scripts"), name), sys.executable, archive))


def choose_command(script: Path, python: str, archive: str | None) -> tuple[str, ...]:
    """Return the zipapp if there is one, else the installed script, else `python -m bridgehead`."""
    if archive is not None:
        return python, str(Path(archive).absolute())
    return (str(script),) if script.is_file() else (python, "-m", "bridgehead")


def named_command(text: str, *, is_windows: bool) -> tuple[str, ...]:
    """Return the command in --command, with the full path of its program."""
    if Path(text).is_file():
        return (str(Path(text).absolute()),)
    try:
        words = shlex.shlex(text, posix=True, punctuation_chars=False)
        words.whitespace_split = True
        words.commenters = ""
        if is_windows:  # there only " quotes, and a backslash is part of a path
            words.escape, words.quotes = "", '"'
        program, *arguments = words
    except ValueError:
        program, arguments = "", []
    path = shutil.which(program) if program else None
    if path is None:
        raise InstallError(
            f"--command {text!r} is not a program on this machine.",
            next_step="Name a file, or a program that your shell finds.",
        )
    return str(Path(path).absolute()), *arguments


def make_lasting(command: tuple[str, ...]) -> tuple[str, ...]:
    """Replace a command inside uv's cache, which may vanish, by one that starts it through `uvx`."""
    if not any(part in _UV_CACHE_FOLDERS for word in command for part in PurePath(word).parts):
        return command
    uvx = shutil.which("uvx")
    if uvx is None:
        raise InstallError(
            "This installation is in uv's cache and may be deleted at any time.",
            next_step="Run `uv tool install bridgehead` first, or name what to start with --command.",
        )
    return uvx, "bridgehead"
