"""Fixtures of the HTTP tests."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.support.http_server import App, Server, serving


def _hidden(app: App) -> App:
    """Show nothing of an application but that it is one, so that a server has only the ASGI way."""

    async def plain(scope: Any, receive: Any, send: Any) -> None:
        await app(scope, receive, send)

    return plain


@pytest_asyncio.fixture(params=["at once", "as ASGI"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    """A server with the usual limits, with each of the ways into its application."""
    async with serving(wrap=_hidden if request.param == "as ASGI" else lambda app: app) as one:
        yield one
