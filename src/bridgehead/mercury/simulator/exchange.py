"""Exchange: one request to the simulated API on Bridgehead's HTTP server, and how it is answered.

Records status, pieces and times in the request's entry of the journal.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

from bridgehead.mcp.http.message import HeaderPairs, Response, ResponseStream
from bridgehead.mcp.http.message import Request as HttpRequest

from .journal import ReceivedRequest

JSON = (b"content-type", b"application/json")
EVENTS = ((b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache"))
Answered = Response | ResponseStream


class Exchange:
    """A request as the server has it, and its entry in the journal."""

    def __init__(self, http: HttpRequest, request: ReceivedRequest) -> None:
        self._http = http
        self._stream: ResponseStream | None = None
        self.request = request

    async def run(self, work: Coroutine[Any, Any, Answered]) -> Answered:
        """Answer with a coroutine; cancel it if the client disconnects."""
        task = asyncio.current_task()

        def abandon() -> None:
            if self.request.finished is None:
                self.request.aborted = time.monotonic()
            if task is not None:
                task.cancel()

        self._http.when_gone(abandon)
        return await work

    def respond(self, status: int, body: bytes, headers: HeaderPairs = (JSON,)) -> Response:
        """Answer in one piece."""
        self._note_status(status)
        self._note_end()
        return Response(status, body, headers)

    async def begin(self, headers: HeaderPairs = EVENTS) -> None:
        """Send the head of a streamed answer."""
        self._note_status(200)
        self._stream = await self._http.open_stream(200, headers)

    async def send(self, pieces: list[bytes]) -> None:
        """Send each piece as a chunk, as fast as the client reads, then let other tasks run."""
        assert self._stream is not None  # noqa: S101 - it was begun
        self.request.chunks += len(pieces)
        for piece in pieces:
            await self._stream.write(piece)
        await asyncio.sleep(0)

    async def send_part(self, part: bytes) -> None:
        """Send a part of a body whose announced length is greater."""
        assert self._stream is not None  # noqa: S101 - it was begun
        await self._stream.write(part)
        await asyncio.sleep(0)

    def end(self) -> ResponseStream:
        """End a streamed answer properly."""
        assert self._stream is not None  # noqa: S101 - it was begun
        self._note_end()
        return self._stream

    def cut(self) -> Answered:
        """Abort the connection; the client gets only what was sent so far."""
        self._note_end()
        self._http.abort()
        return self._stream or Response(500)

    def _note_status(self, status: int) -> None:
        self.request.status = status
        self.request.answered = time.monotonic()

    async def wait_to_be_cut(self) -> Answered:
        """Wait for the server to close the connection."""
        self._note_end()
        await asyncio.Event().wait()
        return self.cut()

    def _note_end(self) -> None:
        self.request.finished = time.monotonic()
