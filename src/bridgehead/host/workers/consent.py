"""Consent: which confirmations were used already, over all workers of one machine.

A sealed confirmation can come to any worker, and each could be given it once. So each use is written to one
SQLite file in the state directory, in which a name stands only once. What cannot be written counts as used:
the client is asked again.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

from bridgehead.runtime import logs

FILE = "consent.sqlite3"
BUSY_SECONDS = 5.0
_VERSION = 1
_TABLE = "CREATE TABLE IF NOT EXISTS used (nonce TEXT PRIMARY KEY, expires REAL) WITHOUT ROWID"
_FORGET_EVERY = 100
"""Uses between two looks for those that have expired."""

log = logs.logger("host.consent")


class SharedConsent:
    """The confirmations that were used, in a file that several processes share."""

    def __init__(self, folder: Path, now: Callable[[], float]) -> None:
        self._path = folder / FILE
        self._now = now
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._uses = 0

    def use(self, nonce: str, expires: float) -> Awaitable[bool]:
        """Tell whether a confirmation is used for the first time."""
        return asyncio.to_thread(self._use, nonce, expires)

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _use(self, nonce: str, expires: float) -> bool:
        try:
            with self._lock:
                return self._insert(nonce, expires)
        except (sqlite3.Error, OSError) as problem:
            log.warn("a confirmation cannot be checked, so it is refused", problem=str(problem))
            return False

    def _insert(self, nonce: str, expires: float) -> bool:
        connection = self._connection = self._connection or self._open()
        self._uses += 1
        with connection:  # one transaction, committed before anything is done
            if self._uses % _FORGET_EVERY == 1:
                connection.execute("DELETE FROM used WHERE expires < ?", (self._now(),))
            added = connection.execute("INSERT OR IGNORE INTO used VALUES (?, ?)", (nonce, expires))
            return added.rowcount == 1

    def _open(self) -> sqlite3.Connection:
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))  # SQLite would let others read it
        connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(_TABLE)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        except BaseException:
            connection.close()
            raise
        return connection
