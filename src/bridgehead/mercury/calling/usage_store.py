"""Usage store: one SQLite file for what was used and what money is committed, shared by a user's processes.

It runs on one thread of its own, never on the event loop. What waits while a transaction is being written
goes into the next one together: forty reservations at once cost one flush, not forty.

Every commit is flushed: money that was reserved stays reserved after a power cut.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from bridgehead.runtime import logs
from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.stores import sqlite
from bridgehead.runtime.timing import Clock

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]
"""Something done inside a transaction. It raises `Refusal` before it has changed anything, or nothing."""

FILE = "usage.sqlite3"
WRITE_SECONDS = 2.0
"""How long counts and corrections may wait before they are written."""
MAX_BATCH = 256
"""Pieces of work in one transaction; those that follow have their turn after it."""
MAX_CLIENTS = 256
"""Clients that are told apart on one day."""
OTHER_CLIENTS = "(others)"
_VERSION = 1
_DAY_SECONDS = 24 * 60 * 60
_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS usage (
        day TEXT NOT NULL,
        model TEXT NOT NULL,
        client TEXT NOT NULL,
        calls INTEGER NOT NULL,
        errors INTEGER NOT NULL,
        cache_hits INTEGER NOT NULL,
        prompt_tokens INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL,
        total_tokens INTEGER NOT NULL,
        cost_usd REAL NOT NULL,
        unpriced INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (day, model, client)
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS spending (
        day TEXT NOT NULL,
        client TEXT NOT NULL,
        committed_usd REAL NOT NULL,
        PRIMARY KEY (day, client)
    ) WITHOUT ROWID""",
    "CREATE TABLE IF NOT EXISTS clients (day TEXT, client TEXT, PRIMARY KEY (day, client)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS imported (hash TEXT PRIMARY KEY) WITHOUT ROWID",
)

_log = logs.logger("mercury.usage")


class Refusal(Exception):
    """Work that a rule forbids; the rest of its transaction goes on."""


class Outcome(Struct, frozen=True):
    """What came of one piece of work."""

    value: Any = None
    error: Exception | None = None


class Source(Protocol):
    """Something that gathers what is to be written with the next transaction, whoever begins it."""

    def take(self) -> tuple[Work[None], Callable[[], None]] | None:
        """Hand over what was gathered, and a way to take it back if it cannot be written."""


class UsageStore:
    """The file, and the thread that alone uses it."""

    def __init__(
        self,
        open_folder: Callable[[], Path],
        clock: Clock,
        *,
        keep_days: int,
        on_open: Callable[[sqlite3.Connection, Path], None] = lambda _connection, _folder: None,
    ) -> None:
        self._open_folder = open_folder
        self._clock = clock
        self._keep_days = keep_days
        self._on_open = on_open
        self._folder: Path | None = None
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._pruned_on = ""
        self._day = (-1, "")
        """The UTC day as a number and as text: asked for with every call, and new once a day."""
        self._thread: ThreadPoolExecutor | None = None
        self._sources: list[Source] = []
        self._waiting: list[tuple[Work[Any], asyncio.Future[Any]]] = []
        self._committing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_due = False
        """Whether what the sources have is to be written now."""

    @property
    def today(self) -> str:
        """The UTC day."""
        now = self._clock.now()
        number = int(now // _DAY_SECONDS)
        if number != self._day[0]:
            self._day = number, datetime.fromtimestamp(now, UTC).date().isoformat()
        return self._day[1]

    def add_source(self, source: Source) -> None:
        """Write what somebody gathers with every transaction."""
        self._sources.append(source)

    def write_soon(self) -> None:
        """Write what the sources have gathered, a little later."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITE_SECONDS, self._begin)

    def submit(self, work: Work[T]) -> asyncio.Future[T]:
        """Do something in the next transaction, after what was submitted before.

        When the future is done, it is on the disk. It raises `Refusal` and `StorageError`.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((work, future))
        self._begin()
        return future

    async def close(self) -> None:
        """Write what is left, and close the file."""
        self._begin()
        if self._committing is not None:
            await asyncio.wait([self._committing], timeout=sqlite.BUSY_SECONDS)
        if self._thread is not None:
            thread, self._thread = self._thread, None
            await asyncio.get_running_loop().run_in_executor(thread, self._disconnect)
            thread.shutdown(wait=False)

    # --- on the event loop ---------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._is_due = True
        if self._committing is None:
            self._committing = asyncio.create_task(self._commit_all())

    async def _commit_all(self) -> None:
        try:
            is_working = True
            # What is counted while a transaction is written waits for its own time. Calls that follow each
            # other would else keep the disk busy with one transaction after the other.
            while self._is_due or self._waiting:
                self._is_due = False
                if batch := self._next_batch(with_sources=is_working):
                    is_working = await self._commit_batch(batch)
        finally:
            self._committing = None

    def _next_batch(self, *, with_sources: bool) -> list[tuple[Work[Any], asyncio.Future[Any]]]:
        """Return what comes next: what the sources have, before all that may depend on it."""
        batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
        gathered = [source.take() for source in self._sources] if with_sources else []
        return [(taken[0], _restoring(taken[1])) for taken in gathered if taken is not None] + batch

    async def _commit_batch(self, batch: list[tuple[Work[Any], asyncio.Future[Any]]]) -> bool:
        """Commit a batch, and tell whether the file can be used."""
        # A thread of our own: the default ones also resolve names, which must not wait for a slow disk.
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="mercury-usage")
        try:
            works = [work for work, _ in batch]
            outcomes = await asyncio.get_running_loop().run_in_executor(self._thread, self._commit, works)
        except BaseException:
            for _, future in batch:
                future.cancel()
            raise
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            _resolve(future, outcome)
        return not any(isinstance(outcome.error, StorageError) for outcome in outcomes)

    # --- on the thread -------------------------------------------------------------------------------------

    def _commit(self, works: list[Work[Any]]) -> list[Outcome]:
        """Do a batch of work in one transaction, which is on the disk when this returns."""
        try:
            connection = self._connect()
            with sqlite.transaction(connection):
                self._prune(connection)
                return [_attempt(work, connection) for work in works]
        except (sqlite3.Error, OSError, StorageError) as problem:
            self._disconnect()
            error = problem if isinstance(problem, StorageError) else self._unusable(problem)
            return [Outcome(error=error)] * len(works)

    def _connect(self) -> sqlite3.Connection:
        """Open the file, once, and again where somebody has removed or replaced it meanwhile."""
        folder = self._folder = self._folder or self._open_folder()
        path = folder / FILE
        if self._connection is not None:
            with suppress(FileNotFoundError):
                if path.stat().st_ino == self._inode:
                    return self._connection
            self._disconnect()
        sqlite.create_private(path)
        self._connection = open_database(path)
        self._inode = path.stat().st_ino
        self._on_open(self._connection, folder)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _prune(self, connection: sqlite3.Connection) -> None:
        """Forget days that are older than what is kept."""
        today = self.today
        if self._pruned_on == today:
            return
        first = (datetime.fromisoformat(today) - timedelta(days=self._keep_days)).date().isoformat()
        connection.execute("DELETE FROM usage WHERE day < ?", (first,))
        connection.execute("DELETE FROM spending WHERE day < ?", (first,))
        connection.execute("DELETE FROM clients WHERE day < ?", (today,))
        self._pruned_on = today

    def _unusable(self, problem: Exception) -> StorageError:
        where = FILE if self._folder is None else str(self._folder / FILE)
        return StorageError(
            f"The usage database {where} cannot be used: {problem}.",
            next_step="Check the file, its folder and the disk. If the file is damaged, move it away: usage "
            "and the budget then start from zero.",
        )


def open_database(path: Path) -> sqlite3.Connection:
    """Open the file, and make its tables where it is new."""
    return sqlite.open_database(path, _SCHEMA, _VERSION, what="usage database")


def counted_client(connection: sqlite3.Connection, day: str, client: str) -> str:
    """Return the name that a client is counted under: names that clients make up must not fill the disk."""
    found = "SELECT 1 FROM clients WHERE day = ? AND client = ?"
    if connection.execute(found, (day, client)).fetchone():
        return client
    count = connection.execute("SELECT count(*) FROM clients WHERE day = ?", (day,)).fetchone()[0]
    if count >= MAX_CLIENTS:
        return OTHER_CLIENTS
    connection.execute("INSERT INTO clients VALUES (?, ?)", (day, client))
    return client


def _attempt(work: Work[Any], connection: sqlite3.Connection) -> Outcome:
    try:
        return Outcome(work(connection))
    except Refusal as refusal:
        return Outcome(error=refusal)


def _resolve(future: asyncio.Future[Any], outcome: Outcome) -> None:
    if future.done():
        return  # whoever submitted it is gone
    if outcome.error is None:
        future.set_result(outcome.value)
    else:
        future.set_exception(outcome.error)


def _restoring(restore: Callable[[], None]) -> asyncio.Future[None]:
    """Make the future of what a source has gathered, which the source gets back where writing it fails."""

    def finish(done: asyncio.Future[None]) -> None:
        error = None if done.cancelled() else done.exception()
        if done.cancelled() or error is not None:
            restore()
            _log.warn("usage not written", reason=str(error or "cancelled"))

    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.add_done_callback(finish)
    return future
