"""Isolation: the view of the system that a program gets under bubblewrap.

The system is read-only; homes, temporary folders, /run and the hidden folders are empty. The program has a
process namespace of its own, so all its children end with it. Without bubblewrap, or if the system forbids
namespaces, there is no isolation: `find_bubblewrap` returns None, and the caller tells the user.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import gettempdir

from msgspec import Struct

_PROBE_SECONDS = 20.0
_TOOLCHAINS = (
    ".cargo/bin",
    ".rustup",
    ".pyenv",
    ".nvm",
    ".sdkman",
    ".asdf",
    ".bun",
    ".deno",
    ".dotnet",
)
"""Where people install languages below their home; shown read-only."""


# Services listen on sockets in /run; through Docker's, a program could leave any isolation.
_EMPTY = tuple(map(Path, ("/tmp", "/var/tmp", "/dev/shm", "/run", "/home", "/root")))  # noqa: S108 - hidden
_SHOWN = tuple(map(Path, ("/run/systemd/resolve", "/run/NetworkManager/resolv.conf", "/run/current-system")))
"""Needed for DNS, and the programs of NixOS."""


class View(Struct, frozen=True):
    """What an isolated program sees in addition to the system."""

    folder: Path
    """The only folder that it can write to."""
    readable: tuple[Path, ...] = ()
    """Shown read-only although they are in the home directory or a temporary one."""
    hidden: tuple[Path, ...] = ()
    """Empty inside, wherever they are."""
    has_network: bool = False
    current: Path | None = None
    """Its current directory, if not `folder` itself."""

    @property
    def start(self) -> Path:
        """The current directory that the program starts in."""
        return self.current or self.folder


@cache
def find_bubblewrap() -> str | None:
    """Return bubblewrap's path; None if it is missing or may not create namespaces."""
    path = shutil.which("bwrap") if sys.platform == "linux" else None
    if path is None:
        return None
    command = [path, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "true"]
    try:
        probe = subprocess.run(command, capture_output=True, timeout=_PROBE_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    return path if probe.returncode == 0 else None


def isolate(bubblewrap: str, command: list[str], view: View) -> list[str]:
    """Return the command that runs another one in isolation."""
    home = Path.home()
    arguments = [bubblewrap, "--unshare-all", *(("--share-net",) if view.has_network else ())]
    # Die with the parent: killing bubblewrap, even by SIGKILL, ends the whole namespace.
    arguments += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    arguments += ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    # Temporary folders may be elsewhere, and other runs keep answers in theirs.
    for path in (*_EMPTY, Path(gettempdir()), home):
        if path.is_dir():
            arguments += ["--tmpfs", str(path)]
    for path in (*_SHOWN, *(home / name for name in _TOOLCHAINS), *view.readable):
        arguments += ["--ro-bind-try", str(path), str(path)]
    # Hidden folders come after visible ones: a solver may be in the folder whose answers are hidden. Links
    # are resolved: otherwise the answers could be read at their targets.
    for path in (hidden.resolve() for hidden in view.hidden):
        if path.is_dir():
            arguments += ["--tmpfs", str(path)]
        elif path.exists():
            arguments += ["--ro-bind", os.devnull, str(path)]
    arguments += ["--bind", str(view.folder), str(view.folder), "--chdir", str(view.start)]
    return [*arguments, "--", *command]


def find_parts(command: list[str], folder: Path) -> tuple[list[str], list[Path]]:
    """Make the paths in a command absolute; return it with the folders that it needs to be run.

    A word that names a file relative to `folder`, or a folder with a slash (`./day01`), becomes its path, so
    that it works from another directory.
    """
    # Folders that are never shown as a whole.
    shared = {*_EMPTY, Path(gettempdir()), Path.home(), *Path.home().parents}
    words, needed = [], []
    for place, word in enumerate(command):
        path = folder / word
        # The first word is looked for in PATH, unless it has a slash.
        # `os.path`, because a program given as an argument is too long for a file name.
        is_file = os.path.isfile(path) and (place > 0 or os.sep in word)  # noqa: PTH113
        # A word without a slash, such as `1`, may not mean the folder of that name.
        is_folder = place > 0 and os.sep in word and os.path.isdir(path)  # noqa: PTH112
        program = str(path) if is_file or is_folder else shutil.which(word) if place == 0 else None
        # Windows starts `claude.cmd` only by its whole name.
        is_whole = is_file or is_folder or (sys.platform == "win32" and place == 0)
        words.append(program if is_whole and program else word)
        if program is None:
            continue
        # Both ends of a link: a virtual environment's Python is a link to the real one.
        for end in (Path(program), Path(program).resolve()):
            shown = end if is_folder else end.parent.parent if end.parent.name == "bin" else end.parent
            # A program from npm also needs the packages next to its own.
            if "node_modules" in end.parts:
                shown = Path(*end.parts[: end.parts.index("node_modules") + 1])
            if shown not in shared:
                needed.append(shown)
            elif not is_folder:
                needed.append(end)
    return words, needed
