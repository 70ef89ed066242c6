"""SQLite: opening a file that processes share, and transactions on it.

WAL, because readers then never wait for a writer. `synchronous=FULL`, because in WAL mode only that flushes
each commit, so that an acknowledged change survives a power cut. `NORMAL` would survive a SIGKILL only.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import StorageError

BUSY_SECONDS = 10.0
"""How long a statement waits for the lock of another process."""
_MAX_WAL_BYTES = 4 * 1024 * 1024
_RETRY_SECONDS = 0.02
_HELD = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_BUSY: "another process has locked it",
    sqlite3.SQLITE_LOCKED: "another process has locked it",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_PERM: "this user may not write there",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_CORRUPT: "it is damaged",
    sqlite3.SQLITE_NOTADB: "it is damaged",
    sqlite3.SQLITE_IOERR: "the disk fails",
}
"""Primary result codes; the low byte of an extended one."""


def explain(problem: sqlite3.Error | OSError) -> str:
    """Return the reason in a few words that a client may read: no path, no statement."""
    if isinstance(problem, OSError):
        return problem.strerror or type(problem).__name__
    return _REASONS.get(getattr(problem, "sqlite_errorcode", 0) & 0xFF, "the log has the details")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Run the block in one transaction; roll back if it raises."""
    # IMMEDIATE takes the write lock now. A deferred transaction that reads first and writes later fails with
    # SQLITE_BUSY at once, without waiting, if another process wrote in between.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # report the first problem, not this one
            connection.execute("ROLLBACK")
        raise


def create_private(path: Path) -> None:
    """Create a missing file readable by its user alone; SQLite would follow the umask."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def open_database(
    path: Path, schema: Sequence[str], version: int, *, what: str, one_thread: bool = True
) -> sqlite3.Connection:
    """Open a file, creating its tables if it is new; the caller begins and ends transactions.

    `what` names the file in the error for one that a newer version has written. Without `one_thread` the
    caller holds a lock around each use.
    """
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=one_thread
    )
    try:
        # Changing the mode ignores the busy timeout, unlike every other statement, and two processes may
        # start at once: retry.
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                break
            except sqlite3.OperationalError as problem:
                # A full disk or a missing right is final: waiting would only delay the error.
                if problem.sqlite_errorcode & 0xFF not in _HELD or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)
        connection.execute("PRAGMA synchronous=FULL")
        # For macOS, as in `durable.flush`; no effect elsewhere.
        connection.execute("PRAGMA fullfsync=ON")
        # Truncate the WAL after a checkpoint: without a limit it stays as large as it ever was.
        connection.execute(f"PRAGMA journal_size_limit={_MAX_WAL_BYTES}")
        existing = connection.execute("PRAGMA user_version").fetchone()[0]
        if existing > version:
            raise StorageError(  # noqa: TRY301 - closes the connection below
                f"The {what} was written by a newer version of Bridgehead.",
                next_step="Use that version, or set BRIDGEHEAD_STATE_DIR to another folder.",
            )
        if existing < version:
            with transaction(connection):
                for statement in schema:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version}")
    except BaseException:
        connection.close()
        raise
    return connection
