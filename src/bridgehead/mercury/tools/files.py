"""Files by reference: read the files that a call names, only inside the client's roots.

Off unless MERCURY_FILES is set, because the server reads files for any caller. A name is relative to a root,
or a whole path inside of one. Every step from the root to the file is opened without following links, so
neither `..`, a link nor a rename in between can lead outside, and only regular files are read. System files
are refused: `/proc/self/environ` is a regular file with the keys of this server in it.
"""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from urllib.parse import urlsplit

from bridgehead.mcp import Context, list_roots

from ..calling.service import Service
from ..errors import MercuryError
from .prompts import fence

MAX_FILE_BYTES = 200 * 1024
"""The largest file that a call can name. Five fit into the largest arguments, 1 MiB by default."""
_WALKS = os.open in os.supports_dir_fd
"""Whether a file can be opened relative to an open folder; false on Windows."""
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_SYSTEM_FOLDERS = ("/proc/", "/sys/", "/dev/")
# O_NONBLOCK: opening a named pipe without a writer would block for ever.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


async def read_files(names: list[str], ctx: Context[Service]) -> list[str]:
    """Return the texts of the files in order; raises `MercuryError`."""
    settings = ctx.state.settings
    if not settings.files:
        raise _refuse("files", "this server does not read files", "Paste the text, or set MERCURY_FILES=1.")
    if not ctx.can_ask(list_roots()):
        raise _refuse("files", "this client offers no roots to read in", "Paste the text instead.")
    from urllib.request import url2pathname

    folders = []
    for root in await ctx.roots():
        url = urlsplit(root.uri)
        if url.scheme != "file" or url.netloc not in ("", "localhost"):
            continue
        folder = url2pathname(url.path)
        if folder and not folder.startswith("\\\\"):  # not a network share (Windows)
            folders.append(folder)
    return [await asyncio.to_thread(_read, folders, name) for name in names]


def quote_files(names: list[str], texts: list[str]) -> str:
    """Return the files as text for a prompt, each under its name in a code fence."""
    return "\n\n".join(f"{name}:\n{fence(text, '')}" for name, text in zip(names, texts, strict=True))


def _split(name: str, folder: str) -> list[str] | None:
    """Return the path components from a root to a file; None if the name is not inside of that root."""
    path = name.replace("\\", "/")
    if os.path.isabs(name):  # noqa: PTH117 - pathlib loads slowly
        root = folder.replace("\\", "/").rstrip("/") + "/"
        # Compare as the disk does: without case on Windows.
        if os.path.normcase(path[: len(root)]) != os.path.normcase(root):
            return None
        path = path[len(root) :]
    steps = [step for step in path.split("/") if step != "."]
    is_elsewhere = path.startswith(("/", "~")) or ":" in steps[0] if steps else True
    return None if is_elsewhere or not all(steps) or ".." in steps or "\0" in path else steps


def _read(folders: list[str], name: str) -> str:
    # A whole path may name the root as the client does, or as the system does (on macOS, /tmp is a link).
    roots = [(folder, os.path.realpath(folder)) for folder in folders]
    places = [
        (real, steps) for folder, real in roots if (steps := _split(name, folder) or _split(name, real))
    ]
    if not places:
        raise _refuse(name, "it is not a path inside of a root", "Give it relative to a root, without `..`.")
    for folder, steps in places:
        if os.path.join(folder, *steps).startswith(_SYSTEM_FOLDERS):  # noqa: PTH118
            raise _refuse(name, "it is a file of the system, not of a user")
        try:
            file = _open(folder, steps)
        except FileNotFoundError:
            continue
        except OSError as problem:
            # A link gives ELOOP on Linux, ENOTDIR or EACCES on other systems.
            raise _refuse(name, f"it cannot be opened ({problem.strerror}); links are not followed") from None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise _refuse(name, "it is not a regular file")
        with os.fdopen(file, "rb") as opened:
            data = opened.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise _refuse(name, f"it has more than {MAX_FILE_BYTES:,} bytes", "Paste the part that matters.")
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise _refuse(name, "it is not UTF-8 text") from None
    raise _refuse(name, "there is no such file in the client's roots")


def _open(folder: str, steps: list[str]) -> int:
    """Open a file component by component without following links; the root is trusted and may be a link."""
    if not _WALKS:
        return _open_resolved(folder, steps)
    *folders, file = steps
    parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for step in folders:
            # Relative to the open folder, so that renaming a folder above it cannot lead elsewhere.
            child = os.open(step, os.O_RDONLY | os.O_DIRECTORY | _NO_FOLLOW, dir_fd=parent)
            os.close(parent)
            parent = child
        return os.open(file, _READ | _NO_FOLLOW, dir_fd=parent)
    finally:
        os.close(parent)


def _open_resolved(folder: str, steps: list[str]) -> int:
    """Open a file by its path after checking for links: weaker than `_open` against a rename in between."""
    if any(":" in step for step in steps):
        raise OSError(0, "a part of a file is not a file")  # `a.txt:b`, a stream of `a.txt`
    root = Path(folder).resolve()
    path = root.joinpath(*steps)
    resolved = path.resolve(strict=True)
    # Compare resolved paths, because the case of a name may differ from the one on the disk.
    if not resolved.is_relative_to(root) or any(step.is_symlink() for step in (path, *path.parents)):
        raise OSError(0, "it leads outside of the root")
    return os.open(resolved, _READ)


def _refuse(name: str, why: str, next_step: str | None = None) -> MercuryError:
    return MercuryError("FILE_NOT_READABLE", f"The file {name!r} cannot be read: {why}.", next_step=next_step)
