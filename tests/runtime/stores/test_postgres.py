"""PostgreSQL: its address, and two connections that are lost, slow, refused or read-only, and come back."""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridgehead.runtime.errors import BridgeError, StorageError, TimedOut, Unavailable
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.stores import postgres
from bridgehead.runtime.stores.postgres import (
    STATEMENT_SECONDS,
    Database,
    ReconnectingConnection,
    parse_address,
)
from tests.support.posix import dying_with_us
from tests.support.postgres_server import PostgresServer, select_one
from tests.support.redis_server import wait_until
from tests.support.stdio_peer import ROOT
from tests.support.tcp import is_listening
from tests.support.waiting import PATIENCE, until


def test_nothing_of_the_driver_is_loaded_before_a_database_is_opened() -> None:
    program = "import sys, bridgehead.runtime.stores.postgres; print('asyncpg' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


def test_an_address_says_whether_a_bouncer_is_between() -> None:
    plain = parse_address("postgresql://me:secret@db:5432/team?sslmode=require")
    pooled = parse_address("postgresql://me:secret@db:6432/team?statement_cache_size=0&sslmode=require")

    assert (plain.is_pooled, pooled.is_pooled) == (False, True)
    assert pooled.url == "postgresql://me:secret@db:6432/team?sslmode=require"
    assert pooled.shown == "db:6432/team"


def test_an_address_says_how_long_a_statement_may_take() -> None:
    given = parse_address("postgresql://db/team?statement_timeout=250&sslmode=require")
    odd = parse_address("postgresql://db/team?statement_timeout=soon")

    assert (given.seconds, given.url) == (0.25, "postgresql://db/team?sslmode=require")
    assert odd.seconds == STATEMENT_SECONDS


def test_an_address_names_its_servers_and_how_long_connecting_to_one_may_take() -> None:
    given = parse_address("postgresql://me:secret@one:5433,two/team?connect_timeout=2&sslmode=require")
    plain = parse_address("postgresql://db/team")

    assert given.servers == [
        "postgresql://me:secret@one:5433/team?sslmode=require",
        "postgresql://me:secret@two/team?sslmode=require",
    ]
    assert (given.connect_seconds, plain.connect_seconds) == (2, 0)
    assert plain.servers == ["postgresql://db/team"]


async def test_everybody_in_a_process_shares_two_connections(breakable_postgres: PostgresServer) -> None:
    url = breakable_postgres.url
    first, second = await postgres.acquire(url), await postgres.acquire(url)
    count = "select count(*) from pg_stat_activity where application_name = 'bridgehead'"
    await asyncio.gather(*(first.writer.run(select_one) for _ in range(20)), second.reader.run(select_one))

    found = await first.reader.run(lambda connection: connection.fetchval(count))
    await postgres.release(first)
    still = await second.writer.run(select_one)
    await postgres.release(second)

    assert (first is second, found, still) == (True, 2, 1)


async def test_metrics_tell_what_became_of_statements(database: Database) -> None:
    metrics = Metrics()
    database.count_in(metrics)
    await database.writer.run(select_one)
    with pytest.raises(StorageError):
        await database.writer.run(lambda connection: connection.execute("nonsense"))

    values = {metric.name: metric.values for metric in metrics.all if hasattr(metric, "values")}

    assert values["bridgehead_database_up"][("writer",)] == 1
    assert values["bridgehead_database_statements_total"]["writer", "ok"] == 1
    assert values["bridgehead_database_statements_total"]["writer", "failed"] == 1


async def test_a_wrong_password_is_told_without_the_password() -> None:
    held = Database("postgresql://me:hunter2@127.0.0.1:9/none")
    held.start()
    try:
        with pytest.raises(Unavailable) as failure:
            await held.reader.run(select_one)
    finally:
        await held.close()

    assert "hunter2" not in f"{failure.value} {held.detail}"


# --- a connection that is lost -----------------------------------------------------------------------


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


async def test_closing_closes_a_connection_that_is_still_being_opened(database_url: str) -> None:
    opened: list[Any] = []
    database = Database(database_url)

    async def never_end(connection: Any) -> None:
        opened.append(connection)
        await asyncio.Event().wait()

    database.writer.when_opened(never_end)
    database.writer.open()
    await until(lambda: bool(opened))
    await database.close()

    assert opened[0].is_closed()


async def test_a_statement_that_comes_after_closing_opens_nothing(database_url: str) -> None:
    database = await postgres.acquire(database_url)
    await database.reader.run(select_one)
    await postgres.release(database)

    with pytest.raises(Unavailable):
        await database.reader.run(select_one)
    assert database.reader.opened == 1


async def test_closing_waits_for_the_driver_to_clean_up_behind_a_connection() -> None:
    under_way, cleaned = asyncio.Event(), asyncio.Event()

    async def connect() -> Any:
        try:
            under_way.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # as the driver closes what it had opened
            cleaned.set()

    connection = ReconnectingConnection("writer", connect)
    connection.open()
    await under_way.wait()
    await connection.close()

    assert cleaned.is_set()


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


# --- the server of these tests -----------------------------------------------------------------------


LEFT_BEHIND = """\
import sys, time
from tests.support.postgres_server import running
with running() as server:
    print(server.port, flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(not dying_with_us("QUIT"), reason="the system cannot end a process with its parent")
def test_a_server_of_tests_ends_with_the_run_that_started_it_however_that_ends() -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # PostgreSQL is another user than root
        environment = {**os.environ, "TMPDIR": folder}
        environment.pop("PYTEST_XDIST_WORKER", None)  # its files would stay in memory
        command = [sys.executable, "-c", LEFT_BEHIND]
        run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, env=environment)
        assert run.stdout is not None
        with run.stdout as said:
            port = int(said.readline())
        run.kill()
        run.wait(PATIENCE)

        wait_until(lambda: not is_listening(port))


@pytest.mark.parametrize("is_endless", [False, True])
def test_what_the_driver_still_does_has_ended_when_a_command_closes_its_database(
    database_url: str, monkeypatch: pytest.MonkeyPatch, *, is_endless: bool
) -> None:
    monkeypatch.setattr(postgres, "CLOSE_SECONDS", 0.05 if is_endless else PATIENCE)

    async def begin() -> asyncio.Task[None]:
        return asyncio.create_task(asyncio.sleep(3600 if is_endless else 0.01))

    with postgres.opened_in_thread(database_url) as database:
        task = database.wait_for(begin())

    assert task.done()
    assert task.cancelled() is is_endless
