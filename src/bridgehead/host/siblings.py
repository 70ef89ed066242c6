"""Siblings: how the workers of one host reach each other, on loopback and with a secret of their own.

A session lives in the worker that opened it; whoever else gets a request of it passes it on. The metrics of
all workers are gathered by the one that is asked. Nobody else knows the secret, which the parent makes.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable, Coroutine, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import httptools
from msgspec import Struct

from bridgehead.mcp.http.connections import Refusing, note
from bridgehead.mcp.http.exchange import Receive, Scope, Send, Whole

App = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]

SECRET = b"x-bridgehead-sibling"
CLIENT = b"x-bridgehead-client"
OWN_METRICS = "/own-metrics"
_NOT_PASSED_ON = frozenset(
    {b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"expect", b"upgrade", b"te"}
)
CONNECT_SECONDS = 2.0
GATHER_SECONDS = 2.0
_PIECE = 64 * 1024


class SiblingGone(Exception):
    """A worker that cannot be reached."""


class Siblings(Struct, frozen=True):
    """All workers, as one of them sees them."""

    index: int
    ports: tuple[int, ...]
    secret: bytes

    @property
    def others(self) -> list[int]:
        """The numbers of all other workers."""
        return [number for number in range(len(self.ports)) if number != self.index]

    @asynccontextmanager
    async def _asking(
        self, number: int, head: bytes, body: bytes
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.ports[number])
        except (OSError, TimeoutError) as failure:
            raise SiblingGone from failure
        try:
            writer.write(head + body)
            yield reader, writer
        finally:
            writer.close()

    def _head(self, line: bytes, headers: list[tuple[bytes, bytes]], length: int) -> bytes:
        own = [(SECRET, self.secret), (b"content-length", b"%d" % length), (b"connection", b"close")]
        return line + b"".join(b"%b: %b\r\n" % pair for pair in (*headers, *own)) + b"\r\n"

    async def pass_on(self, number: int, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Let another worker answer a request, piece by piece, until it or the client ends."""
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        kept = [pair for pair in scope["headers"] if pair[0] not in (*_NOT_PASSED_ON, SECRET, CLIENT)]
        client = scope["client"][0] if scope.get("client") else ""
        kept.append((CLIENT, f"{scope['scheme']} {client}".encode()))
        line = b"%b %b HTTP/1.1\r\n" % (scope["method"].encode(), target)
        async with self._asking(number, self._head(line, kept, len(body)), body) as (reader, writer):
            watching = asyncio.get_running_loop().create_task(_when_gone(receive, writer.close))
            try:
                await _copied(reader, send, has_body=scope["method"] != "HEAD")
            except ConnectionResetError:
                if not watching.done():  # else it was the client who left
                    raise
            finally:
                watching.cancel()

    async def metrics(self, number: int) -> bytes:
        """Return what another worker counts; nothing where it does not answer."""
        head = self._head(b"GET %b HTTP/1.1\r\n" % OWN_METRICS.encode(), [(b"host", b"localhost")], 0)
        found: list[bytes] = []

        async def keep(message: MutableMapping[str, Any]) -> None:
            found.append(message.get("body", b""))

        try:
            async with asyncio.timeout(GATHER_SECONDS), self._asking(number, head, b"") as (reader, _):
                await _copied(reader, keep)
        except (OSError, TimeoutError, SiblingGone):
            return b""
        return b"".join(found)

    def is_one(self, headers: dict[bytes, bytes]) -> bool:
        """Tell whether a request comes from one of them."""
        return hmac.compare_digest(headers.get(SECRET, b""), self.secret)


async def _when_gone(receive: Receive, act: Callable[[], None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    act()


async def _copied(reader: asyncio.StreamReader, send: Send, *, has_body: bool = True) -> None:
    """Send on a response as it comes."""
    arriving = _Arriving()
    parser = httptools.HttpResponseParser(arriving)
    while not arriving.is_whole:
        data = await reader.read(_PIECE)  # ends with the client, or with the sibling that answers
        if not data:
            raise ConnectionResetError("a sibling did not finish its answer")
        parser.feed_data(data)
        if arriving.has_head and not arriving.is_begun:
            arriving.is_begun = True
            if not has_body:
                arriving.is_whole = True
            status = parser.get_status_code()
            await send({"type": "http.response.start", "status": status, "headers": arriving.headers})
        if arriving.is_begun:
            body, arriving.body = arriving.body, b""
            await send({"type": "http.response.body", "body": body, "more_body": not arriving.is_whole})


class _Arriving:
    """A response that is being read."""

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.has_head = False
        self.is_begun = False
        self.is_whole = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() not in {b"connection", b"transfer-encoding", b"date"}:
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.has_head = True

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.is_whole = True


class FromSiblings:
    """The application as siblings reach it: in the name of the client they speak for."""

    def __init__(
        self,
        siblings: Siblings,
        app: App,
        living: App,
        own_metrics: Callable[[], bytes],
        refused: Refusing = note,
    ) -> None:
        self._siblings = siblings
        self._app = app
        self._living = living
        """What begins and ends with this listener, which is opened first and closed last."""
        self._own_metrics = own_metrics
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] != "http":
            await self._living(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if not self._siblings.is_one(headers):
            self._refused("sibling", scope["client"][0], 403)
            await _send(Whole(403), send)
        elif scope["path"] == OWN_METRICS:
            await _send(Whole(200, self._own_metrics()), send)
        else:
            scheme, _, address = headers.get(CLIENT, b"http ").decode("latin-1").partition(" ")
            scope["client"], scope["scheme"] = (address, 0), scheme
            await self._app(scope, receive, send)


async def _send(response: Whole, send: Send) -> None:
    headers = response.header_pairs()
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})
