"""Fixtures of the HTTP tests."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bridgehead.mcp.http import Application, asgi
from tests.support.asgi_runner import AsgiRunner
from tests.support.http_server import Server, serving


def _adapted(app: Application) -> AsgiRunner:
    return AsgiRunner(asgi(app))


@pytest_asyncio.fixture(params=["own", "as ASGI"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    """A server with the usual limits, which calls the application itself or through the ASGI adapter."""
    async with serving(settings={"wrap": _adapted} if request.param == "as ASGI" else {}) as one:
        yield one
