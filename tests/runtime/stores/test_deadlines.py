"""A time limit that a busy loop does not use up; and addresses of Redis, from the settings to a failover."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bridgehead.runtime.directories import ReplicaSettings
from bridgehead.runtime.settings import SettingError
from bridgehead.runtime.stores.deadlines import run_within
from tests.runtime.stores.test_redis import busy_loop, connected
from tests.support.ports import free_port
from tests.support.redis_server import RedisServer, running_redis, wait_until
from tests.support.waiting import PATIENCE, until


@pytest.mark.parametrize("url", ["http://cache:6379", "redis", "redis://", "cache:6379"])
def test_an_address_that_is_not_one_of_redis_is_refused(url: str) -> None:
    with pytest.raises(
        SettingError, match=r"BRIDGEHEAD_REDIS_URL is .*: expected an address such as redis://"
    ):
        ReplicaSettings({"BRIDGEHEAD_REDIS_URL": url})


def test_a_password_in_an_address_is_never_shown() -> None:
    settings = ReplicaSettings({"BRIDGEHEAD_REDIS_URL": "redis://user:secret@cache:6379/0"})

    assert dict(settings.summary())["BRIDGEHEAD_REDIS_URL"] == "redis://***@cache:6379/0"


def test_short_keys_for_state_are_refused_without_showing_them() -> None:
    with pytest.raises(SettingError, match="BRIDGEHEAD_STATE_KEYS is not a valid list of keys") as caught:
        ReplicaSettings({"BRIDGEHEAD_STATE_KEYS": "k" * 32 + ",too-short"})
    assert "too-short" not in str(caught.value)


async def test_valkey_addresses_and_unix_sockets_work(tmp_path: Path) -> None:
    with running_redis(tmp_path, "--unixsocket", str(tmp_path / "r")) as server:
        for url in (f"valkey://127.0.0.1:{server.port}/3", f"unix://{tmp_path / 'r'}"):
            async with connected(url) as redis:
                assert await redis.call("SET", "k", "v") == b"OK"


async def test_after_a_failover_the_new_master_is_found_through_sentinel(tmp_path: Path) -> None:
    for name in ("one", "two", "sentinel"):
        (tmp_path / name).mkdir()
    port = free_port()
    with running_redis(tmp_path / "one") as one, running_redis(tmp_path / "two") as two:
        two.command("REPLICAOF", "127.0.0.1", str(one.port))
        await until(lambda: b"master_link_status:up" in two.command("INFO", "replication"))
        with running_sentinel(tmp_path / "sentinel", one.port, port):
            async with connected(f"redis+sentinel://127.0.0.1:{port}/main/0") as redis:
                assert await redis.call("SET", "k", "v") == b"OK"
                one.kill()

                await until(two.is_master)
                await until(lambda: redis.failures and redis.is_up)
                assert await redis.call("SET", "k", "w") == b"OK"
                assert two.command("GET", "k") == b"$1\r\nw\r\n"


@contextmanager
def running_sentinel(folder: Path, master: int, port: int) -> Iterator[None]:
    """Run a Sentinel that watches over a master, and can tell who its replica is."""
    lines = [
        f"port {port}",
        "bind 127.0.0.1",
        f"dir {folder}",
        f"sentinel monitor main 127.0.0.1 {master} 1",
        "sentinel down-after-milliseconds main 300",
        "sentinel failover-timeout main 3000",
    ]
    file = folder / "sentinel.conf"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sentinel = RedisServer(folder)
    sentinel.port = port
    sentinel.run(str(file), "--sentinel")
    try:
        wait_until(lambda: b"num-slaves\r\n$1\r\n1" in sentinel.command("SENTINEL", "MASTERS"))
        yield
    finally:
        sentinel.kill()


async def test_a_pause_of_this_process_is_not_taken_for_one_of_the_server() -> None:
    async def answer_during_a_pause() -> str:
        loop = asyncio.get_running_loop()
        loop.call_later(0.05, time.sleep, 0.3)  # what keeps the loop, a collection of garbage for one
        await asyncio.sleep(0.1)
        await asyncio.sleep(0)
        return "in time"

    assert await run_within(0.2, answer_during_a_pause()) == "in time"


async def test_a_busy_loop_does_not_use_the_time_up() -> None:
    async def answer_after_some_turns() -> str:
        for _ in range(20):
            await asyncio.sleep(0)
        return "in time"

    with busy_loop(0.01):
        assert await run_within(0.1, answer_after_some_turns()) == "in time"


async def test_what_takes_too_long_is_ended() -> None:
    with pytest.raises(TimeoutError):
        await run_within(0.01, asyncio.sleep(PATIENCE))


async def test_who_is_cancelled_meanwhile_stays_cancelled() -> None:
    task = asyncio.create_task(run_within(PATIENCE, asyncio.sleep(PATIENCE)))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
