"""Ways: one small client interface for every way to reach a server, each transport in each era."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from bridgehead.mcp import Limits
from tests.support.http_client import Headers, Response
from tests.support.http_server import Server, serving
from tests.support.messages import Json, cancelled, decode, initialize, notification, request, stateless
from tests.support.stdio_peer import Peer, piped


class Way(Protocol):
    """What a client can do."""

    async def ask(self, method: str, params: Json | None = None) -> Json:
        """Send a request and return its whole answer."""

    async def exchange(self, method: str, params: Json) -> list[Json]:
        """Send a request and return everything up to and with its answer."""

    async def abandon(self, method: str, params: Json) -> None:
        """Send a request, wait for the first thing said about it, and cancel it."""


class StdioWay:
    """A real process."""

    def __init__(self, peer: Peer, era: Callable[..., Json]) -> None:
        self._peer = peer
        self._era = era

    async def ask(self, method: str, params: Json | None = None) -> Json:
        return (await self.exchange(method, params or {}))[-1]

    async def exchange(self, method: str, params: Json) -> list[Json]:
        return await asyncio.to_thread(self._exchange, method, params)

    def _exchange(self, method: str, params: Json) -> list[Json]:
        asked = self._era(method, params)
        self._peer.send(asked)
        said = [self._peer.receive()]
        while said[-1].get("id") != asked["id"]:
            said.append(self._peer.receive())
        return said

    async def abandon(self, method: str, params: Json) -> None:
        asked = self._era(method, params)
        self._peer.send(asked)
        assert "method" in await asyncio.to_thread(self._peer.receive)
        self._peer.cancel(asked["id"])


class HttpWay:
    """A real socket."""

    def __init__(self, server: Server, session: Headers | None) -> None:
        self._server = server
        self._session = session

    async def _post(self, method: str, params: Json | None) -> tuple[Json, Response]:
        if self._session is None:
            asked = stateless(method, params)
            return asked, await self._server.stateless(asked)
        asked = request(method, params)
        return asked, await self._server.post(asked, self._session)

    async def ask(self, method: str, params: Json | None = None) -> Json:
        return (await self.exchange(method, params or {}))[-1]

    async def exchange(self, method: str, params: Json) -> list[Json]:
        _, response = await self._post(method, params)
        if response.headers["content-type"] == "application/json":
            said = [decode(await response.body())]
        else:
            said = await response.messages()
        for message in said:
            self._server.checker.check(message)
        return said

    async def abandon(self, method: str, params: Json) -> None:
        asked, response = await self._post(method, params)
        assert "method" in await response.message()
        if self._session is None:
            await response.hang_up()
        else:
            assert (await self._server.post(cancelled(asked["id"]), self._session)).status == 202
            assert await response.messages() == []


class LegacyWay:
    """A real socket, as in 2024-11-05: everything comes on one stream."""

    def __init__(self, server: Server, stream: Response, path: str) -> None:
        self._server = server
        self._stream = stream
        self._path = path

    async def post(self, message: Json) -> None:
        """Post a message; its answer comes on the stream."""
        assert (await self._server.post(message, path=self._path)).status == 202

    async def ask(self, method: str, params: Json | None = None) -> Json:
        return (await self.exchange(method, params or {}))[-1]

    async def exchange(self, method: str, params: Json) -> list[Json]:
        asked = request(method, params)
        await self.post(asked)
        said: list[Json] = []
        while not said or said[-1].get("id") != asked["id"]:
            said.append(await self._stream.message())
            self._server.checker.check(said[-1])
        return said

    async def abandon(self, method: str, params: Json) -> None:
        asked = request(method, params)
        await self.post(asked)
        assert "method" in await self._stream.message()
        await self.post(cancelled(asked["id"]))


@asynccontextmanager
async def _stdio_handshake(folder: Path) -> AsyncIterator[Way]:
    with piped(folder / "stderr") as peer:
        await asyncio.to_thread(peer.shake_hands)
        yield StdioWay(peer, request)


@asynccontextmanager
async def _stdio_stateless(folder: Path) -> AsyncIterator[Way]:
    with piped(folder / "stderr") as peer:
        yield StdioWay(peer, stateless)


@asynccontextmanager
async def _http_handshake(_folder: Path) -> AsyncIterator[Way]:
    async with serving() as server:
        yield HttpWay(server, await server.session())


@asynccontextmanager
async def _http_stateless(_folder: Path) -> AsyncIterator[Way]:
    async with serving(Limits()) as server:
        yield HttpWay(server, None)


@asynccontextmanager
async def _http_legacy(_folder: Path) -> AsyncIterator[Way]:
    async with serving() as server:
        stream = await server.http.request("GET", "/sse")
        event = await stream.event()
        assert event is not None
        way = LegacyWay(server, stream, event.fields["data"])
        await way.post(initialize("2024-11-05"))
        server.checker.check(await stream.message())
        await way.post(notification("notifications/initialized"))
        yield way


WAYS: dict[str, Callable[[Path], AbstractAsyncContextManager[Way]]] = {
    "stdio handshake": _stdio_handshake,
    "stdio stateless": _stdio_stateless,
    "HTTP handshake": _http_handshake,
    "HTTP stateless": _http_stateless,
    "HTTP+SSE": _http_legacy,
}
