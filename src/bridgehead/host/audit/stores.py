"""Stores: the audit in a SQLite file of this machine, or in PostgreSQL for all replicas."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bridgehead.runtime.errors import StorageError, Unavailable
from bridgehead.runtime.stores import sqlite

from .trail import Line, Query

if TYPE_CHECKING:
    from bridgehead.runtime.stores import postgres

T = TypeVar("T")

FILE = "audit.sqlite3"
_VERSION = 1
_FIELDS = Line.__struct_fields__
_TABLE = """\
CREATE TABLE audit (id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, client TEXT NOT NULL,
tool TEXT NOT NULL, outcome TEXT NOT NULL, bridge TEXT NOT NULL, reason TEXT NOT NULL,
arguments TEXT NOT NULL, ms REAL NOT NULL, bytes INTEGER, cost_usd REAL, request TEXT NOT NULL,
replica TEXT NOT NULL, key TEXT NOT NULL UNIQUE)"""
_INDEXES = ("CREATE INDEX audit_at ON audit (at)", "CREATE INDEX audit_client ON audit (client, at)")
_ADD = f"INSERT OR IGNORE INTO audit ({', '.join(_FIELDS)}) VALUES ({', '.join('?' * len(_FIELDS))})"  # noqa: S608 - made of the names above
# Both conditions at once: too old, or beyond the number to keep.
_PRUNE = "DELETE FROM audit WHERE at < ? OR id <= (SELECT max(id) FROM audit) - ?"


class SqliteAudit:
    """The audit in a file, which the processes of one machine share."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._lock = threading.Lock()
        """Protects the connection, which the threads of `asyncio.to_thread` share."""
        self._connection: sqlite3.Connection | None = None

    async def write(self, lines: Sequence[Line]) -> None:
        """Store lines; one that is stored already is skipped. Raises StorageError."""
        rows = [tuple(getattr(line, name) for name in _FIELDS) for line in lines]

        def write(connection: sqlite3.Connection) -> None:
            with sqlite.transaction(connection):
                connection.executemany(_ADD, rows)

        await asyncio.to_thread(self._do, write)

    async def search(self, query: Query) -> list[Line]:
        """Return the matching lines, newest first. Raises StorageError."""
        return await asyncio.to_thread(self.find, query)

    def find(self, query: Query) -> list[Line]:
        """Return the matching lines, newest first. Blocks. Raises StorageError."""
        wanted: list[str] = []
        values: list[Any] = []
        for column, operator, value in query.conditions():
            if operator == "in":
                wanted.append(f"{column} IN ({', '.join('?' * len(value))})")
                values += value
            else:
                wanted.append(f"{column} {operator} ?" + (r" ESCAPE '\'" if operator == "like" else ""))
                values.append(value)
        where = f"WHERE {' AND '.join(wanted)}" if wanted else ""
        statement = (
            f"SELECT {', '.join(_FIELDS)} FROM audit {where} "  # noqa: S608 - made of the names above
            "ORDER BY at DESC, id DESC LIMIT ? OFFSET ?"
        )
        rows = self._do(lambda one: one.execute(statement, (*values, query.limit, query.offset)).fetchall())
        return [Line(*row) for row in rows]

    async def prune(self, before: float, keep: int) -> None:
        """Delete what is older than a time, and the oldest beyond a number of lines. Raises StorageError."""
        await asyncio.to_thread(self._do, lambda connection: connection.execute(_PRUNE, (before, keep)))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            with self._lock:
                if self._connection is None:
                    sqlite.create_private(self._path)
                    self._connection = sqlite.open_database(
                        self._path, (_TABLE, *_INDEXES), _VERSION, what="audit", one_thread=False
                    )
                return work(self._connection)
        except (sqlite3.Error, OSError) as problem:
            raise StorageError(f"The audit cannot be used: {sqlite.explain(problem)}.") from problem


_TYPES = {"at": "float8", "ms": "float8", "bytes": "bigint", "cost_usd": "float8", "key": "uuid"}
# One array per column: a batch of any size is the same statement, so PostgreSQL plans it once. The key makes
# it safe to send a batch again when its acknowledgement was lost: stored lines are skipped.
_STORE = f"""\
insert into host_audit ({", ".join(_FIELDS)})
select to_timestamp(at), {", ".join(_FIELDS[1:])}
from unnest({", ".join(f"${n}::{_TYPES.get(name, 'text')}[]" for n, name in enumerate(_FIELDS, 1))})
as g ({", ".join(_FIELDS)}) on conflict (key) do nothing"""  # noqa: S608 - made of the names above
_SHOWN = ["extract(epoch from at)::float8", *_FIELDS[1:-1], "key::text"]


class PostgresAudit:
    """The audit of all replicas."""

    def __init__(self) -> None:
        self.database: postgres.Database | None = None
        """Set when the host has opened it."""

    async def write(self, lines: Sequence[Line]) -> None:
        """Store lines; one that is stored already is skipped. Raises BridgeError."""
        columns = [[getattr(line, name) for line in lines] for name in _FIELDS]
        await self._open().writer.run(lambda connection: connection.execute(_STORE, *columns))

    async def search(self, query: Query) -> list[Line]:
        """Return the matching lines, newest first. Raises BridgeError."""
        wanted: list[str] = []
        values: list[Any] = [query.limit, query.offset]
        for column, operator, value in query.conditions():
            values.append(list(value) if operator == "in" else value)
            place = f"${len(values)}"
            if operator == "in":
                wanted.append(f"{column} = any({place}::text[])")
            else:
                shown = f"to_timestamp({place}::float8)" if column == "at" else place
                wanted.append(f"{column} {operator} {shown}")
        where = f"where {' and '.join(wanted)}" if wanted else ""
        statement = (
            f"select {', '.join(_SHOWN)} from host_audit {where} "  # noqa: S608 - made of the names above
            "order by at desc, id desc limit $1 offset $2"
        )
        rows = await self._open().reader.run(lambda connection: connection.fetch(statement, *values))
        return [Line(*row) for row in rows]

    async def prune(self, before: float, keep: int) -> None:
        """Delete what is older than a time, and the oldest beyond a number of lines. Raises BridgeError."""
        statement = (
            "delete from host_audit where at < to_timestamp($1)"
            " or id <= (select max(id) from host_audit) - $2::bigint"
        )
        await self._open().writer.run(lambda connection: connection.execute(statement, before, keep))

    def close(self) -> None:
        """Nothing: the host closes the database."""

    def _open(self) -> postgres.Database:
        if self.database is None:
            raise Unavailable("The database has not been opened yet.")
        return self.database
