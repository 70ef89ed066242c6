"""Nonces: one-time use of sealed confirmations and sign-ins, over all processes of a service.

A sealed state can come back to any process, and each would accept it once. So each nonce is inserted into a
shared store that refuses duplicates: Redis for replicas, a SQLite file for the workers of one machine. If the
store fails, the nonce counts as used: the client is asked again. A single process keeps its nonces in memory
(`bridgehead.mcp.MemoryNonces`).
"""

from __future__ import annotations

import asyncio
import math
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bridgehead.runtime import logs
from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.stores import StoreError, StoreUnavailable, sqlite

if TYPE_CHECKING:
    from bridgehead.runtime.stores.redis import Redis

FILE = "nonces.sqlite3"
_VERSION = 1
_TABLE = "CREATE TABLE IF NOT EXISTS used (nonce TEXT PRIMARY KEY, expires REAL) WITHOUT ROWID"
_PRUNE_EVERY = 100
"""Insertions between two removals of expired nonces."""
_CLOCK_SKEW_MILLISECONDS = 300_000
"""How much longer than its validity a nonce stays in Redis: another replica's clock may be behind."""

log = logs.logger("host.nonces")


class RedisNonces:
    """The used nonces of all replicas."""

    def __init__(self, redis: Redis, now: Callable[[], float]) -> None:
        self._redis = redis
        self._now = now

    async def use(self, nonce: str, expires: float) -> bool:
        """Return whether the nonce is new; it stays used until it expires."""
        life = max(0, math.ceil((expires - self._now()) * 1000)) + _CLOCK_SKEW_MILLISECONDS
        try:
            # NX decides: of several replicas, one creates the key. A command sent again after a broken
            # connection finds its own key: the nonce counts as used, and the client is asked again.
            answer = await self._redis.call("SET", f"bridgehead:nonce:{nonce}", "1", "NX", "PX", life)
        except (StoreUnavailable, StoreError) as problem:
            log.warn("a nonce cannot be checked, so it is refused", problem=str(problem))
            return False
        return answer is not None

    async def is_used(self, nonce: str) -> bool:
        """Return whether the nonce was used; raises StoreUnavailable and StoreError."""
        return bool(await self._redis.call("EXISTS", f"bridgehead:nonce:{nonce}"))


class SqliteNonces:
    """The used nonces of one machine's workers, in a file."""

    def __init__(self, folder: Path, now: Callable[[], float]) -> None:
        self._path = folder / FILE
        self._now = now
        self._lock = threading.Lock()
        """Protects the connection, which the threads of `asyncio.to_thread` share."""
        self._connection: sqlite3.Connection | None = None
        self._uses = 0

    async def use(self, nonce: str, expires: float) -> bool:
        """Return whether the nonce is new; it stays used until it expires."""
        return await asyncio.to_thread(self._use, nonce, expires)

    async def is_used(self, nonce: str) -> bool:
        """Return whether the nonce was used; raises StorageError."""
        return await asyncio.to_thread(self._is_used, nonce)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _use(self, nonce: str, expires: float) -> bool:
        try:
            with self._lock:
                connection = self._connection = self._connection or self._open()
                self._uses += 1
                if self._uses % _PRUNE_EVERY == 1:
                    connection.execute("DELETE FROM used WHERE expires < ?", (self._now(),))
                # The primary key decides: of several processes, one inserts the row. Committed at once,
                # before the confirmed action begins.
                added = connection.execute("INSERT OR IGNORE INTO used VALUES (?, ?)", (nonce, expires))
                return added.rowcount == 1
        except (sqlite3.Error, OSError, StorageError) as problem:
            log.warn("a nonce cannot be checked, so it is refused", problem=str(problem))
            return False

    def _is_used(self, nonce: str) -> bool:
        try:
            with self._lock:
                connection = self._connection = self._connection or self._open()
                return (
                    connection.execute("SELECT 1 FROM used WHERE nonce = ?", (nonce,)).fetchone() is not None
                )
        except (sqlite3.Error, OSError) as problem:
            raise StorageError("The file of nonces cannot be read.") from problem

    def _open(self) -> sqlite3.Connection:
        sqlite.create_private(self._path)
        return sqlite.open_database(self._path, (_TABLE,), _VERSION, what="file of nonces", one_thread=False)
