"""Protocol: HTTP/1.1 on one connection, for uvicorn, lean enough not to be what a call spends its time on.

uvicorn keeps everything around it: sockets, TLS, signals, workers, the graceful end. This class replaces only
its HTTP protocol (`uvicorn.Config(http=Http1Protocol)`), which alone costs more than a whole call here: a
response goes out in one write, no timer is set for a request, and a request's task starts when its body is
there. Parsing is httptools'. ASGI in, ASGI out, so any application runs on it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import MutableMapping
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import httptools

MOST_HEADER_BYTES = 64 * 1024
MOST_HEADERS = 128
MOST_LENGTH_DIGITS = 18
MOST_UNREAD_BYTES = 256 * 1024
MOST_UNWRITTEN_BYTES = 64 * 1024
SWEEP_SECONDS = 1.0

log = logging.getLogger("bridgehead.mcp.http")

_STATUS_LINES = {s.value: f"HTTP/1.1 {s.value} {s.phrase}\r\n".encode() for s in HTTPStatus}
_NO_BODY = frozenset({204, 304})


class Http1Protocol(asyncio.Protocol):
    """One connection: parses requests, runs the application for one after the other, writes responses."""

    def __init__(
        self,
        config: Any,
        server_state: Any,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.config = config
        self.state = server_state
        self.app_state = app_state
        self.loop = _loop or asyncio.get_running_loop()
        self.transport: asyncio.Transport
        self.last_active = self.loop.time()
        self._parser = httptools.HttpRequestParser(self)
        self._queue: deque[Cycle] = deque()
        """The request being served, and pipelined ones behind it."""
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._header_bytes = 0
        self._incoming: Cycle | None = None
        self._plain_body_left = 0
        self._is_reading = True
        self.writable: asyncio.Future[None] | None = None
        """What to wait for before writing more; None while the client reads."""
        self._default_pairs: list[tuple[bytes, bytes]] | None = None
        self._default_headers = b""
        self._outgoing: list[bytes] = []
        self._outgoing_bytes = 0

    # --- the connection ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a connection in, if there is room for it."""
        self.transport = transport  # type: ignore[assignment]
        connections = self.state.connections
        if self.config.limit_concurrency is not None and len(connections) >= self.config.limit_concurrency:
            self._refuse(503, b"Too many connections")
            return
        connections.add(self)
        if len(connections) == 1:
            self.loop.call_later(SWEEP_SECONDS, _sweep, self.loop, self.state, self.config.timeout_keep_alive)

    def connection_lost(self, _exc: Exception | None) -> None:
        """Tell whoever is being served that the client is gone."""
        self.state.connections.discard(self)
        for cycle in self._queue:
            cycle.hang_up()
        self._queue.clear()
        self.resume_writing()

    def shutdown(self) -> None:
        """Close as soon as the response under way is finished."""
        if not self._queue:
            self.close()
        for cycle in self._queue:
            cycle.keep_alive = False

    def close_if_idle(self, before: float) -> None:
        """Close a connection that has sent nothing for too long, or only half a request."""
        if self.last_active < before and (not self._queue or self._queue[-1].more_body):
            self.transport.close()

    # --- in ------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse, and start what has come in whole."""
        self.last_active = self.loop.time()
        try:
            self._parse(data)
        except httptools.HttpParserError:
            if self._header_bytes > MOST_HEADER_BYTES or len(self._headers) > MOST_HEADERS:
                self._refuse(431, b"Too many header fields")
            else:
                self._refuse(400, b"Not a valid HTTP request")
        if self._queue:
            self._queue[0].start()

    def _parse(self, data: bytes) -> None:
        if self._plain_body_left:
            data = self._take_plain_body(data)
        try:
            if data:
                self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._ignore_upgrade(data[upgrade.args[0] :])

    def _ignore_upgrade(self, rest: bytes) -> None:
        """Serve a request that offers another protocol as the HTTP/1.1 that it also is.

        The parser stops after the headers of such a request, so its body is taken here.
        """
        headers = dict(self._headers)
        length = headers.get(b"content-length", b"0")
        if b"transfer-encoding" in headers or not length.isdigit() or len(length) > MOST_LENGTH_DIGITS:
            raise httptools.HttpParserError
        self._plain_body_left = int(length)
        self._parser = httptools.HttpRequestParser(self)
        if not self._plain_body_left:
            self.on_message_complete()
        self._parse(rest)

    def _take_plain_body(self, data: bytes) -> bytes:
        body, rest = data[: self._plain_body_left], data[self._plain_body_left :]
        self._plain_body_left -= len(body)
        self.on_body(body)
        if not self._plain_body_left:
            self.on_message_complete()
        return rest

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._url = b""
        self._headers = []
        self._header_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Take a piece of the request's target."""
        self._url += url
        self._count(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header; what comes behind a body is not one of the request's."""
        if self._incoming is not None:
            return
        self._headers.append((name.lower(), value))
        self._count(name + value)

    def _count(self, piece: bytes) -> None:
        self._header_bytes += len(piece)
        if self._header_bytes > MOST_HEADER_BYTES or len(self._headers) > MOST_HEADERS:
            raise OverflowError  # which the parser passes on as an error of its own

    def on_headers_complete(self) -> None:
        """Queue the request; it starts when its body is there, or when there is more of it than fits."""
        parser = self._parser
        path, _, query = self._url.partition(b"?")
        decoded = path.decode("latin-1")
        version = parser.get_http_version()
        cycle = Cycle(
            self,
            {
                "type": "http",
                "asgi": _ASGI,
                "http_version": version,
                "method": parser.get_method().decode("latin-1"),
                "scheme": "http" if self.transport.get_extra_info("sslcontext") is None else "https",
                "path": unquote(decoded) if "%" in decoded else decoded,
                "raw_path": path,
                "query_string": query,
                "root_path": self.config.root_path,
                "headers": self._headers,
                "client": self.transport.get_extra_info("peername"),
                "server": self.transport.get_extra_info("sockname"),
                "state": self.app_state.copy(),
            },
            keep_alive=version != "1.0" and parser.should_keep_alive(),
        )
        self._incoming = cycle
        self._queue.append(cycle)

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body, and no more from the client while too much of it is unread."""
        if self._incoming is not None and self._incoming.take(body) > MOST_UNREAD_BYTES:
            self.pause_reading()

    def on_message_complete(self) -> None:
        """Note that the request is whole; where it offers an upgrade, its body is still to come."""
        if self._parser.should_upgrade():
            return
        if self._incoming is not None:
            self._incoming.complete()
            self._incoming = None
        if len(self._queue) > 1:
            self.pause_reading()

    def pause_reading(self) -> None:
        """Let the client wait."""
        if self._is_reading and not self.transport.is_closing():
            self._is_reading = False
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Take more from the client."""
        if not self._is_reading and not self.transport.is_closing():
            self._is_reading = True
            self.transport.resume_reading()

    # --- out -----------------------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        """Let whoever writes wait: the client does not read."""
        self.writable = self.loop.create_future()

    def resume_writing(self) -> None:
        """Let whoever waits write on."""
        writable, self.writable = self.writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    def write(self, data: bytes) -> None:
        """Write at the end of this turn of the loop.

        What the requests of one turn of the loop have to say goes out together at its end, connection after
        connection: waking a client is dearer than writing to it, and one that is awake need not be woken.
        """
        if not self._outgoing:
            self.loop.call_soon(self._flush)
        self._outgoing.append(data)
        self._outgoing_bytes += len(data)
        if self._outgoing_bytes > MOST_UNWRITTEN_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._outgoing and not self.transport.is_closing():
            self.transport.write(b"".join(self._outgoing))
        self._outgoing.clear()
        self._outgoing_bytes = 0

    def close(self) -> None:
        """Close, with everything written that is still to be."""
        self._flush()
        self.transport.close()

    def finished(self, cycle: Cycle) -> None:
        """Go on to the next request after a response, or close."""
        self.state.total_requests += 1
        if self._queue and self._queue[0] is cycle:
            self._queue.popleft()
        if not cycle.keep_alive or cycle.more_body:
            self.close()
            return
        self.last_active = self.loop.time()
        if self._queue:
            self._queue[0].start()
        else:
            self.resume_reading()

    def default_headers(self) -> bytes:
        """Return the headers that uvicorn puts on every response, such as the date; it makes them anew."""
        pairs = self.state.default_headers
        if pairs is not self._default_pairs:
            self._default_pairs = pairs
            self._default_headers = b"".join([b"%b: %b\r\n" % pair for pair in pairs])
        return self._default_headers

    def _refuse(self, status: int, reason: bytes) -> None:
        """Say what is wrong in plain text, and close."""
        if not self._queue:
            length = b"content-length: %d\r\nconnection: close\r\n\r\n" % len(reason)
            self._outgoing.append(_STATUS_LINES[status] + b"content-type: text/plain\r\n" + length + reason)
        self.close()


_ASGI = {"version": "3.0", "spec_version": "2.4"}


class Cycle:
    """One request and its response: the application's `receive` and `send`."""

    __slots__ = (
        "_body",
        "_expects_continue",
        "_gone",
        "_has_begun",
        "_is_body_taken",
        "_is_chunked",
        "_is_finished",
        "_is_started",
        "_protocol",
        "_scope",
        "_waiter",
        "keep_alive",
        "more_body",
    )

    def __init__(self, protocol: Http1Protocol, scope: dict[str, Any], *, keep_alive: bool) -> None:
        self._protocol = protocol
        self._scope = scope
        self.keep_alive = keep_alive
        self.more_body = True
        self._body = b""
        self._is_body_taken = False
        self._is_started = False
        self._is_finished = False
        self._gone = False
        self._has_begun = False
        self._is_chunked = False
        self._waiter: asyncio.Future[None] | None = None
        self._expects_continue = (b"expect", b"100-continue") in scope["headers"]

    def start(self) -> None:
        """Run the application for this request; doing it again does nothing."""
        if not self._is_started:
            self._is_started = True
            tasks = self._protocol.state.tasks
            task = self._protocol.loop.create_task(self._run())
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def _run(self) -> None:
        protocol = self._protocol
        try:
            await protocol.config.loaded_app(self._scope, self.receive, self.send)
        except Exception:
            log.exception("the application failed")
        if self._is_finished:
            return
        if not self._has_begun and not self._gone:
            self.keep_alive = False
            protocol.write(_STATUS_LINES[500] + b"content-length: 0\r\nconnection: close\r\n\r\n")
        elif not self._gone:
            protocol.close()  # a broken response must not look like a whole one
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
        if self._expects_continue and self.more_body and not self._has_begun:
            self._expects_continue = False
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

    def _begin(self, status: int, headers: Any) -> None:
        self._has_begun = True
        has_length = status in _NO_BODY
        parts = [_STATUS_LINES[status], self._protocol.default_headers()]
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


def _sweep(loop: asyncio.AbstractEventLoop, state: Any, timeout: float) -> None:
    """Close what is idle, and look again later as long as there are connections."""
    before = loop.time() - timeout
    for connection in tuple(state.connections):
        connection.close_if_idle(before)
    if state.connections:
        loop.call_later(SWEEP_SECONDS, _sweep, loop, state, timeout)
