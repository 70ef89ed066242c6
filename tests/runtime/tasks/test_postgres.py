"""Tasks in PostgreSQL: results outlive their machine, and a process without a lease has been interrupted."""

import asyncpg
import pytest

from bridgehead.commands import db
from bridgehead.mcp import Limits
from bridgehead.mcp.tasks.record import INTERRUPTED, TaskRecord, TooManyTasks
from bridgehead.runtime.stores.postgres import parse_address
from bridgehead.runtime.tasks.postgres import PostgresTaskStore
from tests.support.ports import free_port

RECORD = TaskRecord("a", "owner", "caller", 0.0, 0.0, 1e12)
DONE = RECORD.move("completed", 1.0, "", b'{"content":[]}')


@pytest.fixture(params=["database_url", "pooled_url"], ids=["postgresql", "pgbouncer"])
def url(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    db.main(["migrate"], {"BRIDGEHEAD_DATABASE_URL": found})
    return found


async def execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(parse_address(url).url, statement_cache_size=0)
    await connection.execute(statement)
    await connection.close()


async def opened(url: str) -> PostgresTaskStore:
    store = PostgresTaskStore(url)
    await store.open(Limits())
    return store


async def test_another_machine_reads_how_a_task_stands(url: str) -> None:
    here, there = await opened(url), await opened(url)
    await here.create(RECORD)
    working = await there.read("a")
    await here.write(DONE)
    await here.close()
    done = await there.read("a")
    await there.close()

    assert (working, done) == (RECORD, DONE)


async def test_a_task_whose_process_has_no_lease_was_interrupted(url: str) -> None:
    here, there = await opened(url), await opened(url)
    await here.create(RECORD)
    await execute(url, "update host_task_runners set leased_until = now() - interval '1 second'")
    interrupted = await there.read("a")
    late = await here.write(DONE)  # it lives after all: the result counts
    found = await there.read("a")
    await here.close()
    await there.close()

    assert interrupted is not None
    assert (interrupted.status, interrupted.message) == ("failed", INTERRUPTED)
    assert late
    assert found == DONE


async def test_what_a_process_knows_of_the_end_is_stored_when_it_ends(url: str) -> None:
    here, there = await opened(url), await opened(url)
    await here.create(RECORD)
    await here.close([DONE])
    found = await there.read("a")
    await there.close()

    assert found == DONE


async def test_a_state_that_is_written_twice_counts_once(url: str) -> None:
    store = await opened(url)
    await store.create(RECORD)
    await store.create(RECORD)  # its answer was lost, say
    answers = [await store.write(DONE), await store.write(DONE.move("cancelled", 2.0, ""))]
    found = await store.read("a")
    await store.close()

    assert answers == [True, False]
    assert found == DONE


async def test_without_the_database_no_task_is_made() -> None:
    store = await opened(f"postgresql://nobody@127.0.0.1:{free_port()}/none")
    with pytest.raises(TooManyTasks, match="No task can be made right now: The database is unavailable"):
        await store.create(RECORD)
    await store.close([DONE])
