"""Fixtures of the host's tests."""

from collections.abc import AsyncIterator, Callable

import pytest_asyncio

from tests.support.http_client import HttpClient

Dial = Callable[[int], HttpClient]


@pytest_asyncio.fixture
async def dial() -> AsyncIterator[Dial]:
    """Make clients of a port, whose connections are closed when the test is over."""
    clients: list[HttpClient] = []

    def connect(port: int) -> HttpClient:
        clients.append(HttpClient(port))
        return clients[-1]

    yield connect
    for client in clients:
        await client.close()
