"""SQLite tasks: the tasks of one machine's processes, in one file.

Every process that runs tasks holds a lock of its own beside the file. The system releases it when the process
ends for any reason. So if another process can take it, the owner is dead and its tasks read as interrupted at
once, without waiting for a lease to expire.
"""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout
from msgspec.structs import astuple

from bridgehead.mcp.limits import Limits
from bridgehead.mcp.tasks.record import Kept, TaskRecord, TooManyTasks, check_new_task, check_payload

from ..stores.sqlite import create_private, open_database, transaction

FILE = "tasks.sqlite3"
_T = TypeVar("_T")
_VERSION = 1
_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS tasks (
        id TEXT PRIMARY KEY,
        owner TEXT NOT NULL,
        caller TEXT NOT NULL,
        created REAL NOT NULL,
        updated REAL NOT NULL,
        seconds REAL NOT NULL,
        status TEXT NOT NULL,
        message TEXT NOT NULL,
        payload BLOB NOT NULL,
        size INTEGER NOT NULL,
        expires REAL NOT NULL,
        runner TEXT NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS tasks_by_caller ON tasks (caller, size)",
    "CREATE INDEX IF NOT EXISTS tasks_by_expiry ON tasks (expires)",
)
_FIELDS = "id, owner, caller, created, updated, seconds, status, message, payload"
_RUNNING = "status IN ('working', 'input_required')"


class SqliteTaskStore:
    """Tasks in a file."""

    def __init__(self, open_folder: Callable[[], Path], clock: Callable[[], float] = time.time) -> None:
        self._open_folder = open_folder
        self._clock = clock
        self._runner = secrets.token_hex(16)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bridgehead-tasks")
        self._limits = Limits()
        self._connection: sqlite3.Connection
        self._locks: Path
        self._lock: FileLock

    async def open(self, limits: Limits) -> None:
        """Open the file, and mark the tasks of dead processes as interrupted."""
        self._limits = limits
        await self._do(self._open_file)

    async def close(self, left: Sequence[TaskRecord] = ()) -> None:
        """Write these final states, release the lock of this process and close the file."""
        try:
            await self._do(self._close_file, left)
        finally:
            self._thread.shutdown(wait=False)

    async def create(self, record: TaskRecord) -> None:
        """Store a new task, which this process runs."""
        await self._do(self._insert, record)

    async def read(self, task_id: str) -> TaskRecord | None:
        """Return a task; it is interrupted if its process is dead."""
        return await self._do(self._select, task_id)

    async def write(self, record: TaskRecord) -> bool:
        """Store a task's final state, unless it has one."""
        return await self._do(self._update, record)

    async def forget(self, task_id: str) -> None:
        """Remove a task."""
        await self._do(self._connection.execute, "DELETE FROM tasks WHERE id = ?", (task_id,))

    async def _do(self, work: Callable[..., _T], *arguments: Any) -> _T:
        # A transaction that has begun is committed even if its caller is cancelled. Not `shield`: since
        # Python 3.14 it prints a failure that comes after the cancellation.
        running = asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        await asyncio.wait([running])
        return running.result()

    # --- on the thread -------------------------------------------------------------------------------------

    def _open_file(self) -> None:
        folder = self._open_folder()
        create_private(folder / FILE)
        # The thread is the only one to use it; `check_same_thread` stays on.
        self._connection = open_database(folder / FILE, _SCHEMA, _VERSION, what="database of tasks")
        self._locks = folder / "tasks.running"
        self._locks.mkdir(mode=0o700, exist_ok=True)
        self._lock = self._lock_of(self._runner)
        self._lock.acquire(timeout=0)
        for path in self._locks.glob("*.lock"):
            if path.stem != self._runner and not self._is_alive(path.stem):
                self._interrupt_all(path.stem)

    def _close_file(self, left: Sequence[TaskRecord]) -> None:
        try:
            for record in left:
                with suppress(TooManyTasks):  # not stored: the task reads as interrupted
                    self._update(record)
            self._interrupt_all(self._runner)
        finally:
            self._lock.release()
            self._connection.close()

    def _lock_path(self, runner: str) -> Path:
        return self._locks / f"{runner}.lock"

    def _lock_of(self, runner: str) -> FileLock:
        return FileLock(self._lock_path(runner), is_singleton=False, thread_local=False, mode=0o600)

    def _is_alive(self, runner: str) -> bool:
        """Whether a process still holds its lock."""
        if runner == self._runner:
            return True
        # Acquiring the lock would create a missing file; a process that ended in order has removed its own.
        if not self._lock_path(runner).exists():
            return False
        lock = self._lock_of(runner)
        try:
            lock.acquire(timeout=0)
        except (Timeout, OSError):
            return True
        lock.release()
        return False

    def _interrupt_all(self, runner: str) -> None:
        """Mark the tasks of a dead process as interrupted, and remove the process."""
        with transaction(self._connection):
            query = f"SELECT {_FIELDS} FROM tasks WHERE runner = ? AND {_RUNNING}"  # noqa: S608
            for row in self._connection.execute(query, (runner,)).fetchall():
                self._store(TaskRecord(*row).interrupt(self._clock()))
        with suppress(OSError):
            self._lock_path(runner).unlink()

    def _insert(self, record: TaskRecord) -> None:
        with transaction(self._connection):
            self._connection.execute("DELETE FROM tasks WHERE expires <= ?", (self._clock(),))
            # Counted and inserted in one transaction, so that processes cannot pass a limit together.
            check_new_task(self._limits, *self._count(record.caller))
            values = (*astuple(record), len(record.payload), record.expires, self._runner)
            marks = ", ".join("?" * len(values))
            self._connection.execute(
                f"INSERT INTO tasks ({_FIELDS}, size, expires, runner) VALUES ({marks})",  # noqa: S608
                values,
            )

    def _count(self, caller: str, without: str = "") -> tuple[Kept, Kept]:
        """Count the tasks and bytes of a caller and of all callers, without one task."""
        sums = "SELECT count(*), coalesce(sum(size), 0) FROM tasks WHERE expires > ? AND id != ?"
        arguments = (self._clock(), without)
        of_caller = self._connection.execute(f"{sums} AND caller = ?", (*arguments, caller)).fetchone()
        return Kept(*of_caller), Kept(*self._connection.execute(sums, arguments).fetchone())

    def _select(self, task_id: str) -> TaskRecord | None:
        query = f"SELECT {_FIELDS}, runner FROM tasks WHERE id = ? AND expires > ?"  # noqa: S608
        row = self._connection.execute(query, (task_id, self._clock())).fetchone()
        if row is None:
            return None
        record, runner = TaskRecord(*row[:-1]), row[-1]
        if record.has_ended or self._is_alive(runner):
            return record
        # Its process died without a final state: mark all its tasks, then read the result.
        self._interrupt_all(runner)
        return self._select(task_id)

    def _update(self, record: TaskRecord) -> bool:
        with transaction(self._connection):
            # The first final state counts. Check and write are one transaction, which takes the write lock at
            # its start, so two processes cannot both pass.
            query = f"SELECT 1 FROM tasks WHERE id = ? AND expires > ? AND {_RUNNING}"  # noqa: S608
            if self._connection.execute(query, (record.id, self._clock())).fetchone() is None:
                return False
            if record.payload:
                check_payload(self._limits, record.payload, *self._count(record.caller, record.id))
            self._store(record)
            return True

    def _store(self, record: TaskRecord) -> None:
        self._connection.execute(
            "UPDATE tasks SET status = ?, message = ?, payload = ?, size = ?, updated = ? WHERE id = ?",
            (record.status, record.message, record.payload, len(record.payload), record.updated, record.id),
        )
