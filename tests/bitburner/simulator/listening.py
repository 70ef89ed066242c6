"""A bare server of WebSockets: the tests' own side of a simulated game's connection."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.server import ServerConnection, serve

from tests.support.waiting import PATIENCE

LIMIT = PATIENCE


class Listening:
    """Where it listens, and the connections to it."""

    def __init__(self) -> None:
        self.url = ""
        self._connections: asyncio.Queue[ServerConnection] = asyncio.Queue()

    async def accept(self, connection: ServerConnection) -> None:
        self._connections.put_nowait(connection)
        await connection.wait_closed()

    async def next(self) -> ServerConnection:
        """Return the next connection."""
        async with asyncio.timeout(LIMIT):
            return await self._connections.get()


@asynccontextmanager
async def listening(**options: Any) -> AsyncIterator[Listening]:
    """Listen on a free port."""
    listener = Listening()
    async with serve(listener.accept, "127.0.0.1", 0, max_size=None, compression=None, **options) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        listener.url = f"ws://127.0.0.1:{port}"
        yield listener


def request(number: int, method: str = "getFileNames", **params: Any) -> str:
    """Return the text of a request, by default one for the names on home."""
    return json.dumps(
        {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {"server": "home"}}
    )


async def next_frame(connection: ServerConnection) -> Any:
    """Return the next frame, decoded."""
    async with asyncio.timeout(LIMIT):
        return json.loads(await connection.recv())
