"""Tasks in PostgreSQL: results outlive their machine, and a process without a lease has been interrupted."""

import asyncio
from typing import Any

import asyncpg
import pytest

from bridgehead.commands import db
from bridgehead.mcp import Limits
from bridgehead.mcp.tasks.record import INTERRUPTED, TaskRecord, TooManyTasks
from bridgehead.runtime.stores import postgres
from bridgehead.runtime.stores.postgres import parse_address
from bridgehead.runtime.tasks import postgres as tasks_in_postgres
from bridgehead.runtime.tasks.postgres import PostgresTaskStore
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE, until

RECORD = TaskRecord("a", "owner", "caller", 0.0, 0.0, 1e12)
DONE = RECORD.move("completed", 1.0, "", b'{"content":[]}')


@pytest.fixture(params=["database_url", "pooled_url"], ids=["postgresql", "pgbouncer"])
def url(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    db.main(["migrate"], {"BRIDGEHEAD_DATABASE_URL": found})
    return found


async def fetch(url: str, statement: str) -> list[tuple[Any, ...]]:
    connection = await asyncpg.connect(parse_address(url).url, statement_cache_size=0)
    rows = await connection.fetch(statement)
    await connection.close()
    return [tuple(row) for row in rows]


async def reaches(url: str, statement: str, expected: list[tuple[Any, ...]]) -> None:
    """Wait until the database holds what is expected."""
    async with asyncio.timeout(PATIENCE):
        while await fetch(url, statement) != expected:
            await asyncio.sleep(0.01)


async def opened(url: str) -> PostgresTaskStore:
    store = PostgresTaskStore(url)
    await store.open(Limits())
    return store


async def test_each_machine_has_a_lease_of_its_own_and_closing_lets_go_of_the_database(url: str) -> None:
    here, there = await opened(url), await opened(url)
    await reaches(url, "select count(*) from host_task_runners", [(2,)])
    assert [database.users for key, database in postgres._open.items() if key[1] == url] == [2]  # noqa: SLF001
    for store in (here, there):
        await store.close()

    assert await fetch(url, "select * from host_task_runners") == []
    assert url not in {key[1] for key in postgres._open}  # noqa: SLF001


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
    await fetch(url, "update host_task_runners set leased_until = now() - interval '1 second'")
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


async def test_a_process_gives_its_lease_back_when_it_ends_and_what_it_ran_reads_as_interrupted(
    url: str,
) -> None:
    here, there = await opened(url), await opened(url)
    await here.create(RECORD)
    other = TaskRecord("other", "owner", "caller", 0.0, 0.0, 1e12)
    await there.create(other)
    renewing = here._renewing  # noqa: SLF001 - it would renew the lease of a process that has ended
    await here.close()
    found, running = await there.read("a"), await there.read("other")
    database = there._database  # noqa: SLF001 - shared by both
    await there.close()

    assert found is not None
    assert (found.status, found.message) == ("failed", INTERRUPTED)
    assert running == other, "the lease of a process is its own"
    await until(renewing.cancelled)
    assert await fetch(url, "select runner from host_task_runners") == []
    assert database.users == 0


async def test_a_lease_is_renewed_and_what_has_expired_is_removed(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fetch(url, "insert into host_task_runners values ('old', now() - interval '2 days')")
    monkeypatch.setattr(tasks_in_postgres, "RENEW_SECONDS", 0.01)
    store = await opened(url)
    await reaches(url, "select count(*), bool_and(leased_until > now()) from host_task_runners", [(1, True)])
    await store.create(RECORD)
    await store.create(TaskRecord("short", "owner", "caller", 0.0, 0.0, 1.0))
    await reaches(url, "select id from host_tasks", [("a",)])
    await fetch(url, "update host_task_runners set leased_until = now() - interval '1 second'")

    await reaches(url, "select bool_and(leased_until > now()) from host_task_runners", [(True,)])
    await store.close()


async def test_a_task_is_never_seen_before_its_process_has_a_lease(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def keep_nothing(_store: PostgresTaskStore) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(PostgresTaskStore, "_keep_lease", keep_nothing)
    here, there = await opened(url), await opened(url)
    await here.create(RECORD)
    found = await there.read("a")
    await here.close()
    await there.close()

    assert found == RECORD


async def test_without_the_database_no_task_is_made() -> None:
    store = await opened(f"postgresql://nobody@127.0.0.1:{free_port()}/none")
    with pytest.raises(TooManyTasks, match="No task can be made right now: The database is unavailable"):
        await store.create(RECORD)
    await store.close([DONE])
