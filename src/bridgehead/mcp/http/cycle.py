"""Cycle: one HTTP request and its response, as the ASGI application sees them: `receive` and `send`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterable, MutableMapping
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from .exchange import Whole

if TYPE_CHECKING:
    from .protocol import Http1Protocol

log = logging.getLogger("bridgehead.mcp.http")

STATUS_LINES = {s.value: f"HTTP/1.1 {s.value} {s.phrase}\r\n".encode() for s in HTTPStatus}
_NO_BODY = frozenset({204, 304})


@lru_cache(maxsize=64)
def _header_lines(headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    return b"".join([b"%b: %b\r\n" % pair for pair in headers])


class Cycle:
    """One request and its response: the application's `receive` and `send`."""

    __slots__ = (
        "_body",
        "_gone",
        "_has_begun",
        "_is_body_taken",
        "_is_chunked",
        "_is_continued",
        "_is_finished",
        "_protocol",
        "_scope",
        "_waiter",
        "keep_alive",
        "more_body",
        "task",
    )

    def __init__(self, protocol: Http1Protocol, scope: dict[str, Any], *, keep_alive: bool) -> None:
        self._protocol = protocol
        self._scope = scope
        self.keep_alive = keep_alive
        self.more_body = True
        self.task: asyncio.Task[None] | None = None
        """What runs the application for this request, once it has started."""
        self._body = b""
        self._is_body_taken = False
        self._is_finished = False
        self._gone = False
        self._has_begun = False
        self._is_chunked = False
        self._waiter: asyncio.Future[None] | None = None
        self._is_continued = False

    def start(self) -> bool:
        """Serve this request, unless it is being served; tell whether it has its response already."""
        if self.task is not None:
            return False
        try:
            outcome = self._at_once()
        except Exception:
            log.exception("the application failed")
            self._end()
            return True
        if isinstance(outcome, Whole):
            self._respond(outcome)
            return True
        self.task = self._protocol.loop.create_task(self._run(outcome))
        return False

    def _at_once(self) -> Whole | Awaitable[Whole | None]:
        """Begin with the application: the short way where it has one and the request is there whole."""
        connections = self._protocol.connections
        if connections.at_once is not None and not self.more_body:
            outcome = connections.at_once(self._scope, self._body, self.receive, self.send)
            if outcome is not None:
                self._body, self._is_body_taken = b"", True
                self._protocol.resume_reading()  # so that its client can be heard hanging up
                return outcome
        return connections.app(self._scope, self.receive, self.send)

    async def _run(self, work: Awaitable[Whole | None]) -> None:
        try:
            response = await work
            if response is not None and not self._gone:
                self._respond(response)
        except Exception:
            log.exception("the application failed")
        self._end()

    def _end(self) -> None:
        """See to it that there is a response, or that a broken one does not look like a whole one."""
        if self._is_finished:
            return
        if not self._has_begun and not self._gone:
            self.keep_alive = False
            self._protocol.write(STATUS_LINES[500] + b"content-length: 0\r\nconnection: close\r\n\r\n")
        elif not self._gone:
            self._protocol.close()
        self._finish()

    # --- the request's body --------------------------------------------------------------------------------

    def take(self, body: bytes) -> int:
        """Keep a piece of the body; returns how much is unread."""
        self._body = self._body + body if self._body else body
        self._wake()
        return len(self._body)

    def complete(self) -> None:
        """Note that the body has ended."""
        self.more_body = False
        self._wake()

    def hang_up(self) -> None:
        """Note that the client is gone."""
        self._gone = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def receive(self) -> MutableMapping[str, Any]:
        """Give the application the next piece of the body, or the news that the client is gone."""
        while True:
            if self._gone or self._is_finished:
                return {"type": "http.disconnect"}
            if self._body or not (self.more_body or self._is_body_taken):
                break
            await self._more()
        body, self._body = self._body, b""
        self._is_body_taken = not self.more_body
        self._protocol.resume_reading()
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    async def _more(self) -> None:
        if self.more_body and not self._has_begun and not self._is_continued:
            self._is_continued = True
            if any(
                name == b"expect" and value.lower() == b"100-continue"
                for name, value in self._scope["headers"]
            ):
                self._protocol.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._waiter = self._protocol.loop.create_future()
        await self._waiter

    # --- the response --------------------------------------------------------------------------------------

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Take one ASGI message of the response, waiting while the client is slow to read."""
        if self._gone or self._is_finished:
            return
        if message["type"] == "http.response.start":
            self._begin(message["status"], message.get("headers", ()))
            return
        more = message.get("more_body", False)
        body = self._framed(message.get("body", b""), more=more)
        if body:
            self._protocol.write(body)
        if not more:
            self._finish()
        elif self._protocol.writable is not None:
            await asyncio.shield(self._protocol.writable)

    def _respond(self, response: Whole) -> None:
        """Send a response that is there in one piece, in one piece."""
        status, body, headers = response
        date = self._protocol.connections.date()
        length = b"" if status in _NO_BODY else b"content-length: %d\r\n" % len(body)
        end = b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n"
        shown = body if self._scope["method"] != "HEAD" else b""
        self._protocol.write(
            b"".join((STATUS_LINES[status], date, length, _header_lines(tuple(headers)), end, shown))
        )
        self._finish()

    def _begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._has_begun = True
        has_length = status in _NO_BODY
        parts = [STATUS_LINES[status], self._protocol.connections.date()]
        for name, value in headers:
            parts.append(b"%b: %b\r\n" % (name, value))
            has_length = has_length or name == b"content-length"
        if not has_length:
            self._is_chunked = self._scope["http_version"] == "1.1"
            self.keep_alive = self.keep_alive and self._is_chunked
        if self._is_chunked:
            parts.append(b"transfer-encoding: chunked\r\n")
        if not self.keep_alive:
            parts.append(b"connection: close\r\n")
        parts.append(b"\r\n")
        self._protocol.write(b"".join(parts))

    def _framed(self, body: bytes, *, more: bool) -> bytes:
        if self._scope["method"] == "HEAD":
            return b""
        if not self._is_chunked:
            return body
        chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
        return chunk if more else chunk + b"0\r\n\r\n"

    def _finish(self) -> None:
        self._is_finished = True
        self._wake()
        self._protocol.finished(self)
