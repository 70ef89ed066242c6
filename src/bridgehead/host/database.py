"""Database: what the host keeps in PostgreSQL where there is one: tokens and audit lines."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.stores import migrations, postgres

from .settings import HostSettings

if TYPE_CHECKING:
    from .auth.token_database import SharedTokens

WRITE_SECONDS = 0.2
"""How long an audit line waits for others that go into the same statement."""
MAX_LINES = 10_000
"""Audit lines that wait for a database that is gone; beyond that the oldest are in the log alone."""
_MAX_BATCH = 1000
_FIELDS = ("at", "replica", "bridge", "tool", "client", "outcome", "ms", "request", "key")
_TYPES = ("float8", "text", "text", "text", "text", "text", "float8", "text", "uuid")
_STORE = f"""\
insert into host_audit ({", ".join(_FIELDS)})
select to_timestamp(at), {", ".join(_FIELDS[1:])}
from unnest({", ".join(f"${n}::{kind}[]" for n, kind in enumerate(_TYPES, 1))}) as g ({", ".join(_FIELDS)})
on conflict (key) do nothing"""  # noqa: S608 - made of the names above

log = logs.logger("host.database")


def read_schema() -> migrations.Schema:
    """Read the host's own tables."""
    return migrations.read_schema("host", Path(__file__).parent / "migrations")


class HostDatabase:
    """The host's part of the database, shared by all replicas."""

    def __init__(self, url: str, replica: str) -> None:
        self._url = url
        self._replica = replica
        self._database: postgres.Database | None = None
        self._lines: deque[tuple[object, ...]] = deque(maxlen=MAX_LINES)
        self._due = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None
        self.tokens: SharedTokens | None = None
        self.metrics = Metrics()
        self.dropped = self.metrics.counter(
            "bridgehead_audit_dropped_total", "Audit lines that are in the log and not in the database."
        )

    async def start(self) -> None:
        """Connect, or go on trying."""
        self._database = database = await postgres.acquire(self._url)
        database.count_in(self.metrics)
        if self.tokens is not None:
            self.tokens.follow(database)
        self._writing = asyncio.get_running_loop().create_task(self._write())

    async def stop(self) -> None:
        """Write what is left, and let go."""
        if self._writing is not None:
            self._writing.cancel()
        if self._database is not None:
            await self._write_lines()
            await postgres.release(self._database)

    def describe(self) -> Mapping[str, Any]:
        """Say how the database is, for /readyz."""
        if self._database is None:
            return {"up": False, "says": "The database has not been opened yet."}
        return {"up": self._database.is_up, "says": self._database.detail}

    @property
    def lets_callers_in(self) -> bool:
        """Whether the tokens of callers are known, where they are kept here."""
        return self.tokens is None or self.tokens.is_known

    # --- audit ---------------------------------------------------------------------------------------------

    def add_audit(self, at: float, fields: Mapping[str, Any]) -> None:
        """Store an audit line soon; the log has it already."""
        if len(self._lines) == MAX_LINES:
            self.dropped.add()
        values = {"at": at, "replica": self._replica, "key": uuid4(), **fields}
        self._lines.append(tuple(values[name] for name in _FIELDS))
        self._due.set()

    async def _write(self) -> None:
        while True:
            await self._due.wait()
            await asyncio.sleep(WRITE_SECONDS)
            self._due.clear()
            if not await self._write_lines():
                await asyncio.sleep(1.0)
                self._due.set()

    async def _write_lines(self) -> bool:
        """Store what waits, and tell whether it could be. A line has a key, so it may be sent twice."""
        database = self._database
        while self._lines and database is not None:
            batch = [self._lines[place] for place in range(min(len(self._lines), _MAX_BATCH))]
            columns = [list(column) for column in zip(*batch, strict=True)]
            try:
                await database.writer.run(lambda held, given=columns: held.execute(_STORE, *given))  # type: ignore[misc]
            except BridgeError as failure:
                log.warn("audit lines wait for the database", lines=len(self._lines), problem=str(failure))
                return False
            for line in batch:
                if self._lines and self._lines[0] is line:  # the oldest may have been dropped meanwhile
                    self._lines.popleft()
        return True


def open_host_database(settings: HostSettings) -> HostDatabase | None:
    """Make the host's part of the database, where the settings name one; not started yet."""
    if settings.database_url is None:
        return None
    import os
    import socket

    return HostDatabase(settings.database_url, f"{socket.gethostname()}:{os.getpid()}")
