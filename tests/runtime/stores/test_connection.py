"""Connection: lost, slow, refused or read-only, and one that comes back."""

import asyncio
import socket
import time
from collections.abc import Iterator

import pytest

from bridgehead.runtime.errors import BridgeError, StorageError, TimedOut, Unavailable
from bridgehead.runtime.stores import postgres
from bridgehead.runtime.stores.postgres import Database
from tests.support.postgres_server import PostgresServer, select_one
from tests.support.waiting import PATIENCE, until


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Where connections are taken and nothing is ever answered."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def comes_back(database: Database) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                assert await database.writer.run(select_one) == 1
            except BridgeError:
                await asyncio.sleep(0.02)
            else:
                return


async def test_a_connection_that_is_ended_by_the_server_is_opened_again(
    breakable_postgres: PostgresServer, database: Database
) -> None:
    await database.writer.run(select_one)
    end = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'bridgehead'"
    await asyncio.to_thread(breakable_postgres.execute, end)

    await comes_back(database)

    assert database.writer.opened >= 2


async def test_a_server_that_is_gone_fails_calls_at_once_and_is_found_again(
    breakable_postgres: PostgresServer, database: Database
) -> None:
    await database.writer.run(select_one)
    await asyncio.to_thread(breakable_postgres.kill)
    await until(lambda: database.writer.problem)

    begin = time.monotonic()
    for _ in range(10):
        with pytest.raises(Unavailable, match="is unavailable"):
            await database.writer.run(select_one)
    spent = time.monotonic() - begin
    said = database.detail
    await asyncio.to_thread(breakable_postgres.start)
    await comes_back(database)

    assert spent < 5.0  # 50 ms each, on a machine that may be busy
    assert "is down" in said
    await until(lambda: database.is_up)
    assert database.detail.endswith("is up.")


async def test_a_server_that_stands_still_fails_a_call_within_its_time(
    breakable_postgres: PostgresServer, database: Database
) -> None:
    await database.writer.run(select_one)
    await asyncio.to_thread(breakable_postgres.pause)
    try:
        with pytest.raises(TimedOut, match="did not answer within"):
            await database.writer.run(select_one, seconds=0.2)
    finally:
        await asyncio.to_thread(breakable_postgres.resume)

    await comes_back(database)


async def test_a_server_that_does_not_answer_does_not_keep_the_next_from_being_tried(
    breakable_postgres: PostgresServer, silent_port: int
) -> None:
    hosts = f"127.0.0.1:{silent_port},127.0.0.1:{breakable_postgres.port}"
    url = breakable_postgres.url.replace(f"127.0.0.1:{breakable_postgres.port}", hosts)
    database = await postgres.acquire(f"{url}?connect_timeout=1")
    await comes_back(database)
    await postgres.release(database)


async def test_who_waited_for_the_first_connection_in_vain_keeps_others_from_doing_so(
    silent_port: int,
) -> None:
    database = await postgres.acquire(f"postgresql://me@127.0.0.1:{silent_port}/db?statement_timeout=300")
    with pytest.raises(TimedOut, match=r"did not answer within 0\.3 seconds"):
        await database.reader.run(select_one)

    with pytest.raises(Unavailable, match="it did not answer in time"):
        await database.reader.run(select_one)
    await postgres.release(database)


async def test_a_slow_statement_is_ended_by_the_server_too(database: Database) -> None:
    await database.reader.run(lambda connection: connection.execute("set statement_timeout = 50"))

    with pytest.raises(TimedOut, match="took too long"):
        await database.reader.run(lambda connection: connection.execute("select pg_sleep(60)"))

    assert await database.reader.run(select_one) == 1


async def test_a_server_that_takes_no_writes_is_not_written_to(breakable_postgres: PostgresServer) -> None:
    read_only = "alter system set default_transaction_read_only = on"
    await asyncio.to_thread(breakable_postgres.execute, read_only)
    await asyncio.to_thread(breakable_postgres.execute, "select pg_reload_conf()")
    held = await postgres.acquire(breakable_postgres.url)
    try:
        await until(lambda: held.writer.problem)
        with pytest.raises(Unavailable):
            await held.writer.run(select_one)
        assert await held.reader.run(select_one) == 1
    finally:
        await postgres.release(held)


async def test_tables_that_are_missing_are_named_with_what_to_do(database: Database) -> None:
    with pytest.raises(StorageError, match="bridgehead db migrate"):
        await database.reader.run(lambda connection: connection.fetch("select * from not_there"))
