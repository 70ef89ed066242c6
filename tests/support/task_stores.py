"""The versions of the task store: owns how each is made for a test, with a clock that the test sets."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from bridgehead.mcp.tasks.store import MemoryTaskStore, TaskStore
from bridgehead.runtime.stores.redis import Redis
from bridgehead.runtime.tasks.redis import RedisTaskStore
from bridgehead.runtime.tasks.sqlite import SqliteTaskStore
from tests.support.clock import Clock
from tests.support.redis_server import running_redis
from tests.support.waiting import PATIENCE


class Heard:
    """Notes what a store says."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, bytes]] = []
        self.changed: list[str] = []

    def take_message(self, task_id: str, message: bytes) -> None:
        """Note a message."""
        self.messages.append((task_id, message))

    def notice_change(self, task_id: str) -> None:
        """Note a change."""
        self.changed.append(task_id)


@asynccontextmanager
async def memory_store(_folder: Path, clock: Clock) -> AsyncIterator[TaskStore]:
    """Make a store in memory."""
    yield MemoryTaskStore(clock.now)


@asynccontextmanager
async def sqlite_store(folder: Path, clock: Clock) -> AsyncIterator[TaskStore]:
    """Make a store in a file."""
    yield SqliteTaskStore(lambda: folder, clock.now)


@asynccontextmanager
async def redis_store(folder: Path, clock: Clock) -> AsyncIterator[TaskStore]:
    """Make a store in a Redis of its own."""
    with running_redis(folder) as server:
        yield RedisTaskStore(Redis(server.url, PATIENCE), clock.now)


Make = Callable[[Path, Clock], AbstractAsyncContextManager[TaskStore]]
STORES: dict[str, Make] = {"memory": memory_store, "redis": redis_store, "sqlite": sqlite_store}
"""Every version; what two processes share is in the folder, or on the server, that it names."""
