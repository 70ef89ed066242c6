"""Connection: lost, slow, refused or read-only, and one that comes back."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from bridgehead.runtime.errors import BridgeError, StorageError, TimedOut, Unavailable
from bridgehead.runtime.stores import postgres
from bridgehead.runtime.stores.postgres import Database
from tests.support.postgres_server import PostgresServer, running
from tests.support.waiting import PATIENCE, until


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server that a test may break."""
    with running() as found:
        yield found


@pytest.fixture
async def database(server: PostgresServer) -> AsyncIterator[Database]:
    held = await postgres.acquire(server.url)
    yield held
    await postgres.release(held)


async def one(connection: Any) -> int:
    found: int = await connection.fetchval("select 1")
    return found


async def comes_back(database: Database) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                assert await database.writer.run(one) == 1
            except BridgeError:
                await asyncio.sleep(0.02)
            else:
                return


async def test_a_connection_that_is_ended_by_the_server_is_opened_again(
    server: PostgresServer, database: Database
) -> None:
    await database.writer.run(one)
    end = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'bridgehead'"
    await asyncio.to_thread(server.execute, end)

    await comes_back(database)

    assert database.writer.opened >= 2


async def test_a_server_that_is_gone_fails_calls_at_once_and_is_found_again(
    server: PostgresServer, database: Database
) -> None:
    await database.writer.run(one)
    await asyncio.to_thread(server.kill)
    await until(lambda: database.writer.problem)

    begin = time.monotonic()
    for _ in range(10):
        with pytest.raises(Unavailable, match="not there"):
            await database.writer.run(one)
    spent = time.monotonic() - begin
    said = database.says
    await asyncio.to_thread(server.start)
    await comes_back(database)

    assert spent < 5.0  # 50 ms each, on a machine that may be busy
    assert "is not there" in said
    await until(lambda: database.is_there)
    assert database.says.endswith("is there.")


async def test_a_server_that_stands_still_fails_a_call_within_its_time(
    server: PostgresServer, database: Database
) -> None:
    await database.writer.run(one)
    await asyncio.to_thread(server.pause)
    try:
        with pytest.raises(TimedOut, match="did not answer within"):
            await database.writer.run(one, seconds=0.2)
    finally:
        await asyncio.to_thread(server.resume)

    await comes_back(database)


async def test_a_slow_statement_is_ended_by_the_server_too(database: Database) -> None:
    await database.reader.run(lambda connection: connection.execute("set statement_timeout = 50"))

    with pytest.raises(TimedOut, match="took too long"):
        await database.reader.run(lambda connection: connection.execute("select pg_sleep(60)"))

    assert await database.reader.run(one) == 1


async def test_a_server_that_takes_no_writes_is_not_written_to(server: PostgresServer) -> None:
    read_only = "alter system set default_transaction_read_only = on"
    await asyncio.to_thread(server.execute, read_only)
    await asyncio.to_thread(server.execute, "select pg_reload_conf()")
    held = await postgres.acquire(server.url)
    try:
        await until(lambda: held.writer.problem)
        with pytest.raises(Unavailable):
            await held.writer.run(one)
        assert await held.reader.run(one) == 1
    finally:
        await postgres.release(held)


async def test_tables_that_are_missing_are_named_with_what_to_do(database: Database) -> None:
    with pytest.raises(StorageError, match="bridgehead db migrate"):
        await database.reader.run(lambda connection: connection.fetch("select * from not_there"))
