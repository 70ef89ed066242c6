"""Protocol: HTTP/1.1 on one connection, lean enough not to be what a call spends its time on.

A response goes out in one write, no timer is set for a request, and what the handler answers without waiting
needs no task. Parsing is httptools'.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING
from urllib.parse import unquote

import httptools

from .request import STATUS_LINES, Http1Request

if TYPE_CHECKING:
    from .connections import Connections

MOST_HEAD_BYTES = 64 * 1024
MOST_HEADERS = 128
MOST_LENGTH_DIGITS = 18
MOST_UNREAD_BYTES = 256 * 1024
MOST_UNWRITTEN_BYTES = 64 * 1024
MOST_WAITING = 64
"""Requests of one connection that wait for their turn, from which on no more of them are read."""


class _HeadTooLarge(Exception):
    """Raised to the parser, which passes it on as the context of an error of its own."""


class Http1Protocol(asyncio.Protocol):
    """One connection: parses requests, serves one after the other, writes responses."""

    def __init__(self, connections: Connections) -> None:
        self.connections = connections
        self.loop = connections.loop
        self.transport: asyncio.Transport
        self.last_active = self.loop.time()
        self._parser = httptools.HttpRequestParser(self)
        self._queue: deque[Http1Request] = deque()
        """The request being served, and pipelined ones behind it."""
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0
        """How much of a head came in after the piece of data that it began in."""
        self._piece_bytes = 0
        self._head_since: float | None = None
        """Since when a request's head has been coming in, and is not there yet."""
        self._incoming: Http1Request | None = None
        self._plain_body_left = 0
        self._is_reading = True
        self._is_serving = False
        self.writable: asyncio.Future[None] | None = None
        """What to wait for before writing more; None while the client reads."""
        self._outgoing: list[bytes] = []
        self._outgoing_bytes = 0
        self._unread = 0
        """How much the client had not read when it was looked last, and since when it is just as much."""
        self._unread_since = 0.0

    # --- the connection ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a connection in, if there is room for it."""
        self.transport = transport  # type: ignore[assignment]
        self.scheme = "http" if transport.get_extra_info("sslcontext") is None else "https"
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else ""
        if not self.connections.enter(self):
            self._reject(503, "connections", b"Too many connections")

    @property
    def running(self) -> asyncio.Task[None] | None:
        """What runs for this client."""
        return self._queue[0].task if self._queue else None

    def connection_lost(self, _exc: Exception | None) -> None:
        """Tell whoever is being served that the client is gone."""
        self.connections.leave(self, self.running)
        for request in self._queue:
            request.hang_up()
        self._queue.clear()
        self.resume_writing()

    def shutdown(self) -> None:
        """Close as soon as the response under way is finished."""
        if not self._queue:
            self.close()
        for request in self._queue:
            request.keep_alive = False

    def close_if_idle(self, before: float) -> None:
        """Close a connection that for too long sent nothing, read nothing, or came to no end of a head."""
        if self._is_stalled(before):
            self._report("slow_reader", 0)
            self.transport.abort()
        elif self.transport.is_closing() or not self._is_reading:
            return  # and what we do not let it send is not late
        elif self._head_since is not None and self._head_since < before:
            self._reject(408, "slow_head", b"The request did not arrive in time")
        elif self.last_active >= before:
            return
        elif not self._queue:
            if not self._url:  # it never asked for anything, and so is not one that is kept for the next time
                self._report("idle", 0)
            self.transport.close()
        elif not self._queue[-1].is_complete:
            self._reject(408, "slow_body", b"The request did not arrive in time")

    def _is_stalled(self, before: float) -> bool:
        """Tell whether the client has for too long read nothing of what there is for it."""
        unread = self.transport.get_write_buffer_size()
        if not unread or unread != self._unread:
            self._unread, self._unread_since = unread, self.loop.time()
            return False
        return self._unread_since < before

    # --- in ------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse, and start what has come in whole."""
        self.last_active = self.loop.time()
        self._piece_bytes = len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError as problem:
            if isinstance(problem.__context__, _HeadTooLarge):
                self._reject(431, "head_size", b"Too many header fields")
            else:
                self._reject(400, "malformed", b"Not a valid HTTP request")
        if self._head_since is not None:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                self._reject(431, "head_size", b"Too many header fields")
        self._serve()

    def _serve(self) -> None:
        """Serve what has come in, one request after the other, as far as that takes no waiting."""
        if self._is_serving:
            return
        self._is_serving = True
        while (
            self._queue
            and self.writable is None  # a client that does not read does not get more to read
            and not self.transport.is_closing()
            and self._queue[0].start()
        ):
            pass
        self._is_serving = False

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
        self._head_bytes = -self._piece_bytes  # which is added when all of the piece is parsed
        self._head_since = self.last_active

    def on_url(self, url: bytes) -> None:
        """Take a piece of the request's target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header; what comes behind a body is not one of the request's."""
        if self._incoming is not None:
            return
        self._headers.append((name.lower(), value))
        if len(self._headers) > MOST_HEADERS:
            raise _HeadTooLarge

    def on_headers_complete(self) -> None:
        """Queue the request; it starts when its body is there, or when there is more of it than fits."""
        if self._piece_bytes > MOST_HEAD_BYTES:
            self._check_head()
        if not self._url.startswith(b"/"):
            self._take_absolute()
        parser = self._parser
        path, _, query = self._url.partition(b"?")
        decoded = path.decode("latin-1")
        version = parser.get_http_version()
        request = Http1Request(
            self,
            parser.get_method().decode("latin-1"),
            (path, unquote(decoded) if "%" in decoded else decoded, query),
            self._headers,
            is_http11=version == "1.1",
            keep_alive=version != "1.0" and parser.should_keep_alive(),
        )
        self._head_since = None
        self._incoming = request
        self._queue.append(request)

    def _take_absolute(self) -> None:
        """Take a target with scheme and authority apart, as a proxy is sent it; the authority is the host."""
        scheme, mark, rest = self._url.partition(b"://")
        if mark and scheme.lower() in (b"http", b"https"):
            authority, _, path = rest.partition(b"/")
            self._url = b"/" + path
            self._headers = [field for field in self._headers if field[0] != b"host"]
            self._headers.append((b"host", authority))

    def _check_head(self) -> None:
        """Refuse a head that came in all at once and is too large."""
        if len(self._url) + sum(len(name) + len(value) for name, value in self._headers) > MOST_HEAD_BYTES:
            raise _HeadTooLarge

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
        """Take more from the client, unless it has enough to read or to be answered."""
        if self._is_reading or self.writable is not None or len(self._queue) > MOST_WAITING:
            return
        if not self.transport.is_closing():
            self._is_reading = True
            self.transport.resume_reading()

    # --- out -----------------------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        """Let whoever writes wait, and the client too: it does not read."""
        self.writable = self.loop.create_future()
        self.pause_reading()

    def resume_writing(self) -> None:
        """Let whoever waits write on."""
        writable, self.writable = self.writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)
        self._serve()
        self.resume_reading()

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

    def finish(self, request: Http1Request) -> None:
        """Go on to the next request after a response, or close."""
        if self._queue and self._queue[0] is request:
            self._queue.popleft()
        if not (request.keep_alive and request.is_complete):
            self.close()
            return
        self.last_active = self.loop.time()
        if self._queue:
            self._serve()
        else:
            self.resume_reading()

    def _reject(self, status: int, reason: str, words: bytes) -> None:
        """Say what is wrong in plain text, where no response is under way, and close."""
        if self.transport.is_closing():
            return
        if not self._queue:
            length = b"content-length: %d\r\nconnection: close\r\n\r\n" % len(words)
            self._outgoing.append(STATUS_LINES[status] + b"content-type: text/plain\r\n" + length + words)
        self._report(reason, 0 if self._queue else status)
        self.close()

    def _report(self, reason: str, status: int) -> None:
        self.connections.on_reject(reason, self.address, status)
