"""Tasks that processes share, in a file or in Redis: any of them answers for a task that one of them runs."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridgehead.mcp import Limits
from bridgehead.mcp.dispatch import Dispatcher
from bridgehead.mcp.tasks.manager import Tasks
from bridgehead.mcp.tasks.record import INTERRUPTED, TaskRecord
from bridgehead.mcp.tasks.store import TaskStore
from bridgehead.runtime.stores.redis import Redis
from bridgehead.runtime.tasks.redis import RedisTaskStore
from bridgehead.runtime.tasks.sqlite import SqliteTaskStore
from tests.mcp.tasks.task_bridge import Workshop, accept
from tests.support.redis_server import RedisServer
from tests.support.task_client import TaskClient, join
from tests.support.task_stores import Heard
from tests.support.waiting import PATIENCE, until

MakeStore = Callable[[], TaskStore]


@pytest.fixture(params=["redis", "sqlite"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    """Makes the store of one more process."""
    if request.param == "sqlite":
        return lambda: SqliteTaskStore(lambda: tmp_path)
    server: RedisServer = request.getfixturevalue("redis_server")
    return lambda: RedisTaskStore(Redis(server.url, PATIENCE))


@asynccontextmanager
async def process(workshop: Workshop, make_store: MakeStore) -> AsyncIterator[TaskClient]:
    """Serve a workshop as one process would."""
    tasks = Tasks(Limits(), make_store)
    yield join(Dispatcher(workshop.bridge, tasks=tasks))
    await tasks.stop()


@asynccontextmanager
async def opened(make_store: MakeStore, heard: Heard) -> AsyncIterator[TaskStore]:
    store = make_store()
    await store.open(Limits(), heard)
    yield store
    await store.close()


async def test_any_process_answers_updates_and_cancels(make_store: MakeStore) -> None:
    workshop = Workshop()
    async with process(workshop, make_store) as here, process(workshop, make_store) as there:
        asking, working = await here.make("ask_both"), await here.make("work")
        await there.reach(asking, "input_required")
        await there.update(asking, {"a": accept("Ann")})
        await there.update(asking, {"b": accept("Bob")})
        await there.cancel(working)
        done, cancelled = await there.end(asking), await there.end(working)

    assert done["result"]["content"][0]["text"] == "Ann and Bob"
    assert cancelled["status"] == "cancelled"
    assert workshop.stopped == 1


async def test_a_process_hears_of_the_tasks_that_it_watches(make_store: MakeStore) -> None:
    workshop = Workshop()
    async with process(workshop, make_store) as here, process(workshop, make_store) as there:
        task_id = await here.make("work")
        seen: list[str] = []
        tasks = there.dispatcher.tasks
        assert await tasks.watch(task_id, "workshop\n\n", lambda record: seen.append(record.status))
        workshop.open.set()
        await until(lambda: seen[-1:] == ["completed"])


async def test_a_process_that_ended_in_good_order_leaves_results_and_reasons(make_store: MakeStore) -> None:
    workshop = Workshop()
    async with process(workshop, make_store) as before:
        done, running = await before.make("fail"), await before.make("work")
        await before.end(done)
    async with process(workshop, make_store) as after:
        assert (await after.get(done))["result"]["isError"]
        assert (await after.get(running))["error"]["message"] == INTERRUPTED


async def test_a_message_reaches_only_the_process_that_runs_the_task(make_store: MakeStore) -> None:
    heard = [Heard(), Heard()]
    async with opened(make_store, heard[0]) as runner, opened(make_store, heard[1]) as other:
        await runner.create(TaskRecord("id", "owner", "caller", 0.0, 0.0, 1e12))
        await other.create(TaskRecord("other", "owner", "caller", 0.0, 0.0, 1e12))
        for body in (b"1", b"2"):
            await other.post("id", body)
        await until(lambda: len(heard[0].messages) == 2)
        await other.post("nothing", b"3")

    assert heard[0].messages == [("id", b"1"), ("id", b"2")]
    assert heard[1].messages == []
