"""Locking: one writer at a time in a folder, over all processes and users that share it. Blocks.

The lock is on the folder itself, since that cannot vanish while its files are written: a lock file that
somebody removes lets two writers in at once, and one that another user made may not be opened. Whoever may
read the folder may lock it. Where a folder cannot be locked (Windows, NFS), a lock file in it is the next
best.
"""

# ruff: noqa: PTH116, PTH118 - one way to write a path in this package

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bridgehead.runtime import durable
from bridgehead.runtime.errors import Unavailable

if sys.platform != "win32":
    import fcntl

LOCK_FILE = ".bridgehead.lock"
_POLL_SECONDS = 0.002
_HELD = {errno.EAGAIN, errno.EACCES, errno.EINTR}
_UNLOCKABLE = {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP}
"""What file systems answer that cannot lock a folder."""
_EVERYBODY = 0o666


class FolderLock:
    """The right to write in a folder; made once per process and folder."""

    def __init__(self, folder: str, wait_seconds: float) -> None:
        self.folder = folder
        self._wait_seconds = wait_seconds
        # Threads of this process queue here; a folder lock would not tell two of them apart fairly.
        self._threads = threading.Lock()

    @contextmanager
    def held(self, what: str) -> Iterator[None]:
        """Hold the lock, with the folder made where it is missing; raises `Unavailable` or OSError.

        `what` names the file that could not be written in time.
        """
        deadline = time.monotonic() + self._wait_seconds
        if not self._threads.acquire(timeout=self._wait_seconds):
            raise self._taken(what)
        try:
            with self._locked(what, deadline):
                yield
        finally:
            self._threads.release()

    @contextmanager
    def _locked(self, what: str, deadline: float) -> Iterator[None]:
        if sys.platform == "win32":
            durable.make_folder(Path(self.folder))
            with self._lock_file(what, deadline):
                yield
            return
        descriptor, is_locked = self._open_folder(what, deadline)
        try:
            if is_locked:
                yield  # closing the descriptor lets go of the lock, as does the end of the process
            else:
                with self._lock_file(what, deadline):
                    yield
        finally:
            os.close(descriptor)

    def _open_folder(self, what: str, deadline: float) -> tuple[int, bool]:
        """Open the folder, and lock it where that can be done.

        A folder that was removed and made again while this waited is another one, and is locked anew.
        """
        while time.monotonic() < deadline:
            durable.make_folder(Path(self.folder))
            descriptor = os.open(self.folder, os.O_RDONLY)
            try:
                is_locked = self._lock_folder(descriptor, what, deadline)
                if not is_locked or self._is_still(descriptor):
                    return descriptor, is_locked
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
        raise self._taken(what)

    def _is_still(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), os.stat(self.folder))
        except FileNotFoundError:
            return False

    def _lock_folder(self, descriptor: int, what: str, deadline: float) -> bool:
        while sys.platform != "win32":
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as failure:
                if failure.errno in _UNLOCKABLE:
                    return False
                if failure.errno not in _HELD:
                    raise
            else:
                return True
            if time.monotonic() >= deadline:
                raise self._taken(what)
            time.sleep(_POLL_SECONDS)
        return False

    @contextmanager
    def _lock_file(self, what: str, deadline: float) -> Iterator[None]:
        from filelock import FileLock, Timeout

        path = os.path.join(self.folder, LOCK_FILE)
        left = max(0.0, deadline - time.monotonic())
        lock = FileLock(path, timeout=left, poll_interval=_POLL_SECONDS, mode=_EVERYBODY)
        try:
            lock.acquire()
        except Timeout as failure:
            raise self._taken(what) from failure
        try:
            with suppress(OSError):  # the umask took rights away that other users of the folder need
                Path(path).chmod(_EVERYBODY)
            yield
        finally:
            lock.release()

    def _taken(self, what: str) -> Unavailable:
        return Unavailable(
            f"{what} cannot be written: another process has locked {self.folder} for "
            f"{self._wait_seconds:g} s. Nothing was recorded.",
            next_step="Record again in a moment; AOC_LOCK_WAIT_MS says how long to wait.",
        )
