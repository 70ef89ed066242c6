"""Locking: one writer at a time in a folder, over all processes and users that share it. Blocks.

The lock is on the folder itself. A lock file can be removed, which lets two writers in at once, or belong to
another user, who may not let others open it; the right to read a folder is enough to lock it. Where a folder
cannot be locked (Windows, some NFS servers), a lock file in it is used.
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
from bridgehead.runtime.errors import StorageError, Unavailable

from .layout import Anchor, find_anchor

if sys.platform != "win32":
    import fcntl

LOCK_FILE = ".bridgehead.lock"
_POLL_SECONDS = 0.002
_HELD = {errno.EAGAIN, errno.EACCES, errno.EINTR}
_UNLOCKABLE = {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP}
"""Errors of file systems that cannot lock a folder (NFS: EBADF)."""
_EVERYBODY = 0o666


class FolderLock:
    """The right to write in a folder; create one per process and folder.

    Lock order: the thread lock first, then the folder's. No code takes two folder locks at once.
    """

    def __init__(self, folder: str, wait_seconds: float, anchor: Anchor | None = None) -> None:
        self.folder = folder
        self._anchor = anchor or find_anchor(folder)
        self._wait_seconds = wait_seconds
        # Threads of this process queue here: `flock` is polled, which would be unfair among threads.
        self._threads = threading.Lock()

    @contextmanager
    def held(self, what: str) -> Iterator[None]:
        """Hold the lock; create the folder unless it has existed before.

        Raises `Unavailable`, `StorageError` or OSError. `what` names the file in the error message.
        """
        deadline = time.monotonic() + self._wait_seconds
        if not self._threads.acquire(timeout=self._wait_seconds):
            raise self._lock_timeout(what)
        descriptor = None
        try:
            is_locked = False
            # If the folder was removed and recreated meanwhile, the lock is on the old one: lock the new one.
            while not is_locked:
                # Create it only if it has never existed; one that existed before is opened, which shows if it
                # is gone.
                if self._anchor.path != self.folder or sys.platform == "win32":
                    # Not on the mount point of an unmounted disk: the next mount would hide the files written
                    # there.
                    if not self._anchor.is_there:
                        raise self._unmounted(what)
                    durable.make_folder(Path(self.folder))
                if sys.platform == "win32":
                    break
                if descriptor is not None:
                    os.close(descriptor)
                    descriptor = None
                try:
                    descriptor = os.open(self.folder, os.O_RDONLY)
                except FileNotFoundError:
                    raise self._unmounted(what) from None
                # The mount point of an unmounted disk may contain an older folder of the same name.
                if os.fstat(descriptor).st_dev in self._anchor.below:
                    raise self._unmounted(what)
                if not self._lock_folder(descriptor, what, deadline):
                    break
                with suppress(FileNotFoundError):
                    is_locked = os.path.samestat(os.fstat(descriptor), os.stat(self.folder))
                if not is_locked and time.monotonic() >= deadline:
                    raise self._lock_timeout(what)
            if self._anchor.path != self.folder:
                self._anchor = find_anchor(self.folder)
            if is_locked:
                yield
            else:
                with self._lock_file(what, deadline):
                    yield
        finally:
            if descriptor is not None:
                os.close(descriptor)  # releases the folder's lock, as the end of the process does
            self._threads.release()

    def _lock_folder(self, descriptor: int, what: str, deadline: float) -> bool:
        """Return False if this file system cannot lock a folder."""
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
                raise self._lock_timeout(what)
            time.sleep(_POLL_SECONDS)
        return False

    @contextmanager
    def _lock_file(self, what: str, deadline: float) -> Iterator[None]:
        from filelock import FileLock, Timeout

        path = os.path.join(self.folder, LOCK_FILE)
        remaining = max(0.0, deadline - time.monotonic())
        lock = FileLock(path, timeout=remaining, poll_interval=_POLL_SECONDS, mode=_EVERYBODY)
        try:
            lock.acquire()
        except Timeout as failure:
            raise self._lock_timeout(what) from failure
        try:
            # The umask removed rights that other users of the folder need; only the owner can add them.
            with suppress(OSError):
                Path(path).chmod(_EVERYBODY)
            yield
        finally:
            lock.release()

    def _unmounted(self, what: str) -> StorageError:
        return StorageError(
            f"{what} cannot be written: {self._anchor.path} is no longer there. Was its disk unmounted? "
            "Nothing was recorded.",
            next_step="Mount it again. If you removed the folder yourself, make it again.",
            path=self._anchor.path,
        )

    def _lock_timeout(self, what: str) -> Unavailable:
        return Unavailable(
            f"{what} cannot be written: another process has locked {self.folder} for "
            f"{self._wait_seconds:g} s. Nothing was recorded.",
            next_step="Record again in a moment; AOC_LOCK_WAIT_MS says how long to wait.",
            path=self.folder,
        )
