"""Migrations: forward only, under a lock, all or nothing, from every earlier version."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from bridgehead.commands.db import all_schemas
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.stores.migrations import (
    Migration,
    MigrationError,
    Schema,
    check_schema,
    migrate,
    read_schema,
    read_status,
)
from tests.support.postgres_server import PostgresServer

FIRST = Migration(1, "first", "create table one (a int)")
SECOND = Migration(2, "second", "alter table one add column b int")
BROKEN = Migration(2, "second", "create table two (a int); select * from nowhere")

COLUMNS = """\
select table_name, column_name, data_type, is_nullable, column_default from information_schema.columns
where table_schema = 'public' and table_name <> 'bridgehead_migrations' order by 1, 2"""
INDEXES = "select indexdef from pg_indexes where schemaname = 'public' order by 1"


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Any]:
    held = await asyncpg.connect(database_url)
    yield held
    await held.close()


async def shape(connection: Any) -> list[Any]:
    return [*map(tuple, await connection.fetch(COLUMNS)), *map(tuple, await connection.fetch(INDEXES))]


async def test_what_is_missing_is_applied_once_and_written_down(connection: Any) -> None:
    schema = Schema("room", (FIRST, SECOND))

    applied = await migrate(connection, [schema])
    again = await migrate(connection, [schema])

    assert [(part, one.version) for part, one in applied] == [("room", 1), ("room", 2)]
    assert again == []
    assert await connection.fetchval("select count(*) from bridgehead_migrations") == 2


async def test_looking_changes_nothing_and_tells_what_is_behind(connection: Any) -> None:
    [before] = await read_status(connection, [Schema("room", (FIRST,))])
    await migrate(connection, [Schema("room", (FIRST,))])
    [after] = await read_status(connection, [Schema("room", (FIRST, SECOND))])

    assert (before.version, before.is_behind) == (0, True)
    assert (after.version, after.newest, after.is_behind) == (1, 2, True)


async def test_a_failure_leaves_nothing_half_done(connection: Any) -> None:
    await migrate(connection, [Schema("room", (FIRST,))])

    with pytest.raises(MigrationError, match="0002 of room"):
        await migrate(connection, [Schema("room", (FIRST, BROKEN))])

    assert await connection.fetchval("select to_regclass('two')") is None
    assert await connection.fetchval("select count(*) from bridgehead_migrations") == 1


async def test_replicas_that_migrate_at_once_apply_each_step_once(database_url: str) -> None:
    held = [await asyncpg.connect(database_url) for _ in range(5)]

    applied = await asyncio.gather(*(migrate(one, [Schema("room", (FIRST, SECOND))]) for one in held))
    for one in held:
        await one.close()

    assert sorted(len(steps) for steps in applied) == [0, 0, 0, 0, 2]


async def test_a_file_that_changed_after_it_was_applied_is_refused(connection: Any) -> None:
    await migrate(connection, [Schema("room", (FIRST,))])
    changed = Migration(1, "first", "create table one (a text)")

    with pytest.raises(MigrationError, match="not the one that was applied"):
        await migrate(connection, [Schema("room", (changed,))])


async def test_an_older_program_works_with_newer_tables_and_a_newer_one_asks_for_them(
    connection: Any,
) -> None:
    await migrate(connection, [Schema("room", (FIRST, SECOND))])

    await check_schema(connection, Schema("room", (FIRST,)))
    third = Migration(3, "third", "select 1")
    with pytest.raises(BridgeError, match="bridgehead db migrate"):
        await check_schema(connection, Schema("room", (FIRST, SECOND, third)))


def test_the_numbers_of_the_files_have_no_gaps(tmp_path: Path) -> None:
    (tmp_path / "0001_first.sql").write_text("select 1")
    (tmp_path / "0003_third.sql").write_text("select 1")

    with pytest.raises(MigrationError, match="0003_third"):
        read_schema("room", tmp_path)


STARTS = [(schema.part, version) for schema in all_schemas() for version in range(schema.version + 1)]


@pytest.mark.parametrize(("part", "version"), STARTS)
async def test_every_earlier_version_comes_to_the_same_tables(
    postgres_server: PostgresServer, connection: Any, part: str, version: int
) -> None:
    [schema] = [one for one in all_schemas() if one.part == part]
    fresh = await asyncpg.connect(await asyncio.to_thread(postgres_server.make_database))
    await migrate(fresh, [schema])

    await migrate(connection, [schema], upto=version)
    await migrate(connection, [schema])

    assert await shape(connection) == await shape(fresh)
    await fresh.close()
