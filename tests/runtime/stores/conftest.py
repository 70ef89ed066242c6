"""For tests of the stores: a database that a test may break."""

from collections.abc import AsyncIterator

import pytest

from bridgehead.runtime.stores import postgres
from bridgehead.runtime.stores.postgres import Database
from tests.support.postgres_server import PostgresServer


@pytest.fixture
async def database(breakable_postgres: PostgresServer) -> AsyncIterator[Database]:
    """The connections of a process to a server that a test may break."""
    held = await postgres.acquire(breakable_postgres.url)
    yield held
    await postgres.release(held)
