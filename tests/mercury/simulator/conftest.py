"""Fixtures of the simulated API's tests."""

from collections.abc import AsyncIterator

import pytest_asyncio
from inceptionai import AsyncInception

from bridgehead.mercury.simulator import Simulator
from tests.mercury.simulator.raw import Raw


@pytest_asyncio.fixture
async def api() -> AsyncIterator[Simulator]:
    """A simulated API that any key opens and nothing delays."""
    async with Simulator() as one:
        yield one


@pytest_asyncio.fixture
async def sdk(api: Simulator) -> AsyncIterator[AsyncInception]:
    """The vendor's client, which refuses what is not in the vendor's shape, and never tries again."""
    async with AsyncInception(
        api_key="sk_test", base_url=api.origin, max_retries=0, _strict_response_validation=True
    ) as client:
        yield client


@pytest_asyncio.fixture
async def raw(api: Simulator) -> AsyncIterator[Raw]:
    """A client that sees the bytes."""
    client = Raw(api.port)
    yield client
    await client.http.close()
