"""SQLite usage: one SQLite file for usage and money, shared by the processes of one machine.

It runs on its own thread, never on the event loop. Work that waits while a transaction is written goes
into the next one together: forty reservations at once cost one flush, not forty. Every commit is flushed, so
reserved money stays reserved after a power cut.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from bridgehead.runtime import events, logs
from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.stores import sqlite
from bridgehead.runtime.timing import Clock

from .usage import WRITE_SECONDS, Key, Span, Usage, UsageCounts, UsageRow, add_usage, read_history, utc_day

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]
"""Work inside a transaction that others share: it must not raise."""

FILE = "usage.sqlite3"
MAX_BATCH = 256
"""Pieces of work in one transaction; the rest goes into the next."""
RIDE_SECONDS = 0.05
"""How long the end of a send may wait. If it is lost, the send stays open and becomes uncertain."""
_VERSION = 2
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
    """CREATE TABLE IF NOT EXISTS budget (
        period TEXT NOT NULL,
        payer TEXT NOT NULL,
        committed_usd REAL NOT NULL,
        PRIMARY KEY (period, payer)
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS sends (
        id TEXT PRIMARY KEY,
        day TEXT NOT NULL,
        payer TEXT NOT NULL,
        model TEXT NOT NULL,
        client TEXT NOT NULL,
        sends INTEGER NOT NULL,
        usd REAL NOT NULL,
        state TEXT NOT NULL,
        reserved_until REAL NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS sends_by_state ON sends (state, day)",
    # Version 1 had one total for each day and client.
    "CREATE TABLE IF NOT EXISTS spending (day TEXT, client TEXT, committed_usd REAL)",
    """INSERT INTO budget
        SELECT day, client, sum(committed_usd) FROM spending GROUP BY 1, 2
        UNION ALL SELECT day, '', sum(committed_usd) FROM spending GROUP BY 1
        UNION ALL SELECT substr(day, 1, 7), client, sum(committed_usd) FROM spending GROUP BY 1, 2
        UNION ALL SELECT substr(day, 1, 7), '', sum(committed_usd) FROM spending GROUP BY 1""",
    "DROP TABLE spending",
    # Tables of version 1 that nothing reads any more.
    "DROP TABLE IF EXISTS clients",
    "DROP TABLE IF EXISTS imported",
)

_log = logs.logger("mercury.usage")


class SqliteUsage:
    """The file, and the only thread that uses it."""

    def __init__(self, open_folder: Callable[[], Path], clock: Clock, *, keep_days: int) -> None:
        self._open_folder = open_folder
        self._clock = clock
        self._keep_days = keep_days
        self._folder: Path | None = None
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._pruned_on = ""
        self._thread: ThreadPoolExecutor | None = None
        self._usage: Usage | None = None
        self._waiting: list[tuple[Work[Any], asyncio.Future[Any]]] = []
        self._committing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._riding: asyncio.TimerHandle | None = None
        self._is_due = False
        """Whether the counts are to be written now."""
        self.problem = ""
        """Why nothing can be written; empty as long as it can."""

    def add_source(self, source: Usage, /) -> None:
        """Write the counts of `source` with every transaction."""
        self._usage = source

    def write_soon(self) -> None:
        """Write the counts, a little later."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITE_SECONDS, self._begin)

    def submit(self, work: Work[T], *, is_urgent: bool = True) -> asyncio.Future[T]:
        """Do work in the next transaction, in the order of submission.

        When the future is done, the work is on the disk. It raises `StorageError`. What is not urgent rides
        with the next transaction, or begins one after `RIDE_SECONDS`: each flush takes most of a call's time.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((work, future))
        if is_urgent:
            self._begin()
        elif self._riding is None:
            self._riding = asyncio.get_running_loop().call_later(RIDE_SECONDS, self._begin)
        return future

    async def history(self, span: Span, by: Collection[str], client: str | None = None) -> list[UsageRow]:
        """Return the counts of a span, including those that are not written yet."""
        return await self.submit(lambda connection: read_history(connection, span, by, client))

    async def check(self) -> None:
        """See whether the file can be written; raises `StorageError`. `problem` then has the reason."""
        # Setting the version writes a page although the value stays. A read would succeed on a full disk.
        await self.submit(lambda connection: connection.execute(f"PRAGMA user_version = {_VERSION}"))
        self.note_write()

    async def close(self) -> None:
        """Write what is pending, and close the file."""
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
        if self._riding is not None:
            self._riding.cancel()
            self._riding = None
        self._is_due = True
        if self._committing is None:
            self._committing = asyncio.create_task(self._commit_all())

    async def _commit_all(self) -> None:
        """Write one transaction after the other until nothing waits."""
        # A thread of our own: the default ones also resolve names, which must not wait for a slow disk.
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="mercury-usage")
        can_write = True
        try:
            # Counts that arrive while a transaction is written wait for their own timer. Otherwise a series
            # of calls would keep the disk busy with one transaction after the other.
            while self._is_due or self._waiting:
                self._is_due = False
                batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
                counts = self._usage.take_counts() if self._usage is not None and can_write else {}

                if not counts and not batch:
                    continue
                try:
                    results = await asyncio.get_running_loop().run_in_executor(
                        self._thread, self._commit, counts, [work for work, _ in batch]
                    )
                except Exception as error:  # noqa: BLE001 - passed on to each waiting caller
                    # Unwritten counts wait for the next timer; writing them again here would loop for ever.
                    can_write = False
                    if counts and self._usage is not None:
                        self._usage.restore_counts(counts)
                    problem = error.message if isinstance(error, StorageError) else str(error)
                    if problem != self.problem:  # log only the first of a series
                        self.problem = problem
                        where = FILE if self._folder is None else str(self._folder / FILE)
                        reason = repr(error.__cause__ or error)
                        _log.error("the usage database cannot be used", file=where, reason=reason)
                        events.publish("store.lost", bridge="mercury", store="usage", says=problem)
                    for _, future in batch:
                        if not future.done():
                            future.set_exception(error)
                else:
                    for (_, future), result in zip(batch, results, strict=True):
                        if not future.done():  # its caller was cancelled
                            future.set_result(result)
                    if counts:
                        self.note_write()
        finally:
            self._committing = None

    def note_write(self) -> None:
        """Note that something was written; reads succeed on a full disk too."""
        if self.problem:
            self.problem = ""
            _log.info("the usage database can be used again")
            events.publish("store.returned", bridge="mercury", store="usage")

    # --- on the thread -------------------------------------------------------------------------------------

    def _commit(self, counts: dict[Key, UsageCounts], works: list[Work[Any]]) -> list[Any]:
        """Write counts and do a batch of work in one transaction, which is on the disk when this returns."""
        try:
            connection = self._connect()
            with sqlite.transaction(connection):
                self._prune(connection)
                # Counts first, so that a read in the same transaction includes them.
                for (day, model, client), amounts in counts.items():
                    add_usage(connection, day, model, client, amounts)
                return [work(connection) for work in works]
        except (sqlite3.Error, OSError) as problem:
            self._disconnect()
            # The path and the database's own words are for the log alone: `_note_failure` writes them.
            raise StorageError(
                f"The usage database {FILE} cannot be used: {sqlite.explain(problem)}.",
                next_step="The operator has to check its state directory and the disk; "
                "the log names the file. If the file is damaged, move it away: usage and the budget then "
                "start from zero.",
            ) from problem

    def _connect(self) -> sqlite3.Connection:
        """Open the file once, and again if it was removed or replaced."""
        try:
            folder = self._folder = self._folder or self._open_folder()
        except StorageError as problem:  # its message names the folder
            raise problem.__cause__ or OSError() from None
        path = folder / FILE
        # Compared by inode: writes to a deleted or replaced file would succeed, and be lost.
        if self._connection is not None:
            with suppress(FileNotFoundError):
                if path.stat().st_ino == self._inode:
                    return self._connection
            self._disconnect()
        sqlite.create_private(path)
        self._connection = open_database(path)
        self._inode = path.stat().st_ino
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _prune(self, connection: sqlite3.Connection) -> None:
        """Once a day, delete days older than are kept."""
        today = utc_day(self._clock.now())
        if self._pruned_on == today:
            return
        first = (datetime.fromisoformat(today) - timedelta(days=self._keep_days)).date().isoformat()
        connection.execute("DELETE FROM usage WHERE day < ?", (first,))
        # A month sorts before its days, so a period is compared at its own length. A send is kept as long as
        # the total of its month: the uncertain part of that is read from the sends, and can be released.
        connection.execute("DELETE FROM sends WHERE substr(day, 1, 7) < substr(?, 1, 7)", (first,))
        connection.execute("DELETE FROM budget WHERE period < substr(?1, 1, length(period))", (first,))
        self._pruned_on = today


def open_database(path: Path) -> sqlite3.Connection:
    """Open the file, and make its tables if it is new."""
    return sqlite.open_database(path, _SCHEMA, _VERSION, what="usage database")
