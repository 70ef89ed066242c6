"""Tasks in Redis: any replica answers for them, and one that is gone leaves its tasks as interrupted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridgehead.mcp import Limits, ProtocolError
from bridgehead.mcp.tasks.record import INTERRUPTED, TaskRecord, TooManyTasks
from bridgehead.runtime.stores.redis import Redis
from bridgehead.runtime.tasks import redis as redis_tasks
from bridgehead.runtime.tasks.redis import RedisTaskStore
from tests.support.redis_server import RedisServer, running_redis
from tests.support.task_stores import Heard
from tests.support.waiting import PATIENCE


@asynccontextmanager
async def opened(server: RedisServer) -> AsyncIterator[RedisTaskStore]:
    store = RedisTaskStore(Redis(server.url, PATIENCE))
    await store.open(Limits(), Heard())
    yield store
    await store.close()


def record() -> TaskRecord:
    return TaskRecord("id", "owner", "caller", 0.0, 0.0, 1e12)


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


async def test_without_redis_calls_stay_calls_and_clients_are_told(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with opened(server) as store:
            server.kill()
            with pytest.raises(TooManyTasks, match="No task can be made right now: Redis cannot be used"):
                await store.create(record())
            for asking in (store.read("id"), store.post("id", b"1")):
                with pytest.raises(ProtocolError, match="cannot be reached right now"):
                    await asking
