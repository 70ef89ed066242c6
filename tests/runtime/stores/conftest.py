"""For tests of the stores: databases, and patience with replicas."""

from collections.abc import AsyncIterator

import pytest

from bridgehead.commands import db
from bridgehead.runtime.stores import allotments, postgres
from bridgehead.runtime.stores.postgres import Database
from bridgehead.runtime.stores.redis import Redis
from tests.support.allotment_store import AllotmentsInMemory
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
def migrated_url(database_url: str) -> str:
    """The address of a database with our tables."""
    db.main(["migrate"], {"BRIDGEHEAD_DATABASE_URL": database_url})
    return database_url


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a replica that has the turn is not dead yet."""
    monkeypatch.setattr(allotments, "_TURN_SECONDS", PATIENCE)
    monkeypatch.setattr(allotments, "_MOST_WAIT", PATIENCE)


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allotments, "_GIVE_BACK_SECONDS", 0.01)


@pytest.fixture
async def redis(redis_server: RedisServer) -> AsyncIterator[Redis]:
    """A connection to a Redis with nothing in it."""
    one = Redis(redis_server.url, PATIENCE)
    await one.start()
    yield one
    await one.close()


@pytest.fixture
def store() -> AllotmentsInMemory:
    return AllotmentsInMemory()
