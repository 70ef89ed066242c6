"""Faults: what is done to the cluster, and how it is undone."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from tests.chaos.cluster import Cluster
from tests.support.redis_server import RedisServer
from tests.support.waiting import PATIENCE

SKEW_SECONDS = 400
Fault = Callable[[Cluster], AbstractAsyncContextManager[None]]
"""The fault holds inside of the block."""


@asynccontextmanager
async def nothing(_cluster: Cluster) -> AsyncIterator[None]:
    """No fault: the figures beside which the others stand."""
    yield


@asynccontextmanager
async def kill_replica(cluster: Cluster) -> AsyncIterator[None]:
    """`kill -9` of a replica; it is started again."""
    await cluster.replicas[0].kill()
    yield
    await cluster.replicas[0].start()


@asynccontextmanager
async def stop_replica(cluster: Cluster) -> AsyncIterator[None]:
    """SIGSTOP of a replica: it holds its connections, and answers nothing."""
    cluster.replicas[1].send(signal.SIGSTOP)
    try:
        yield
    finally:
        cluster.replicas[1].send(signal.SIGCONT)


@asynccontextmanager
async def kill_redis(cluster: Cluster) -> AsyncIterator[None]:
    """`kill -9` of Redis, which forgets everything; it is started again."""
    await asyncio.to_thread(cluster.redis.kill)
    yield
    await asyncio.to_thread(cluster.redis.start)


@asynccontextmanager
async def stop_redis(cluster: Cluster) -> AsyncIterator[None]:
    """SIGSTOP of Redis."""
    cluster.redis.pause()
    try:
        yield
    finally:
        cluster.redis.resume()


@asynccontextmanager
async def flush_redis(cluster: Cluster) -> AsyncIterator[None]:
    """FLUSHALL, three times."""
    for _ in range(3):
        await asyncio.to_thread(cluster.redis.command, "FLUSHALL")
        await asyncio.sleep(0.3)
    yield


@asynccontextmanager
async def fill_redis(cluster: Cluster) -> AsyncIterator[None]:
    """The memory of Redis is full, and it evicts nothing."""
    await asyncio.to_thread(cluster.redis.command, "CONFIG", "SET", "maxmemory", "1")
    yield
    await asyncio.to_thread(cluster.redis.command, "CONFIG", "SET", "maxmemory", "0")


@asynccontextmanager
async def lock_redis(cluster: Cluster) -> AsyncIterator[None]:
    """Redis has another password than the replicas know, and their connections are cut."""
    command = cluster.redis.command
    await asyncio.to_thread(command, "CONFIG", "SET", "requirepass", "another")
    await asyncio.to_thread(_send_signed_in, cluster.redis, b"CLIENT KILL TYPE normal SKIPME yes\r\n")
    yield
    await asyncio.to_thread(_send_signed_in, cluster.redis, b'CONFIG SET requirepass ""\r\n')


def _send_signed_in(redis: RedisServer, line: bytes) -> None:
    with socket.create_connection(("127.0.0.1", redis.port), timeout=PATIENCE) as connection:
        connection.sendall(b"AUTH another\r\n" + line)
        answers = b""
        while answers.count(b"\r\n") < 2:
            answers += connection.recv(4096)


@asynccontextmanager
async def kill_postgres(cluster: Cluster) -> AsyncIterator[None]:
    """`kill -9` of PostgreSQL; it is started again."""
    await asyncio.to_thread(cluster.postgres.kill)
    yield
    await asyncio.to_thread(cluster.postgres.start)


@asynccontextmanager
async def stop_postgres(cluster: Cluster) -> AsyncIterator[None]:
    """SIGSTOP of PostgreSQL."""
    await asyncio.to_thread(cluster.postgres.pause)
    try:
        yield
    finally:
        await asyncio.to_thread(cluster.postgres.resume)


@asynccontextmanager
async def fill_disk(cluster: Cluster) -> AsyncIterator[None]:
    """The disk with the state directory of a replica is full, also while the replica starts."""
    assert cluster.disk is not None
    await asyncio.to_thread(cluster.disk.fill)
    await cluster.replicas[0].kill()
    await cluster.replicas[0].start()
    yield
    cluster.disk.make_room()


@asynccontextmanager
async def skew_clock(cluster: Cluster) -> AsyncIterator[None]:
    """The clock of a replica is 400 s ahead."""
    (library,) = list(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))[:1]
    replica = cluster.replicas[0]
    await replica.end()
    await replica.start(
        LD_PRELOAD=str(library), FAKETIME=f"+{SKEW_SECONDS}s", FAKETIME_DONT_FAKE_MONOTONIC="1"
    )
    yield
    await replica.end()
    await replica.start()


@asynccontextmanager
async def roll(cluster: Cluster) -> AsyncIterator[None]:
    """A rolling restart: SIGTERM to one replica after the other."""
    for replica in cluster.replicas:
        status = await replica.end()
        assert status == 0, f"{replica.name} ended with {status}"
        await replica.start()
    yield


FAULTS: dict[str, Fault] = {
    "none": nothing,
    "kill -9 of a replica": kill_replica,
    "SIGSTOP of a replica": stop_replica,
    "kill -9 of Redis": kill_redis,
    "SIGSTOP of Redis": stop_redis,
    "FLUSHALL": flush_redis,
    "Redis full": fill_redis,
    "wrong password of Redis": lock_redis,
    "kill -9 of PostgreSQL": kill_postgres,
    "SIGSTOP of PostgreSQL": stop_postgres,
    "full state disk": fill_disk,
    "clock 400 s ahead": skew_clock,
    "rolling restart": roll,
}
SHORT = (
    "none",
    "kill -9 of a replica",
    "SIGSTOP of PostgreSQL",
    "FLUSHALL",
    "kill -9 of PostgreSQL",
    "rolling restart",
)
"""What the short version tries: one of each far side, and of the replicas."""
