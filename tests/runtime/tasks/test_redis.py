"""Tasks in Redis: any replica answers for them, and one that is gone leaves its tasks as interrupted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridgehead.mcp import Limits, ProtocolError
from bridgehead.mcp.dispatch import Dispatcher
from bridgehead.mcp.tasks.manager import Tasks
from bridgehead.mcp.tasks.record import INTERRUPTED, TaskRecord, TooManyTasks
from bridgehead.runtime.stores.redis import Redis
from bridgehead.runtime.tasks import redis as redis_tasks
from bridgehead.runtime.tasks.redis import RedisTaskStore
from tests.mcp.tasks.task_bridge import Workshop, accept
from tests.support.redis_server import RedisServer, running_redis
from tests.support.task_client import TaskClient, join
from tests.support.task_stores import Heard
from tests.support.waiting import PATIENCE, until


@asynccontextmanager
async def process(workshop: Workshop, server: RedisServer) -> AsyncIterator[TaskClient]:
    """Serve a workshop as one replica would."""
    tasks = Tasks(Limits(), lambda: RedisTaskStore(Redis(server.url, PATIENCE)))
    yield join(Dispatcher(workshop.bridge, tasks=tasks))
    await tasks.stop()


@asynccontextmanager
async def opened(server: RedisServer, heard: Heard | None = None) -> AsyncIterator[RedisTaskStore]:
    store = RedisTaskStore(Redis(server.url, PATIENCE))
    await store.open(Limits(), heard or Heard())
    yield store
    await store.close()


def record(task_id: str = "id") -> TaskRecord:
    return TaskRecord(task_id, "owner", "caller", 0.0, 0.0, 1e12)


async def test_any_replica_answers_updates_and_cancels(redis_server: RedisServer) -> None:
    workshop = Workshop()
    async with process(workshop, redis_server) as here, process(workshop, redis_server) as there:
        asking, working = await here.make("ask_both"), await here.make("work")
        await there.reach(asking, "input_required")
        await there.update(asking, {"a": accept("Ann")})
        await there.update(asking, {"b": accept("Bob")})
        await there.cancel(working)
        done, cancelled = await there.end(asking), await there.end(working)

    assert done["result"]["content"][0]["text"] == "Ann and Bob"
    assert cancelled["status"] == "cancelled"
    assert workshop.stopped == 1


async def test_a_replica_hears_of_the_tasks_that_it_watches(redis_server: RedisServer) -> None:
    workshop = Workshop()
    async with process(workshop, redis_server) as here, process(workshop, redis_server) as there:
        task_id = await here.make("work")
        seen: list[str] = []
        tasks = there.dispatcher.tasks
        assert await tasks.watch(task_id, "workshop\n\n", lambda record: seen.append(record.status))
        workshop.open.set()
        await until(lambda: seen[-1:] == ["completed"])


async def test_a_replica_that_ended_in_good_order_leaves_results_and_reasons(
    redis_server: RedisServer,
) -> None:
    workshop = Workshop()
    async with process(workshop, redis_server) as before:
        done, running = await before.make("fail"), await before.make("work")
        await before.end(done)
    async with process(workshop, redis_server) as after:
        assert (await after.get(done))["result"]["isError"]
        assert (await after.get(running))["error"]["message"] == INTERRUPTED


async def test_a_task_whose_replica_died_is_interrupted_but_not_too_early(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(redis_server) as dead, opened(redis_server) as alive:
        await dead.create(record())
        redis_server.command("DEL", f"bridgehead:tasks:alive:{dead._runner}")  # noqa: SLF001 - as time would

        early = await alive.read("id")
        monkeypatch.setattr(redis_tasks, "LIFE_SECONDS", 0.0)
        late = await alive.read("id")

    assert early is not None
    assert early.status == "working", "the other one may be about to say that it lives"
    assert late is not None
    assert (late.status, late.message) == ("failed", INTERRUPTED)


async def test_messages_reach_only_the_replica_that_runs_the_task_and_wait_for_it(
    redis_server: RedisServer,
) -> None:
    heard = [Heard(), Heard()]
    async with opened(redis_server, heard[0]) as runner, opened(redis_server, heard[1]) as other:
        await runner.create(record())
        await other.create(record("other"))
        for body in (b"1", b"2"):
            await other.post("id", body)
        await until(lambda: len(heard[0].messages) == 2)
        await other.post("nothing", b"3")

    assert heard[0].messages == [("id", b"1"), ("id", b"2")]
    assert heard[1].messages == []


async def test_without_redis_calls_stay_calls_and_clients_are_told(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with opened(server) as store:
            server.kill()
            with pytest.raises(TooManyTasks, match="No task can be made right now: Redis cannot be used"):
                await store.create(record())
            for asking in (store.read("id"), store.post("id", b"1")):
                with pytest.raises(ProtocolError, match="cannot be reached right now"):
                    await asking
