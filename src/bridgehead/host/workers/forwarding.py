"""Forwarding: how the workers of one host reach each other, on loopback and with a secret of their own.

A session lives in the worker that opened it; whoever else gets a request of it forwards it. The metrics of
all workers are gathered by the one that is asked. Nobody else knows the secret, which the parent makes.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httptools
from msgspec import Struct

from bridgehead.mcp.http.message import Handled, Handler, Request, Response, ResponseStream
from bridgehead.mcp.http.server.connections import OnReject, log_rejection

SECRET = b"x-bridgehead-sibling"
CLIENT = b"x-bridgehead-client"
OWN_METRICS = "/own-metrics"
_HOP_BY_HOP = {b"connection", b"keep-alive", b"transfer-encoding", b"expect", b"upgrade", b"te"}
_NOT_FORWARDED = frozenset({*_HOP_BY_HOP, b"content-length", SECRET, CLIENT})
_NOT_RETURNED = frozenset({b"connection", b"transfer-encoding", b"date"})
CONNECT_SECONDS = 2.0
GATHER_SECONDS = 2.0
_PIECE = 64 * 1024


class WorkerGone(Exception):
    """A worker that cannot be reached."""


class Workers(Struct, frozen=True):
    """All workers, as one of them sees them."""

    index: int
    ports: tuple[int, ...]
    secret: bytes

    @property
    def others(self) -> list[int]:
        """The numbers of all other workers."""
        return [number for number in range(len(self.ports)) if number != self.index]

    @property
    def session_prefix(self) -> str:
        """What the ids of our sessions begin with, so that every worker knows whose they are."""
        return f"{self.index}~"

    @asynccontextmanager
    async def _asking(
        self, number: int, head: bytes, body: bytes
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.ports[number])
        except (OSError, TimeoutError) as failure:
            raise WorkerGone from failure
        try:
            writer.write(head + body)
            yield reader, writer
        finally:
            writer.close()

    def _head(self, line: bytes, headers: list[tuple[bytes, bytes]], length: int) -> bytes:
        own = [(SECRET, self.secret), (b"content-length", b"%d" % length), (b"connection", b"close")]
        return line + b"".join(b"%b: %b\r\n" % pair for pair in (*headers, *own)) + b"\r\n"

    async def forward(self, number: int, request: Request, body: bytes) -> ResponseStream:
        """Let another worker answer a request, piece by piece, until it or the client ends."""
        target = request.raw_path + (b"?" + request.query if request.query else b"")
        headers = [pair for pair in request.header_pairs if pair[0] not in _NOT_FORWARDED]
        headers.append((CLIENT, f"{request.scheme} {request.address}".encode()))
        line = b"%b %b HTTP/1.1\r\n" % (request.method.encode(), target)
        async with self._asking(number, self._head(line, headers, len(body)), body) as (reader, writer):
            request.when_gone(writer.close)
            return await _copy(reader, request)

    async def fetch_metrics(self, number: int) -> bytes:
        """Return what another worker counts; nothing where it does not answer."""
        head = self._head(b"GET %b HTTP/1.1\r\n" % OWN_METRICS.encode(), [(b"host", b"localhost")], 0)
        try:
            async with asyncio.timeout(GATHER_SECONDS), self._asking(number, head, b"") as (reader, _):
                return b"".join([piece async for piece in _ArrivingResponse().pieces(reader)])
        except (OSError, TimeoutError, WorkerGone):
            return b""

    def is_worker(self, request: Request) -> bool:
        """Tell whether a request comes from one of them."""
        return hmac.compare_digest(request.headers.get(SECRET, b""), self.secret)


async def _copy(reader: asyncio.StreamReader, request: Request) -> ResponseStream:
    """Send a response on as it comes."""
    response = _ArrivingResponse(has_body=request.method != "HEAD")
    try:
        async for piece in response.pieces(reader):
            stream = request.stream or await request.open_stream(response.status, response.headers)
            await stream.write(piece)
    except ConnectionResetError:
        if not request.is_gone:  # else it was the client who left
            raise
    return request.stream or await request.open_stream(response.status, response.headers)


class _ArrivingResponse:
    """A response that is being read."""

    def __init__(self, *, has_body: bool = True) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._has_body = has_body
        self._has_head = False
        self._is_whole = False
        self._body = b""
        self.status = 502
        self.headers: list[tuple[bytes, bytes]] = []

    async def pieces(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        """Give the body piece by piece; the first piece, which may be empty, as soon as the head is there."""
        while not self._is_whole:
            data = await reader.read(_PIECE)  # ends with the client, or with the worker that answers
            if not data:
                raise ConnectionResetError("a worker did not finish its response")
            self._parser.feed_data(data)
            if self._has_head:
                piece, self._body = self._body, b""
                yield piece

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() not in _NOT_RETURNED:
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._has_head = True
        self.status = self._parser.get_status_code()
        self._is_whole = not self._has_body

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        self._is_whole = True


class WorkerEntrance:
    """The application as other workers reach it: on behalf of the client they speak for."""

    def __init__(
        self,
        workers: Workers,
        handler: Handler,
        own_metrics: Callable[[], bytes],
        on_reject: OnReject = log_rejection,
    ) -> None:
        self._workers = workers
        self._handler = handler
        self._own_metrics = own_metrics
        self._on_reject = on_reject

    def __call__(self, request: Request) -> Handled:
        """Answer another worker."""
        if not self._workers.is_worker(request):
            self._on_reject("sibling", request.address, 403)
            return Response(403)
        if request.path == OWN_METRICS:
            return Response(200, self._own_metrics())
        client = request.headers.get(CLIENT, b"http ").decode("latin-1")
        request.scheme, _, request.address = client.partition(" ")
        return self._handler(request)
