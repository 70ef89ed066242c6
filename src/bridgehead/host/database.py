"""Database: the host's own data in PostgreSQL: tokens (`auth.token_database`) and audit lines."""

from __future__ import annotations

import asyncio
import os
import socket
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
"""How long audit lines are collected for one statement."""
MAX_LINES = 10_000
"""Audit lines queued while the database is down; beyond that the oldest are only in the log."""
RETRY_SECONDS = 1.0
_MAX_BATCH = 1000
_FIELDS = ("at", "replica", "bridge", "tool", "client", "outcome", "ms", "request", "key")
_TYPES = ("float8", "text", "text", "text", "text", "text", "float8", "text", "uuid")
# One array per column: a batch of any size is the same statement, so PostgreSQL plans it once. The key makes
# it safe to send a batch again when its acknowledgement was lost: stored lines are skipped.
_STORE = f"""\
insert into host_audit ({", ".join(_FIELDS)})
select to_timestamp(at), {", ".join(_FIELDS[1:])}
from unnest({", ".join(f"${n}::{kind}[]" for n, kind in enumerate(_TYPES, 1))}) as g ({", ".join(_FIELDS)})
on conflict (key) do nothing"""  # noqa: S608 - made of the names above

log = logs.logger("host.database")


def read_schema() -> migrations.Schema:
    """Read the migrations of the host's tables."""
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
        self.needs_tokens = False
        """Whether callers need a token; if not, the host is ready before it has read any."""
        self.metrics = Metrics()
        self.dropped = self.metrics.counter(
            "bridgehead_audit_dropped_total", "Audit lines that are in the log and not in the database."
        )

    async def start(self) -> None:
        """Connect; if the database is down, `acquire` goes on trying in the background."""
        self._database = database = await postgres.acquire(self._url)
        database.count_in(self.metrics)
        if self.tokens is not None:
            self.tokens.follow(database)
        self._writing = asyncio.get_running_loop().create_task(self._write())

    async def stop(self) -> None:
        """Write the queued audit lines and close the connection."""
        if self._writing is not None:
            self._writing.cancel()
        if self._database is not None:
            await self._write_lines()
            await postgres.release(self._database)

    def describe(self) -> Mapping[str, Any]:
        """Report the state of the database, for /readyz."""
        if self._database is None:
            return {"up": False, "says": "The database has not been opened yet."}
        return {"up": self._database.is_up, "says": self._database.detail}

    @property
    def has_tokens(self) -> bool:
        """Whether callers can be identified; False until the tokens have been read from the database."""
        return self.tokens is None or self.tokens.is_known or not self.needs_tokens

    # --- audit ---------------------------------------------------------------------------------------------

    def add_audit(self, at: float, fields: Mapping[str, Any]) -> None:
        """Queue an audit line; it is in the log already."""
        if len(self._lines) == MAX_LINES:
            self.dropped.add()  # `append` below drops the oldest line of the full deque
        values = {"at": at, "replica": self._replica, "key": uuid4(), **fields}
        self._lines.append(tuple(values[name] for name in _FIELDS))
        self._due.set()

    async def _write(self) -> None:
        while True:
            await self._due.wait()
            await asyncio.sleep(WRITE_SECONDS)
            self._due.clear()
            if not await self._write_lines():
                await asyncio.sleep(RETRY_SECONDS)
                self._due.set()

    async def _write_lines(self) -> bool:
        """Store all queued lines; return False if the database is down."""
        database = self._database
        while self._lines and database is not None:
            # Lines stay queued until they are stored, so a failure or the end of the task loses none.
            batch = [self._lines[index] for index in range(min(len(self._lines), _MAX_BATCH))]
            columns = [list(column) for column in zip(*batch, strict=True)]
            try:
                await database.writer.run(
                    lambda connection, values=columns: connection.execute(_STORE, *values)  # type: ignore[misc]
                )
            except BridgeError as failure:
                log.warn("audit lines wait for the database", lines=len(self._lines), problem=str(failure))
                return False
            for line in batch:
                # A full queue may have dropped its oldest lines during the statement.
                if self._lines and self._lines[0] is line:
                    self._lines.popleft()
        return True


def open_host_database(settings: HostSettings) -> HostDatabase | None:
    """Return the host's database, not started yet; None if none is configured."""
    if settings.database_url is None:
        return None

    return HostDatabase(settings.database_url, f"{socket.gethostname()}:{os.getpid()}")
