"""For tests of the stores: connections to PostgreSQL and to Redis."""

from collections.abc import AsyncIterator

import pytest

from bridgehead.runtime.stores import postgres
from bridgehead.runtime.stores.postgres import Database
from bridgehead.runtime.stores.redis import Redis
from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import RedisServer
from tests.support.waiting import PATIENCE


@pytest.fixture
async def database(breakable_postgres: PostgresServer) -> AsyncIterator[Database]:
    """The connections of a process to a server that a test may break."""
    held = await postgres.acquire(breakable_postgres.url)
    yield held
    await postgres.release(held)


@pytest.fixture
async def redis(redis_server: RedisServer) -> AsyncIterator[Redis]:
    """A connection to a Redis with nothing in it."""
    one = Redis(redis_server.url, PATIENCE)
    await one.start()
    yield one
    await one.close()
