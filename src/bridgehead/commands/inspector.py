"""Inspector: a page of this machine that shows the traffic of a bridge as it goes by.

The page is one file without outside requests. It gets what has passed, then everything new, as server-sent
events. Only this machine can reach it, and only under its own name: a page of somebody else cannot read it.
"""

from __future__ import annotations

import asyncio
from importlib.resources import files

import msgspec

from bridgehead.mcp.http.message import Handled, Request, Response, ResponseStream
from bridgehead.mcp.http.server import Server, listen

from .traffic import Entry, Traffic

HOST = "127.0.0.1"
MAX_WAITING = 1000
"""Entries that a slow reader may be behind; then it is disconnected, and its browser reconnects."""
_POLICY = b"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'"
_HEADERS = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", _POLICY),
    (b"cache-control", b"no-store"),
)
_EVENTS = ((b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"))


class Inspector:
    """Serves the page and its events."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._page = (files(__package__) / "inspector.html").read_bytes()
        self._server: Server | None = None
        self._names: set[bytes] = set()
        self._readers: set[asyncio.Queue[Entry | None]] = set()

    async def start(self, port: int = 0) -> str:
        """Listen, and return the page's address."""
        listening = listen(HOST, port)
        port = listening.getsockname()[1]
        self._names = {f"{name}:{port}".encode() for name in (HOST, "localhost")}
        self._server = Server(self._respond)
        await self._server.start(listening)
        self._traffic.listeners.append(self._tell)
        return f"http://{HOST}:{port}/"

    async def stop(self) -> None:
        """End every stream, and let go of the port."""
        for reader in tuple(self._readers):
            reader.put_nowait(None)
        if self._server is not None:
            await self._server.stop()

    def _respond(self, request: Request) -> Handled:
        if request.headers.get(b"host") not in self._names:
            return Response(403, b"Open it under 127.0.0.1 or localhost.\n")
        if request.method != "GET":
            return Response(405, b"Only GET.\n")
        if request.path == "/":
            return Response(200, self._page, _HEADERS)
        if request.path == "/events":
            return self._stream(request)
        return Response(404, b"There is nothing here.\n")

    def _tell(self, entry: Entry) -> None:
        for reader in tuple(self._readers):
            if reader.qsize() >= MAX_WAITING:
                self._readers.discard(reader)
                reader.put_nowait(None)
            else:
                reader.put_nowait(entry)

    async def _stream(self, request: Request) -> ResponseStream:
        stream = await request.open_stream(200, _EVENTS)
        reader: asyncio.Queue[Entry | None] = asyncio.Queue()
        request.when_gone(lambda: reader.put_nowait(None))
        for passed in self._traffic.entries:
            reader.put_nowait(passed)
        self._readers.add(reader)
        try:
            while (entry := await reader.get()) is not None:
                await stream.write(b"data: " + msgspec.json.encode(entry) + b"\n\n")
        finally:
            self._readers.discard(reader)
        await stream.close()
        return stream
