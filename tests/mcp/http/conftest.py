"""Fixtures of the HTTP tests."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.support.http_server import Server, serving


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Server]:
    """A server with the usual limits."""
    async with serving() as one:
        yield one
