"""Tasks in Redis: any replica answers for them, and one that is gone leaves its tasks as interrupted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridgehead.mcp import Limits, ProtocolError
from bridgehead.mcp.tasks.record import INTERRUPTED, MOST_MESSAGES, TaskRecord, TooManyTasks
from bridgehead.runtime.stores.redis import Redis
from bridgehead.runtime.tasks import redis as redis_tasks
from bridgehead.runtime.tasks.redis import RedisTaskStore
from tests.support.proxy import proxied
from tests.support.redis_server import RedisServer, running_redis
from tests.support.task_stores import Heard
from tests.support.waiting import PATIENCE, until


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


async def test_messages_whose_answer_is_lost_on_the_way_from_redis_are_heard_once(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_tasks, "BEAT_SECONDS", 1.0)
    heard = Heard()
    async with proxied(redis_server.port) as proxy, opened(redis_server) as other:
        redis = Redis(proxy.through(redis_server.url), 0.2)
        runner = RedisTaskStore(redis)
        await runner.open(Limits(), heard)
        await runner.create(record())
        await other.post("id", b"0")
        await until(lambda: heard.messages)
        proxy.fault = "mute"
        await other.post("id", b"1")
        runner._look()  # noqa: SLF001 - as it does again and again
        await until(lambda: not redis.is_up)
        proxy.fault = "none"
        proxy.cut()
        await other.post("id", b"2")
        await until(lambda: len(heard.messages) > 2)
        await until(lambda: b":0" in redis_server.command("LLEN", runner._inbox[0]))  # noqa: SLF001
        await runner.close()

    assert [content for _, content in heard.messages] == [b"0", b"1", b"2"]


async def test_only_so_many_messages_wait_for_one_task(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RedisTaskStore, "_look", lambda _: None)
    async with opened(redis_server) as busy, opened(redis_server) as other:
        await busy.create(record())
        for _ in range(MOST_MESSAGES):
            await other.post("id", b"1")
        with pytest.raises(TooManyTasks, match="updates wait for this task"):
            await other.post("id", b"1")


async def test_a_task_that_may_have_been_made_without_an_answer_takes_nobodys_place(
    redis_server: RedisServer,
) -> None:
    async with proxied(redis_server.port) as proxy:
        redis = Redis(proxy.through(redis_server.url), 0.2)
        store = RedisTaskStore(redis)
        await store.open(Limits(), Heard())
        proxy.fault = "mute"
        with pytest.raises(TooManyTasks):
            await store.create(record())
        proxy.fault = "none"
        proxy.cut()
        await until(lambda: b":0" in redis_server.command("EXISTS", "bridgehead:tasks:id"))
        assert await store.read("id") is None
        await store.close()


async def test_without_redis_calls_stay_calls_and_clients_are_told(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with opened(server) as store:
            server.kill()
            with pytest.raises(TooManyTasks, match="No task can be made right now: Redis cannot be used"):
                await store.create(record())
            for asking in (store.read("id"), store.post("id", b"1")):
                with pytest.raises(ProtocolError, match="cannot be reached right now"):
                    await asking
