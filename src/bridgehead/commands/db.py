"""Db: `bridgehead db migrate|status`, the tables of every part of the product in PostgreSQL."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from bridgehead.runtime import plugins
from bridgehead.runtime.command_line import Parser
from bridgehead.runtime.directories import DatabaseSettings
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.stores import migrations

if TYPE_CHECKING:
    from bridgehead.runtime.stores import postgres

T = TypeVar("T")

_ABOUT = """\
The tables that Bridgehead keeps in PostgreSQL, in the database that BRIDGEHEAD_DATABASE_URL names.
You can migrate at any time, and from several machines at once: each waits for its turn. A migration applies
everything that is missing, or nothing, and never downgrades.

  bridgehead db status
  bridgehead db migrate
"""
_NEVER = 3600.0


def parser() -> Parser:
    """Return the parser of the command line."""
    found = Parser(prog="bridgehead db", description=_ABOUT)
    acts = found.add_subparsers(dest="act", required=True, metavar="migrate|status")
    acts.add_parser("migrate", help="upgrade the tables to this version")
    acts.add_parser("status", help="show which versions the database has; exits with 1 if one is behind")
    return found


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Migrate, or look; return the exit status."""
    chosen = parser().parse_args(arguments)
    settings = DatabaseSettings(environment)
    if settings.database_url is None:
        raise BridgeError(
            "BRIDGEHEAD_DATABASE_URL is not set.", next_step="Set it to a postgresql:// address."
        )
    schemas = all_schemas()
    if chosen.act == "migrate":
        return asyncio.run(_with_database(settings.database_url, lambda held: _migrate(held, schemas)))
    return asyncio.run(_with_database(settings.database_url, lambda held: _status(held, schemas)))


def all_schemas() -> list[migrations.Schema]:
    """Return the tables of every part that has some."""
    from bridgehead.host.database import read_schema

    manifests = (plugins.load(name) for name in plugins.built_in_names())
    return [read_schema()] + [manifest.schema() for manifest in manifests if manifest.schema is not None]


async def _with_database(url: str, work: Callable[[postgres.Connection], Awaitable[T]]) -> T:
    from bridgehead.runtime.stores import postgres

    database = await postgres.acquire(url)
    try:
        return await database.writer.run(work, seconds=_NEVER)
    finally:
        await postgres.release(database)


async def _migrate(connection: postgres.Connection, schemas: list[migrations.Schema]) -> int:
    applied = await migrations.migrate(connection, schemas)
    for part, migration in applied:
        sys.stdout.write(f"applied {part} {migration.version:04} {migration.name}\n")
    if not applied:
        sys.stdout.write("Nothing to do: every table has its newest version.\n")
    return 0


async def _status(connection: postgres.Connection, schemas: list[migrations.Schema]) -> int:
    statuses = await migrations.read_status(connection, schemas)
    for status in statuses:
        sys.stdout.write(f"{status.part:11} version {status.version} of {status.newest}{_word(status)}\n")
    is_behind = any(status.is_behind for status in statuses)
    if is_behind:
        sys.stdout.write("Run `bridgehead db migrate`.\n")
    return int(is_behind)


def _word(status: migrations.SchemaStatus) -> str:
    if status.is_behind:
        return ", behind"
    return ", newer than this program" if status.version > status.newest else ""
