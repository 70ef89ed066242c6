"""For tests of the stores: databases, and patience with replicas."""

from collections.abc import AsyncIterator

import pytest

from bridgehead.commands import db
from bridgehead.runtime.stores import allotments, postgres
from bridgehead.runtime.stores.postgres import Database
from tests.support.postgres_server import PostgresServer
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
