"""Migrations: the tables of each part of the product, as versioned SQL files that are applied in order.

A part (a bridge, the host) has a folder of files named `0001_what_it_does.sql`. The table
`bridgehead_migrations` lists those that a database has. They are applied under an advisory lock and in one
transaction, so that several replicas may start at once and a failure leaves nothing half done. There are no
downgrades: an applied file must not change, and the previous release must still work after each one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from ..errors import BridgeError, StorageError, TimedOut, Unavailable
from ..findings import Finding

if TYPE_CHECKING:
    from .postgres import Connection

LOCK = 0x6272696467656865
"""The advisory lock of a migration: the first eight letters of the product's name."""
_FILE = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_TABLE = """\
create table if not exists bridgehead_migrations (
    part text not null,
    version integer not null,
    name text not null,
    checksum text not null,
    applied timestamptz not null default now(),
    primary key (part, version)
)"""


class MigrationError(StorageError):
    """The tables cannot be brought to this version."""

    code = "migration"


class Migration(Struct, frozen=True):
    """One migration file."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """Detects a file that was changed after it was applied; the same for both kinds of line end."""
        return sha256(self.sql.replace("\r\n", "\n").encode()).hexdigest()


class Schema(Struct, frozen=True):
    """The tables of one part of the product."""

    part: str
    migrations: tuple[Migration, ...]

    @property
    def version(self) -> int:
        """The newest version."""
        return len(self.migrations)


class SchemaStatus(Struct, frozen=True):
    """The version of one part's tables in a database."""

    part: str
    version: int
    """The version in the database."""
    newest: int
    """The version of this program."""

    @property
    def is_behind(self) -> bool:
        """Whether there are migrations to apply."""
        return self.version < self.newest


def read_schema(part: str, folder: Path) -> Schema:
    """Read the files of one part; their numbers have no gaps."""
    migrations: list[Migration] = []
    for path in sorted(folder.glob("*.sql")):
        named = _FILE.fullmatch(path.name)
        if named is None or int(named[1]) != len(migrations) + 1:
            raise MigrationError(f"{path.name} of {part} is not the migration {len(migrations) + 1:04}.")
        migrations.append(Migration(int(named[1]), named[2], path.read_text(encoding="utf-8")))
    return Schema(part, tuple(migrations))


async def migrate(
    connection: Connection, schemas: Iterable[Schema], upto: int | None = None
) -> list[tuple[str, Migration]]:
    """Apply all missing migrations in one transaction; return the applied ones.

    `upto` stops at a version, for tests that begin at an earlier one.
    """
    import asyncpg

    applied: list[tuple[str, Migration]] = []
    async with connection.transaction():
        # A migration may take longer than a call; `local` ends with the transaction.
        await connection.execute("set local statement_timeout = 0")
        await connection.execute("set local lock_timeout = 0")
        # Replicas that start at once queue here; the lock is released with the transaction, also by a crash.
        await connection.execute("select pg_advisory_xact_lock($1)", LOCK)
        await connection.execute(_TABLE)
        for schema in schemas:
            done = await _read_applied(connection, schema)
            for migration in schema.migrations[len(done) : upto]:
                try:
                    await connection.execute(migration.sql)
                except asyncpg.PostgresError as failure:
                    raise MigrationError(
                        f"Migration {migration.version:04} of {schema.part} ({migration.name}) failed: "
                        f"{failure}.",
                        next_step="Nothing was changed. Fix the cause and run `bridgehead db migrate` again.",
                    ) from failure
                await connection.execute(
                    "insert into bridgehead_migrations (part, version, name, checksum) "
                    "values ($1, $2, $3, $4)",
                    schema.part,
                    migration.version,
                    migration.name,
                    migration.checksum,
                )
                applied.append((schema.part, migration))
    return applied


async def _read_applied(connection: Connection, schema: Schema) -> list[int]:
    """Return the versions that a database has; refuse a history that differs from the files."""
    rows = await connection.fetch(
        "select version, checksum from bridgehead_migrations where part = $1 order by version", schema.part
    )
    # Not strict: a newer program may have applied more, and this one still works with its tables.
    for row, migration in zip(rows, schema.migrations, strict=False):
        if (row["version"], row["checksum"]) != (migration.version, migration.checksum):
            raise MigrationError(
                f"Migration {migration.version:04} of {schema.part} ({migration.name}) is not the one that "
                "was applied to this database.",
                next_step="Use the release that made the database, or a newer one.",
            )
    return [row["version"] for row in rows]


async def read_status(connection: Connection, schemas: Iterable[Schema]) -> list[SchemaStatus]:
    """Return the version of each part in the database; changes nothing."""
    has_table = await connection.fetchval("select to_regclass('bridgehead_migrations') is not null")
    statuses = []
    for schema in schemas:
        done = await _read_applied(connection, schema) if has_table else []
        statuses.append(SchemaStatus(schema.part, len(done), schema.version))
    return statuses


async def check_schema(connection: Connection, schema: Schema) -> None:
    """Refuse a database whose tables are older than this program; newer ones are compatible."""
    [status] = await read_status(connection, [schema])
    if status.is_behind:
        raise BridgeError(
            f"The database has version {status.version} of the tables of {schema.part}, and this program "
            f"needs version {status.newest}.",
            next_step="Run `bridgehead db migrate`.",
        )


async def examine(url: str | None, schema: Callable[[], Schema], holds: str) -> Finding:
    """Return the doctor's finding on a database; `holds` names what it stores."""
    if url is None:
        return Finding("database", "right", f"not set: {holds} are kept on this machine")
    from . import postgres  # lazy: PostgreSQL, 14 ms

    shown = postgres.parse_address(url).shown
    try:
        database = await postgres.acquire(url)
        try:
            [status] = await database.writer.run(lambda connection: read_status(connection, [schema()]))
        finally:
            await postgres.release(database)
    except (Unavailable, TimedOut) as failure:
        advice = "Start it, or correct BRIDGEHEAD_DATABASE_URL."
        return Finding("database", "wrong", f"{shown}: {failure.message}", advice)
    except BridgeError as failure:
        return Finding("database", "wrong", failure.message, failure.next_step)
    if status.is_behind:
        versions = f"version {status.version} of {status.newest} of its tables"
        return Finding("database", "wrong", f"{shown} has {versions}", "Run `bridgehead db migrate`.")
    return Finding("database", "right", f"{holds} are in {shown}, shared by all replicas")
