"""Task stores: what every version keeps, bounds and forgets. One suite for all of them."""

from collections.abc import AsyncIterator
from pathlib import Path
from time import time

import pytest
import pytest_asyncio
from msgspec.structs import replace

from bridgehead.commands import db
from bridgehead.mcp import Limits
from bridgehead.mcp.http.accounts import Accounts
from bridgehead.mcp.tasks import store as store_module
from bridgehead.mcp.tasks.record import TaskRecord, TooManyTasks
from bridgehead.mcp.tasks.store import MemoryTaskStore, TaskStore
from bridgehead.runtime.tasks.postgres import PostgresTaskStore
from bridgehead.runtime.tasks.sqlite import SqliteTaskStore
from tests.support.clock import Clock
from tests.support.waiting import until

LIMITS = Limits(tasks=6, tasks_per_caller=3, task_bytes=100, task_bytes_per_caller=60)


def record(
    task_id: str, *, caller: str = "ann", created: float = 1000.0, seconds: float = 60.0
) -> TaskRecord:
    return TaskRecord(task_id, f"view\n{caller}", caller, created, created, seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def made(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> TaskStore:
    """A store of each kind, not open yet."""
    if request.param == "memory":
        return MemoryTaskStore(clock.now)
    if request.param == "sqlite":
        return SqliteTaskStore(lambda: tmp_path, clock.now)
    url = request.getfixturevalue("database_url")
    db.main(["migrate"], {"BRIDGEHEAD_DATABASE_URL": url})
    return PostgresTaskStore(url, clock.now)


@pytest_asyncio.fixture
async def store(made: TaskStore) -> AsyncIterator[TaskStore]:
    """The store, open and with small limits."""
    await made.open(LIMITS)
    yield made
    await made.close()


async def test_a_task_is_found_as_it_was_kept(store: TaskStore) -> None:
    await store.create(record("a"))

    assert await store.read("a") == record("a")
    assert await store.read("b") is None


async def test_how_a_task_ended_is_found(store: TaskStore) -> None:
    await store.create(record("a"))
    done = record("a").move("completed", 1002.0, "", b'{"content":[]}')
    assert await store.write(done)
    assert await store.read("a") == done


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
async def test_a_final_state_is_final(store: TaskStore, status: str) -> None:
    await store.create(record("a"))
    ended = replace(record("a"), status=status, payload=b"1")
    assert await store.write(ended)

    assert not await store.write(record("a").move("working", 1003.0, "again"))
    assert not await store.write(record("a").move("cancelled", 1003.0, ""))
    assert await store.read("a") == ended


async def test_a_task_that_was_never_made_is_not_kept_by_a_change(store: TaskStore) -> None:
    assert not await store.write(record("a"))
    assert await store.read("a") is None


async def test_a_task_is_forgotten_when_it_expires(store: TaskStore, clock: Clock) -> None:
    await store.create(record("a", seconds=60))
    clock.set(1059.9)
    assert await store.read("a") is not None

    clock.set(1060.0)
    assert await store.read("a") is None
    assert not await store.write(record("a", seconds=60).move("completed", 1060.0, "", b"{}"))


async def test_a_forgotten_task_makes_room(store: TaskStore) -> None:
    for task_id in ("a", "b", "c"):
        await store.create(record(task_id))
    with pytest.raises(TooManyTasks, match="You have 3 tasks, which is the limit"):
        await store.create(record("d"))

    await store.forget("a")
    await store.forget("a")
    await store.create(record("d"))
    assert await store.read("a") is None


async def test_a_task_that_has_ended_counts_once(store: TaskStore) -> None:
    for task_id in ("a", "b", "c"):
        await store.create(record(task_id))
        assert await store.write(record(task_id).move("completed", 1002.0, "", b"{}"))

    with pytest.raises(TooManyTasks, match="You have 3 tasks, which is the limit"):
        await store.create(record("d"))


async def test_expired_tasks_make_room(store: TaskStore, clock: Clock) -> None:
    for task_id in ("a", "b", "c"):
        await store.create(record(task_id))
    clock.set(1060.0)

    await store.create(record("d", created=1060.0))
    assert await store.read("d") is not None


async def test_a_caller_that_has_its_share_leaves_room_for_others_until_all_is_taken(
    store: TaskStore,
) -> None:
    for caller in ("ann", "bob"):
        for number in range(3):
            await store.create(record(f"{caller}{number}", caller=caller))

    with pytest.raises(TooManyTasks, match="The server has 6 tasks"):
        await store.create(record("eve", caller="eve"))


async def test_results_are_bounded_for_a_caller_and_in_all(store: TaskStore) -> None:
    for caller in ("ann", "bob"):
        for number in range(2):
            await store.create(record(f"{caller}{number}", caller=caller))

    async def finish(task_id: str, caller: str, size: int) -> bool:
        return await store.write(record(task_id, caller=caller).move("completed", 1001.0, "", b"x" * size))

    assert await finish("ann0", "ann", 50)
    with pytest.raises(TooManyTasks, match="has 11 bytes, and your tasks may keep 60 bytes"):
        await finish("ann1", "ann", 11)
    assert await finish("ann1", "ann", 10)
    with pytest.raises(TooManyTasks, match="the server keeps 100 bytes"):
        await finish("bob0", "bob", 41)
    assert await finish("bob0", "bob", 40)


async def test_a_result_gives_its_bytes_back_when_its_task_goes(store: TaskStore, clock: Clock) -> None:
    async def keep(task_id: str, created: float) -> None:
        await store.create(record(task_id, created=created))
        assert await store.write(record(task_id, created=created).move("completed", created, "", b"x" * 60))

    await keep("a", 1000.0)
    await store.forget("a")
    await keep("b", 1000.0)
    clock.set(1060.0)
    await keep("c", 1060.0)

    assert await store.read("c") is not None


async def test_the_store_in_memory_keeps_nothing_of_a_caller_whose_tasks_are_gone(clock: Clock) -> None:
    store = MemoryTaskStore(clock.now)
    await store.open(LIMITS)
    for task_id in ("a", "b"):
        await store.create(record(task_id))
    await store.forget("a")
    clock.set(1060.0)
    assert not await store.write(record("b").move("completed", 1060.0, "", b"x"))
    assert store._by_caller == {}  # noqa: SLF001 - callers come and go for as long as a host runs

    await store.create(record("c", created=1060.0))
    await store.close()
    assert await store.read("c") is None
    for task_id in ("d", "e", "f"):
        await store.create(record(task_id, created=1060.0))


async def test_a_result_in_memory_is_charged_until_it_expires_though_nobody_asks_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store_module, "_EXPIRE_SECONDS", 0.001)
    accounts = Accounts(Limits())
    store = MemoryTaskStore(time, accounts)
    await store.open(LIMITS)
    for task_id in ("a", "b"):  # the second when nothing was left to wait for
        await store.create(record(task_id, created=time(), seconds=0.2))
        if await store.write(record(task_id).move("completed", time(), "", b"12345")):  # it was in time
            assert accounts.bytes.by_caller == {"ann": 5}
        await until(lambda: not store._records)  # noqa: SLF001 - reading a task would remove what has expired

        assert accounts.bytes.by_caller == {}
    await store.close()


async def test_a_store_in_memory_that_closes_gives_back_what_it_charged() -> None:
    accounts = Accounts(Limits())
    store = MemoryTaskStore(time, accounts)
    await store.open(LIMITS)
    await store.create(record("a", created=time()))
    assert await store.write(record("a").move("completed", time(), "", b"12345"))
    assert accounts.bytes.by_caller == {"ann": 5}
    await store.close()

    assert accounts.bytes.by_caller == {}
