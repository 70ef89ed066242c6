"""Files: reads configuration files and replaces them, each after a backup."""

from __future__ import annotations

import errno
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from zlib import crc32

from bridgehead.runtime import durable

from .errors import InstallError, malformed

BACKUPS = 5
"""Backups kept beside a file, newest first."""
_PRIVATE = 0o600
_OWN_WRITE = 0o200
LOCK_SECONDS = 10.0
_POLL_SECONDS = 0.02


@contextmanager
def install_lock(home: str, within: float = LOCK_SECONDS) -> Iterator[None]:
    """Hold the lock that keeps two installations of one user from changing the same files.

    Raises InstallError after `within` seconds. Without a home folder, or on a file system without locks, it
    holds nothing.
    """
    busy = InstallError("Another bridgehead install is still running.", next_step="Run this again.")
    try:
        import fcntl
    except ImportError:
        with _windows_lock(home, within, busy):
            yield
        return
    try:
        # The lock is on the home folder itself: it always exists, and no lock file is left behind.
        folder = os.open(home, os.O_RDONLY)
    except OSError:
        yield
        return
    try:
        deadline = time.monotonic() + within
        while True:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as failure:
                if failure.errno not in (errno.EAGAIN, errno.EACCES):
                    break  # a network file system without locks
            else:
                break
            if time.monotonic() > deadline:
                raise busy
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(folder)  # which releases the lock


@contextmanager
def _windows_lock(home: str, within: float, busy: InstallError) -> Iterator[None]:
    """Lock a file in the user's temporary folder, because Windows cannot lock a folder."""
    from filelock import FileLock, Timeout

    path = Path(tempfile.gettempdir()) / f"bridgehead-install-{crc32(home.encode()):08x}.lock"
    deadline = time.monotonic() + within
    lock = FileLock(path, timeout=within, poll_interval=_POLL_SECONDS)
    while not lock.is_locked:
        try:
            lock.acquire()
        except Timeout:
            raise busy from None
        except OSError:  # Windows denies a file that another installation is just deleting
            if time.monotonic() > deadline:
                raise busy from None
            time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        lock.release()


def choose(places: Iterable[PurePath]) -> Path:
    """Return the first path that is a file, else the first whose folder exists, else the last."""
    candidates = [path for place in places for path in _expand(place)]
    with_file = [path for path in candidates if path.is_file()]
    with_folder = [path for path in candidates if path.parent.is_dir()]
    return [*with_file, *with_folder, candidates[-1]][0]


def exists(place: PurePath) -> bool:
    """Return whether a path, or any match of a pattern, exists."""
    return any(path.exists() for path in _expand(place))


def _expand(place: PurePath) -> list[Path]:
    path = Path(place)
    if "*" not in str(path):
        return [path]
    index = next(number for number, part in enumerate(path.parts) if "*" in part)
    folder = Path(*path.parts[:index])
    # Only the part with the * must exist; the client may not have made the rest yet.
    return [match.joinpath(*path.parts[index + 1 :]) for match in sorted(folder.glob(path.parts[index]))]


def read(path: Path) -> str | None:
    """Return the text of a file with its line endings as they are; None if it is not there."""
    try:
        data = durable.read(path)
    except FileNotFoundError:
        return None
    except OSError as failure:
        raise InstallError(f"{path} cannot be read: {failure.strerror}.") from failure
    try:
        return data.decode()
    except UnicodeDecodeError as failure:
        before = data[: failure.start].decode()
        where = malformed("this is not UTF-8", before, len(before))
        raise InstallError(f"{path}:{where}. Nothing was written.") from None


def backups_of(path: Path) -> list[Path]:
    """Return the backups beside a file, oldest first: the stamp in their names sorts by time."""
    target = path.resolve()
    pattern = re.compile(re.escape(target.name) + r"\.bridgehead-[0-9TZ.]+\.bak")
    if not target.parent.is_dir():
        return []
    return sorted(other for other in target.parent.iterdir() if pattern.fullmatch(other.name))


def write(path: Path, before: str | None, after: str | None, stamp: str) -> Path | None:
    """Replace the file, or delete it if `after` is None; return the path of its backup.

    Raises InstallError if the file no longer has the text `before`.
    """
    target = path.resolve()  # a symbolic link stays, and the file that it points to changes
    # The lock keeps other installations out, but not the client itself, which may write its file any time.
    if read(target) != before:
        raise InstallError(f"{path} was changed by another program just now.", next_step="Run this again.")
    if before is not None and not target.stat().st_mode & _OWN_WRITE:
        problem = f"{path} is read-only. Nothing was written."
        raise InstallError(problem, next_step="Make it writable, or change it where it comes from.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if before is not None else _PRIVATE
        backup = None
        if before is not None:
            # Backups are for the user alone, whatever the file's mode: entries may hold keys.
            backup = target.with_name(f"{target.name}.bridgehead-{stamp}.bak")
            durable.replace(backup, before.encode(), mode=mode & _PRIVATE)
        if after is None:
            durable.remove(target)
        else:
            durable.replace(target, after.encode(), mode=mode)
            target.chmod(mode)  # the umask may have taken bits away from the new file
        for old in backups_of(target)[:-BACKUPS]:
            with suppress(PermissionError):  # open in another program on Windows; the next change prunes it
                old.unlink(missing_ok=True)
    except OSError as failure:
        raise InstallError(f"{path} cannot be written: {failure.strerror}. It is as it was.") from failure
    return backup
