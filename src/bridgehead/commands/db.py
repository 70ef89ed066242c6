"""Db: `bridgehead db migrate|status` for the PostgreSQL tables of the host and of every bridge."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping

from bridgehead.runtime import plugins
from bridgehead.runtime.command_line import Parser
from bridgehead.runtime.directories import DatabaseSettings
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.stores import migrations

_ABOUT = """\
The tables that Bridgehead keeps in PostgreSQL, in the database that BRIDGEHEAD_DATABASE_URL names.
You can migrate at any time, and from several machines at once: each waits for its turn. A migration applies
everything that is missing, or nothing, and never downgrades.

  bridgehead db status
  bridgehead db migrate
"""
_MIGRATION_SECONDS = 3600.0
"""Long enough to wait for another machine's migration of a large table."""


def parser() -> Parser:
    """Return the parser of the command line."""
    command = Parser(prog="bridgehead db", description=_ABOUT)
    acts = command.add_subparsers(dest="act", required=True, metavar="migrate|status")
    acts.add_parser("migrate", help="upgrade the tables to this version")
    acts.add_parser("status", help="show which versions the database has; exits with 1 if one is behind")
    return command


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Migrate, or print the status and return 1 if a table is behind."""
    options = parser().parse_args(arguments)
    settings = DatabaseSettings(environment)
    if settings.database_url is None:
        raise BridgeError(
            "BRIDGEHEAD_DATABASE_URL is not set.", next_step="Set it to a postgresql:// address."
        )
    return asyncio.run(_run(options.act, settings.database_url))


def all_schemas() -> list[migrations.Schema]:
    """Return the schema of the host and of each built-in bridge that has one."""
    from bridgehead.host.database import read_schema  # lazy: PostgreSQL, 14 ms

    manifests = (plugins.load(name) for name in plugins.built_in_names())
    return [read_schema()] + [manifest.schema() for manifest in manifests if manifest.schema is not None]


async def _run(act: str, url: str) -> int:
    from bridgehead.runtime.stores import postgres  # lazy: PostgreSQL, 14 ms

    schemas = all_schemas()

    async def migrate(connection: postgres.Connection) -> int:
        applied = await migrations.migrate(connection, schemas)
        for part, migration in applied:
            sys.stdout.write(f"applied {part} {migration.version:04} {migration.name}\n")
        if not applied:
            sys.stdout.write("Nothing to do: every table has its newest version.\n")
        return 0

    async def show_status(connection: postgres.Connection) -> int:
        statuses = await migrations.read_status(connection, schemas)
        for status in statuses:
            remark = ""
            if status.is_behind:
                remark = ", behind"
            elif status.version > status.newest:
                remark = ", newer than this program"
            sys.stdout.write(f"{status.part:11} version {status.version} of {status.newest}{remark}\n")
        is_behind = any(status.is_behind for status in statuses)
        if is_behind:
            sys.stdout.write("Run `bridgehead db migrate`.\n")
        return int(is_behind)

    database = await postgres.acquire(url)
    try:
        return await database.writer.run(
            migrate if act == "migrate" else show_status, seconds=_MIGRATION_SECONDS
        )
    finally:
        await postgres.release(database)
