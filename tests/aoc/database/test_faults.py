"""Faults: PostgreSQL slow, paused, read-only, full and restarted, while replicas record.

Each has a bounded time and a clear error, and nothing that was acknowledged is lost.
"""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from bridgehead.aoc.bridge import far_side
from bridgehead.aoc.database.recorder import SETTLE_SECONDS
from bridgehead.aoc.files.filters import Filters
from bridgehead.aoc.files.recorder import NewRun
from bridgehead.aoc.workspace import Workspace
from bridgehead.runtime.errors import BridgeError, StorageError, TimedOut, Unavailable
from bridgehead.runtime.stores.postgres import RECONNECTING_SECONDS
from tests.aoc.database_data import DatabaseData, faulty_replica, replica
from tests.support.postgres_server import PostgresServer
from tests.support.small_disk import SmallDisk, mount_small_disk
from tests.support.waiting import PATIENCE, until

RUN = NewRun(1, 1, "gpt4", 5)


async def recorded_again(workspace: Workspace) -> None:
    """Wait until a record is taken again."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await workspace.recorder.record(RUN)
            except BridgeError:
                await asyncio.sleep(0.02)
            else:
                return


async def refused(workspace: Workspace) -> tuple[BridgeError, float]:
    """Record until a record is refused; return why, and how long the refusal took."""
    async with asyncio.timeout(PATIENCE):
        while True:
            begin = time.monotonic()
            try:
                await workspace.recorder.record(RUN)
            except BridgeError as refusal:
                return refusal, time.monotonic() - begin


def down(workspace: Workspace) -> bool:
    assert workspace.database is not None
    return bool(workspace.database.writer.problem)


@pytest.fixture
def data(tmp_path: Path, database_url: str) -> DatabaseData:
    return DatabaseData(tmp_path, database_url)


@pytest.fixture
def breakable(tmp_path: Path, breakable_postgres: PostgresServer) -> DatabaseData:
    """Records in a database that may be broken."""
    return DatabaseData(tmp_path, breakable_postgres.url)


async def test_a_full_disk_is_told_and_records_go_on_when_there_is_room(
    data: DatabaseData, postgres_server: PostgresServer
) -> None:
    name = data.url.rpartition("/")[2]
    full = (
        "create function full_disk() returns trigger language plpgsql as $$ begin "
        "raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$; "
        "create trigger full_disk before insert on aoc_records execute function full_disk()"
    )
    async with replica(data) as workspace:
        await workspace.recorder.record(RUN)
        await asyncio.to_thread(postgres_server.execute, full, name)
        with pytest.raises(StorageError, match="its disk is full"):
            await workspace.recorder.record(RUN)
        view = await workspace.board(Filters())
        await asyncio.to_thread(postgres_server.execute, "drop trigger full_disk on aoc_records", name)
        last = await workspace.recorder.record(RUN)

    assert view.rows[0].n == 1
    assert last.figures.n == 2


@pytest.fixture
def small_disk() -> Iterator[SmallDisk]:
    """A file system with little room."""
    with mount_small_disk() as disk:
        yield disk


async def test_nothing_acknowledged_is_lost_on_a_disk_that_is_really_full(
    tmp_path: Path, small_disk: SmallDisk, breakable_postgres: PostgresServer
) -> None:
    url = await asyncio.to_thread(breakable_postgres.make_database_in, small_disk.path / "tables")
    data = await asyncio.to_thread(DatabaseData, tmp_path, url)
    acknowledged = 0
    async with replica(data) as workspace:
        await workspace.recorder.record(RUN)
        acknowledged += 1
        small_disk.fill()
        refusal: BridgeError | None = None
        while refusal is None:
            try:
                await workspace.recorder.record(RUN)
                acknowledged += 1
            except BridgeError as problem:
                refusal = problem
        view = await workspace.board(Filters())
        small_disk.make_room()
        await recorded_again(workspace)
        acknowledged += 1

    assert isinstance(refusal, StorageError)
    assert "its disk is full" in str(refusal)
    assert view.rows[0].n == acknowledged - 1
    assert len(await asyncio.to_thread(data.entries, 1)) == acknowledged


async def test_a_database_that_is_gone_adds_a_moment_at_most_to_a_record(
    breakable: DatabaseData, breakable_postgres: PostgresServer
) -> None:
    took = []
    async with replica(breakable) as workspace:
        await workspace.recorder.record(RUN)
        await asyncio.to_thread(breakable_postgres.kill)
        await until(lambda: down(workspace))
        for _ in range(15):
            _, spent = await refused(workspace)
            took.append(spent)

    assert median(took) < 2 * RECONNECTING_SECONDS  # twice, for a machine that is busy


async def test_a_server_that_becomes_read_only_refuses_at_once_and_boards_are_still_read(
    breakable: DatabaseData, breakable_postgres: PostgresServer
) -> None:
    async def set_read_only(word: str) -> None:
        for sql in (f"alter system set default_transaction_read_only = {word}", "select pg_reload_conf()"):
            await asyncio.to_thread(breakable_postgres.execute, sql)

    async with replica(breakable) as workspace:
        await workspace.recorder.record(RUN)
        await set_read_only("on")
        refusal, spent = await refused(workspace)
        view = await workspace.board(Filters())
        said = far_side(workspace)
        await set_read_only("off")
        await recorded_again(workspace)

    assert isinstance(refusal, Unavailable)
    assert spent < SETTLE_SECONDS  # it is sure that nothing was stored, so nothing is tried again
    assert view.rows[0].n >= 1
    assert not said.is_up
    assert "is read-only" in said.detail or "is down" in said.detail


async def test_a_restart_is_noticed_and_records_are_taken_again(
    breakable: DatabaseData, breakable_postgres: PostgresServer
) -> None:
    async with replica(breakable) as workspace:
        await workspace.recorder.record(RUN)
        await asyncio.to_thread(breakable_postgres.stop)
        await until(lambda: down(workspace))
        with pytest.raises(Unavailable, match="database is unavailable"):
            await workspace.recorder.record(RUN)
        await asyncio.to_thread(breakable_postgres.start)
        await recorded_again(workspace)

    assert len(await asyncio.to_thread(breakable.entries, 1)) == 2


async def test_a_slow_database_makes_records_slow_and_loses_none(
    data: DatabaseData, postgres_server: PostgresServer
) -> None:
    async with faulty_replica(data, postgres_server.port) as (workspace, proxy):
        await workspace.recorder.record(RUN)
        proxy.delay = 0.2
        done = await asyncio.gather(*(workspace.recorder.record(RUN) for _ in range(50)))

    assert [one.figures.n for one in done] == list(range(2, 52))
    assert len(await asyncio.to_thread(data.entries, 1)) == 51


async def test_boards_that_wait_for_a_slow_database_leave_the_threads_of_others_alone(
    data: DatabaseData, postgres_server: PostgresServer
) -> None:
    async with faulty_replica(data, postgres_server.port) as (workspace, proxy):
        await workspace.board(Filters())
        proxy.delay = PATIENCE
        boards = [asyncio.create_task(workspace.board(Filters(day=n % 25 + 1))) for n in range(100)]
        await asyncio.sleep(0)  # all of them wait now
        await asyncio.to_thread(sorted, "others")
        is_any_done = any(board.done() for board in boards)
        for board in boards:
            board.cancel()

    assert not is_any_done


async def test_what_a_slow_database_keeps_waiting_fails_within_its_limit_and_what_comes_next_at_once(
    data: DatabaseData, postgres_server: PostgresServer
) -> None:
    data.url += "?statement_timeout=2000"
    async with faulty_replica(data, postgres_server.port) as (workspace, proxy):
        await workspace.recorder.record(RUN)
        await workspace.board(Filters())
        proxy.delay = PATIENCE
        with pytest.raises(Unavailable, match=r"within 2 seconds\. The record may be there or not"):
            await workspace.recorder.record(RUN)
        with pytest.raises(TimedOut, match=r"did not answer within 2 seconds"):
            await workspace.board(Filters())
        begin = time.monotonic()
        while not isinstance((await refused(workspace))[0], Unavailable):
            assert time.monotonic() - begin < PATIENCE
        took = [(await refused(workspace))[1] for _ in range(9)]
        assert workspace.database is not None
        health = far_side(workspace), workspace.database.writer.outcomes["timeout"]
        proxy.delay = 0.0
        await recorded_again(workspace)

    assert median(took) < 1
    assert (health[0].is_up, health[1] > 0) == (False, True)


async def test_replicas_behind_a_bouncer_record_and_read_over_connections_of_all(
    tmp_path: Path, pooled_url: str
) -> None:
    data = await asyncio.to_thread(DatabaseData, tmp_path, pooled_url)
    async with replica(data) as one, replica(data) as other:
        runs = [
            workspace.recorder.record(NewRun(n % 25 + 1, 1, "gpt4", 5))
            for n in range(100)
            for workspace in (one, other)
        ]
        done = await asyncio.gather(*runs)
        boards = [await workspace.board(Filters()) for workspace in (one, other)]
        [last] = await asyncio.gather(one.recorder.record(NewRun(1, 1, "gpt4", 5)))

    assert len(done) == sum(board.rows[0].n for board in boards) / 2 == 200
    assert last.figures.n == 9
