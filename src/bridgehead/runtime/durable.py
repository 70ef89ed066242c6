"""Durable: replaces a file so that at every moment either the old or the new content is there, complete.

The new content goes to a temporary file beside the old one, is flushed to the disk and renamed; then the
folder is flushed, so that the new name survives a power cut too. A killed process leaves nothing but
temporary files, which `sweep` removes. Locking against other writers is up to the caller.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
Result = TypeVar("Result")

_PRIVATE = 0o600
_PREFIX = ".bridgehead-"
_SUFFIX = ".tmp"
_STRAY_SECONDS = 60.0
"""A temporary file older than this has lost its writer: writing one takes far less."""
_HELD_OPEN = (5, 32)
"""Windows error codes for a file that another process has open: access denied, sharing violation."""
_HELD_SECONDS = 2.0
_FIRST_PAUSE = 0.001
_LONGEST_PAUSE = 0.05


def replace(
    path: Path,
    data: bytes,
    *,
    mode: int = _PRIVATE,
    like: os.stat_result | None = None,
    share: int = 0,
    flushes: bool = True,
) -> None:
    """Replace a file; it is on the disk when this returns. After an OSError the old one is intact.

    The new file gets the mode and group of `like`, if that is given. `share` are mode bits that a new file
    has beside `mode`, whatever the umask. Without `flushes` the file survives the end of the process, but a
    power cut only once `flush_file` and `flush_folder` have been called.
    """
    temporary = path.with_name(f"{_PREFIX}{os.urandom(8).hex()}{_SUFFIX}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        with suppress(OSError):  # the writer may not be a member of the old group
            give_rights(descriptor, like, share)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            if flushes:
                flush(descriptor)
        finally:
            os.close(descriptor)
        retry_while_locked(os.replace, temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if flushes:
        flush_folder(path.parent)


def retry_while_locked(act: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """Retry a file operation on Windows while another process has the file open.

    There a file that a reader or a virus scanner has open cannot be replaced or removed, and one that is
    being replaced cannot be opened. Both pass within moments. On other systems a refusal is final.
    """
    until = time.monotonic() + _HELD_SECONDS
    pause = _FIRST_PAUSE
    while True:
        try:
            return act(*args, **kwargs)
        except PermissionError as failure:
            # Functions of the C library, such as `open`, do not pass on Windows' own code.
            is_held = getattr(failure, "winerror", None) in _HELD_OPEN or sys.platform == "win32"
            if not is_held or time.monotonic() > until:
                raise
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def read(path: Path) -> bytes:
    """Return the content of a file, also while it is being replaced."""
    # Reading a folder always fails, with the error code of a locked file: do not retry.
    is_folder = sys.platform == "win32" and path.is_dir()
    return path.read_bytes() if is_folder else retry_while_locked(path.read_bytes)


def remove(path: Path) -> None:
    """Remove a file, if it exists, as soon as no other process has it open."""
    retry_while_locked(path.unlink, missing_ok=True)


def give_rights(descriptor: int, like: os.stat_result | None, share: int) -> None:
    """Give an open file the group and mode of another, or rights that the umask took away."""
    own = os.fstat(descriptor)
    if like is not None and like.st_gid != own.st_gid and hasattr(os, "fchown"):
        os.fchown(descriptor, -1, like.st_gid)  # before the mode: chown clears some of its bits
    mode = own.st_mode | share if like is None else like.st_mode
    if mode != own.st_mode and hasattr(os, "fchmod"):
        os.fchmod(descriptor, mode & 0o7777)


def flush(descriptor: int) -> None:
    """Flush a file to the disk itself: on macOS, fsync alone leaves it in the drive's cache."""
    try:
        import fcntl
    except ImportError:  # Windows
        os.fsync(descriptor)
        return
    whole = getattr(fcntl, "F_FULLFSYNC", None)
    if whole is not None:
        with suppress(OSError):  # network drives do not support it
            fcntl.fcntl(descriptor, whole)
            return
    os.fsync(descriptor)


def flush_file(path: Path) -> None:
    """Flush a file that was replaced without it."""
    # For writing: Windows flushes no other.
    descriptor = os.open(path, os.O_RDWR)
    try:
        flush(descriptor)
    finally:
        os.close(descriptor)


def flush_folder(folder: Path) -> None:
    """Flush a folder's names to the disk: a new file is safe only once its name is."""
    # Not every system can flush a folder, and not every folder is readable; the new content is there anyway.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            flush(descriptor)
        finally:
            os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, so that they survive a power cut too."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    flush_folder(folder.parent)


def sweep(folder: Path, now: float, age: float = _STRAY_SECONDS) -> int:
    """Remove the temporary files that killed processes left in a folder; return their number.

    A caller who holds a lock that every writer of the folder takes may pass an `age` below 0.
    """
    swept = 0
    for stray in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        try:
            if age < 0 or now - stray.stat().st_mtime > age:
                stray.unlink()
                swept += 1
        except OSError:
            continue  # another process swept it first, or it is not ours to remove
    return swept
