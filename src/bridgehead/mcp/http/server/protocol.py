"""HTTP/1.1 on one connection: parsing requests, calling the handler, writing responses in order.

Three classes share the work. `RequestParser` turns bytes into requests and bounds them (the parsing itself is
httptools'), `Http1Request` runs the handler and formats its response, `Http1Protocol` owns the transport and
decides what happens when. Each request runs in a task; requests have no timers of their own.
Fairness comes before speed: a connection answers one request when its bytes arrive; the rest waits for its
turn among all connections (see `connections`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import lru_cache
from http import HTTPStatus
from urllib.parse import unquote

import httptools

from ..message import BODYLESS, ClientGone, HeaderPairs, Request, Response, ResponseStream, repeats_singleton
from .connections import ClosingResponse, Connections

MAX_HEAD_BYTES = 64 * 1024
"""Limit for the target and the header names and values; exact, however the bytes are split."""
_MAX_RAW_HEAD_BYTES = 2 * MAX_HEAD_BYTES
"""Limit for a head with its separators. httptools does not say where in a slice a head begins, so this is
counted in whole slices; it only stops heads that never end."""
MAX_HEADERS = 128
_MAX_LENGTH_DIGITS = 18
SLICE_BYTES = 2 * 1024
"""Bytes fed to the parser at a time outside bodies: about 0.4 ms of the smallest possible requests."""
CROWD_SLICE_BYTES = 256
"""The same while many connections are queued, so that few parsed requests wait in memory."""
BODY_SLICE_BYTES = 4 * 1024
"""The same within a body: about 0.5 ms of one-byte chunks."""
CHUNKS_PER_TURN = 512
"""Body chunks parsed in one loop turn (about 0.5 ms)."""
MAX_UNREAD_BYTES = 256 * 1024
"""Body bytes held for a handler that does not read; reading from the client pauses above this."""
MAX_DROPPED_BYTES = 32 * 1024 * 1024
"""Body bytes read and dropped after the response is written; the connection closes above this."""
MAX_UNWRITTEN_BYTES = 64 * 1024
MAX_BACKLOG_BYTES = 64 * 1024
"""Unparsed bytes held; reading from the client pauses above this."""
_MAX_FRAMING = 8
"""Bytes of chunk framing allowed per byte of body; one-byte chunks need five."""

STATUS_LINES = {s.value: f"HTTP/1.1 {s.value} {s.phrase}\r\n".encode() for s in HTTPStatus}

_MALFORMED = ClosingResponse(400, "malformed", b"Not a valid HTTP request")
_NO_VERSION = ClosingResponse(400, "malformed", b"The request line has no HTTP version: send HTTP/1.1")
_CUT_HEAD = ClosingResponse(400, "malformed", b"The request ended within its head")
_REPEATED = ClosingResponse(400, "malformed", b"Host, Origin and Authorization may be given once")
_HEAD_TOO_LARGE = ClosingResponse(431, "head_size", b"Too many header fields")
_FRAMING_TOO_LARGE = ClosingResponse(
    431, "head_size", b"Too much beside the body: chunk extensions or trailers"
)
_SLOW_HEAD = ClosingResponse(408, "slow_head", b"The request did not arrive in time")
_SLOW_BODY = ClosingResponse(408, "slow_body", b"The request did not arrive in time")

log = logging.getLogger("bridgehead.mcp.http")


class BadRequest(Exception):
    """Bytes that are not a request this server takes.

    Create a new one each time: a reused exception keeps the frames of every earlier raise alive.
    """

    def __init__(self, response: ClosingResponse) -> None:
        super().__init__(response.reason)
        self.response = response


class RequestParser:
    """Parses the requests of one connection, fed in slices so that a large read cannot block the loop."""

    def __init__(self, connection: Http1Protocol) -> None:
        self._connection = connection
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0
        self._body_bytes = 0
        self._framing_bytes = 0
        """Bytes around the body beyond what `_MAX_FRAMING` allows: chunk extensions and trailers."""
        self._plain_body_left = 0
        """Body bytes still to come of a request whose Upgrade was ignored."""
        self.chunks = 0
        """Body chunks so far; their number, not their size, is what parsing costs."""
        self.receiving: Http1Request | None = None
        """The request whose body is arriving."""
        self.is_in_head = False
        self.has_begun = False
        """Whether a request has ever begun on this connection."""

    def close(self) -> None:
        """Break the reference cycles, so that a large head or body is freed at once."""
        del self._parser, self._connection
        self.receiving = None
        self._url, self._headers = b"", []

    def next_slice(self, *, is_crowded: bool) -> int:
        """Return how many bytes to feed next."""
        if self.receiving is not None:
            return BODY_SLICE_BYTES
        return CROWD_SLICE_BYTES if is_crowded else SLICE_BYTES

    def feed(self, data: bytes | memoryview) -> None:
        """Parse a slice. After `BadRequest` the parser is unusable."""
        receiving, body_before, size = self.receiving, self._body_bytes, len(data)
        while data:  # a second round only follows an ignored Upgrade
            if self._plain_body_left:
                body, data = bytes(data[: self._plain_body_left]), data[self._plain_body_left :]
                self._plain_body_left -= len(body)
                self.on_body(body)
                if not self._plain_body_left:
                    self.on_message_complete()
                continue
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                # RFC 9110 7.8 lets a server ignore Upgrade and answer in HTTP/1.1. httptools stops after the
                # head of such a request, so its body is taken here and the next request needs a new parser.
                data = data[upgrade.args[0] :]
                headers = dict(self._headers)
                length = headers.get(b"content-length", b"0")
                if (
                    b"transfer-encoding" in headers
                    or not length.isdigit()
                    or len(length) > _MAX_LENGTH_DIGITS
                ):
                    raise BadRequest(_MALFORMED)  # noqa: B904
                self._plain_body_left = int(length)
                self._parser = httptools.HttpRequestParser(self)
                if not self._plain_body_left:
                    self.on_message_complete()
            except httptools.HttpParserError as problem:
                # httptools wraps what a callback raises; the original is the context of its own error.
                if isinstance(problem.__context__, BadRequest):
                    raise problem.__context__  # noqa: B904
                # A head may also have been too large; which of the two is seen first depends on where its
                # bytes were split.
                raise BadRequest(_MALFORMED)  # noqa: B904
            else:
                break
        if self.is_in_head:
            self._head_bytes += size
            if self._head_bytes > _MAX_RAW_HEAD_BYTES or len(self._headers) > MAX_HEADERS:
                raise BadRequest(_HEAD_TOO_LARGE)
        elif receiving is not None and self.receiving is receiving:
            body_bytes = self._body_bytes - body_before
            self._framing_bytes = max(0, self._framing_bytes + size - body_bytes * (_MAX_FRAMING + 1))
            if self._framing_bytes > MAX_HEAD_BYTES:
                raise BadRequest(_FRAMING_TOO_LARGE)

    # --- callbacks of httptools ----------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Reset for a new request."""
        self._url = b""
        self._headers = []
        self._head_bytes = 0
        self.is_in_head = self.has_begun = True

    def on_url(self, url: bytes) -> None:
        """Add a piece of the request target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; drop a trailer, which could otherwise replace a header that was checked."""
        if self.receiving is None:
            self._headers.append((name.lower(), value))
        else:
            self._framing_bytes += len(name) + len(value)
            if self._framing_bytes > MAX_HEAD_BYTES:
                raise BadRequest(_FRAMING_TOO_LARGE)

    def on_headers_complete(self) -> None:
        """Queue the request. It is served after this read, with as much of its body as has arrived."""
        headers = self._headers
        # Adding up the head is only worth it if it may be too large; most are far below.
        if len(headers) > MAX_HEADERS or (
            self._head_bytes > MAX_HEAD_BYTES - SLICE_BYTES
            and len(self._url) + sum(len(name) + len(value) for name, value in headers) > MAX_HEAD_BYTES
        ):
            raise BadRequest(_HEAD_TOO_LARGE)
        if not self._url.startswith(b"/"):
            # RFC 9112 3.2.2: with a target in absolute form, its authority replaces the Host header.
            scheme, separator, rest = self._url.partition(b"://")
            if separator and scheme.lower() in (b"http", b"https"):
                authority, _, relative = rest.partition(b"/")
                self._url = b"/" + relative
                headers = self._headers = [field for field in headers if field[0] != b"host"]
                headers.append((b"host", authority))
        parser, connection = self._parser, self._connection
        raw_path, _, query = self._url.partition(b"?")
        path = raw_path.decode("latin-1")
        version = parser.get_http_version()
        if version == "0.9":  # a line without a version, whose answer would have no head either (RFC 1945)
            raise BadRequest(_NO_VERSION)
        self.is_in_head = False
        self._framing_bytes = self._body_bytes = 0
        self.receiving = request = Http1Request(
            connection,
            parser.get_method().decode("latin-1"),
            raw_path,
            unquote(path) if "%" in path else path,
            query,
            headers,
            is_http11=version == "1.1",
            keep_alive=version != "1.0" and parser.should_keep_alive(),
        )
        connection.head_since = None
        connection.queue.append(request)
        if len(request.headers) != len(headers) and repeats_singleton(headers):
            raise BadRequest(_REPEATED)

    def on_body(self, body: bytes) -> None:
        """Hand a piece of the body to its request."""
        self._body_bytes += len(body)
        self.chunks += 1
        request = self.receiving
        if request is None:
            return
        if request.is_finished:
            if self._body_bytes > MAX_DROPPED_BYTES:
                self._connection.close()
            return
        if not request.body:
            request.body = body
        elif isinstance(request.body, bytearray):
            request.body += body
        else:
            # Grown in place from the second piece on: joining again for each piece takes quadratic time.
            request.body = bytearray(request.body)
            request.body += body
        if request.waiter is not None:
            request.wake()
        if len(request.body) > MAX_UNREAD_BYTES:
            self._connection.pause_reading()

    def on_message_complete(self) -> None:
        """Mark the request as complete."""
        request = self.receiving
        # With an Upgrade, httptools calls this before the body; `feed` takes the body and calls again.
        if request is None or self._parser.should_upgrade():
            return
        self.receiving = None
        if request.is_finished:
            if self._connection.closes_after_body:
                self._connection.close()
            return
        if isinstance(request.body, bytearray):
            request.body = bytes(request.body)
        request.is_complete = True
        if request.waiter is not None:
            request.wake()
        if len(self._connection.queue) > 1:  # pipelined: read no more until the requests before are answered
            self._connection.pause_reading()


class Http1Request(Request):
    """One request, from its head to the last byte of its response."""

    __slots__ = (
        "_is_continued",
        "_protocol",
        "can_write",
        "is_finished",
        "is_http11",
        "keep_alive",
        "task",
        "waiter",
    )

    def __init__(
        self,
        protocol: Http1Protocol,
        method: str,
        raw_path: bytes,
        path: str,
        query: bytes,
        pairs: HeaderPairs,
        *,
        is_http11: bool,
        keep_alive: bool,
    ) -> None:
        Request.__init__(self, method, raw_path, path, query, pairs)  # super() costs more
        self.scheme = protocol.scheme
        self.address = protocol.address
        self._protocol = protocol
        self.is_http11 = is_http11
        self.keep_alive = keep_alive
        self.task: asyncio.Task[None] | None = None
        """Runs the handler; None before and after."""
        self.waiter: asyncio.Future[None] | None = None
        """What `read` waits for; None if it does not."""
        self.can_write = True
        """Whether the client is there and the response is not complete."""
        self.is_finished = False
        """Whether the response is complete, or was given up."""
        self._is_continued = False

    def start(self) -> None:
        """Run the handler in a task."""
        protocol = self._protocol
        if self.is_complete and not protocol.is_reading:
            protocol.resume_reading()  # a disconnect is noticed only while reading
        self.task = protocol.loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            try:
                response = await self._protocol.connections.handler(self)
                if not isinstance(response, Response):
                    await response.close()
                elif self.can_write:
                    self._respond(response)
            except ClientGone:
                log.debug("a client hung up before it had sent its request")
            except Exception:
                log.exception("the handler failed")
            if not self.is_finished:  # not after a cancellation: a server that stops closes the connection
                self._fail()
        finally:
            # Break the cycles with the stream, with the listeners for its end, and with the task, whose
            # context may hold the request: a large answer is then freed at once and not by the garbage
            # collector, which runs seldom. The body goes as well, because a connection to an API keeps
            # the context in which it was opened, and with it the request, for as long as it is pooled.
            self.stream = self._when_gone = self.task = None
            self.body = b""

    def _fail(self) -> None:
        """Answer 500 if there is no response; cut off one that has begun, so that it looks incomplete."""
        if not self.is_gone:
            if self.stream is None:
                self._protocol.write(STATUS_LINES[500] + b"content-length: 0\r\nconnection: close\r\n\r\n")
            else:
                self._protocol.close()
        self._protocol.finish(self, is_last=not self.is_gone)

    # --- the body ------------------------------------------------------------------------------------------

    def hang_up(self) -> None:
        """Mark the client as gone."""
        self.can_write = False
        super().hang_up()
        self.wake()

    def wake(self) -> None:
        """Wake `read`."""
        waiter, self.waiter = self.waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def read(self) -> bytes:
        """Return the next piece of the body, b"" after the last. Raises ClientGone."""
        while not self.body and not self.is_complete and self.can_write:
            if self.stream is None and self.waits_to_continue:
                # Written as late as here, so that a handler can reject by the headers alone.
                self._protocol.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._is_continued = True
            self.waiter = self._protocol.loop.create_future()
            await self.waiter
        if not self.can_write:
            raise ClientGone
        piece, self.body = bytes(self.body), b""
        if not self._protocol.is_reading:
            self._protocol.resume_reading()
        return piece

    @property
    def waits_to_continue(self) -> bool:
        """Whether the client waits for `100 Continue` before it sends its body (RFC 9110 10.1.1)."""
        return not self._is_continued and self.headers.get(b"expect", b"").lower() == b"100-continue"

    # --- the response --------------------------------------------------------------------------------------

    def _respond(self, response: Response) -> None:
        """Write a whole response at once."""
        status, body, headers = response
        protocol = self._protocol
        lines = _format_headers(tuple(headers))
        for pair in self.extra_headers:  # they differ by request, so they stay out of the cache
            lines += b"%b: %b\r\n" % pair
        length = b"" if status in BODYLESS else b"content-length: %d\r\n" % len(body)
        may_be_last = protocol.is_ending or not self.is_complete
        is_last = not self.keep_alive or (may_be_last and protocol.is_last(self))
        end = b"connection: close\r\n\r\n" if is_last else b"\r\n"
        if self.method == "HEAD":  # RFC 9110 9.3.2: the length of the body, without the body
            body = b""
        head = (STATUS_LINES[status], protocol.connections.date(), length, lines, end)
        if len(body) > MAX_UNWRITTEN_BYTES:
            protocol.reader = self.caller
            protocol.write(b"".join(head))
            protocol.flush()  # and the body alone, which is then not copied: 9 ms for 16 MB
            protocol.write(body)
        else:
            protocol.write(b"".join((*head, body)))
        protocol.finish(self, is_last=is_last)

    async def open_stream(self, status: int, headers: HeaderPairs) -> ResponseStream:
        """Send the head of a response whose body comes in pieces."""
        has_length = status in BODYLESS or any(name == b"content-length" for name, _ in headers)
        is_chunked = self.is_http11 and not has_length
        if not (is_chunked or has_length):
            self.keep_alive = False  # HTTP/1.0 has no chunks: only the end of the connection ends the body
        parts = [STATUS_LINES[status], self._protocol.connections.date()]
        parts += [b"%b: %b\r\n" % pair for pair in (*headers, *self.extra_headers)]
        if is_chunked:
            parts.append(b"transfer-encoding: chunked\r\n")
        is_last = self._protocol.is_last(self)
        parts.append(b"connection: close\r\n\r\n" if is_last else b"\r\n")
        self.stream = stream = Http1Stream(
            self, self._protocol, status, is_chunked=is_chunked, is_last=is_last
        )
        self._protocol.reader = self.caller
        if self.can_write:
            self._protocol.write(b"".join(parts))
        return stream

    def abort(self) -> None:
        """Close the connection after what was sent so far."""
        self._protocol.close()
        self._protocol.finish(self, is_last=True)


@lru_cache(maxsize=64)
def _format_headers(headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """Format header lines; cached, since nearly all responses have the same ones."""
    return b"".join([b"%b: %b\r\n" % pair for pair in headers])


class Http1Stream(ResponseStream):
    """A response in pieces: chunked in HTTP/1.1, else up to its length or the end of the connection."""

    __slots__ = ("_has_body", "_is_chunked", "_is_last", "_protocol", "_request")

    def __init__(
        self,
        request: Http1Request,
        protocol: Http1Protocol,
        status: int,
        *,
        is_chunked: bool,
        is_last: bool,
    ) -> None:
        super().__init__(status)
        self._request = request
        self._protocol = protocol
        self._is_chunked = is_chunked
        self._is_last = is_last
        self._has_body = request.method != "HEAD"

    async def write(self, data: bytes) -> None:
        """Send a piece, waiting while the client is slow to read."""
        if not self._request.can_write:
            return
        # An empty chunk would end the body (RFC 9112 7.1).
        if data and self._has_body:
            # Joined, since `%b` takes ten times as long with large data: 12 ms for 16 MB.
            self._protocol.write(
                b"".join((b"%x\r\n" % len(data), data, b"\r\n")) if self._is_chunked else data
            )
        if self._protocol.writable is not None:
            await asyncio.shield(self._protocol.writable)  # several writers may wait for the same future

    async def close(self) -> None:
        """End the response; a second call does nothing."""
        if self._request.can_write:
            if self._is_chunked and self._has_body:
                self._protocol.write(b"0\r\n\r\n")
            is_last = self._is_last or self._protocol.is_last(self._request)
            self._protocol.finish(self._request, is_last=is_last)


class Http1Protocol(asyncio.Protocol):
    """One connection: parses requests, serves one after the other, writes responses."""

    def __init__(self, connections: Connections) -> None:
        self.connections = connections
        self.loop = connections.loop
        self.transport: asyncio.Transport
        self.last_active = self.loop.time()
        """When a request last arrived or was answered; bytes that form no request do not count."""
        self._parser = RequestParser(self)
        self.queue: deque[Http1Request] = deque()
        """The request being served, and pipelined ones behind it."""
        self._backlog: memoryview | bytes = b""
        """Bytes to be parsed in a later turn."""
        self.head_since: float | None = None
        """When the head that is still arriving began."""
        self._rejection: ClosingResponse | None = None
        """The response to send after those of earlier requests; nothing is parsed once it is set."""
        self.is_reading = True
        self.closes_after_body = False
        """Whether to close when the body of a request that is already answered has arrived."""
        self._is_used = False
        """Whether a request has ever come."""
        self._is_serving = False
        self._has_turn = False
        """Whether it is queued for a turn."""
        self.is_ending = False
        self.writable: asyncio.Future[None] | None = None
        """Done when the client reads again; None while it reads."""
        self._outgoing: list[bytes] = []
        self._outgoing_bytes = 0
        self._unread = 0
        """Bytes the client had not read at the last sweep, and since when their number is unchanged."""
        self._unread_since = 0.0
        self.reader = ""
        """The caller of the last large response, who has to read it."""
        self._held: tuple[str, int] | None = None
        """The caller and the number of unread bytes that it is charged for."""

    # --- the connection ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection, or refuse it if there are too many."""
        self.transport = transport  # type: ignore[assignment]
        self.scheme = "http" if transport.get_extra_info("sslcontext") is None else "https"
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else ""
        refusal = self.connections.enter(self)
        if refusal is not None:
            self._reject(refusal)

    @property
    def running(self) -> asyncio.Task[None] | None:
        """The task of the request being served, if it has one."""
        return self.queue[0].task if self.queue else None

    @property
    def is_idle(self) -> bool:
        """Whether every request that has begun to arrive is answered."""
        return not (self.queue or self._backlog or self._parser.is_in_head)

    def connection_lost(self, _exc: Exception | None) -> None:
        """Tell all requests that their client is gone."""
        self.connections.leave(self, self.running if self.queue else None)
        for request in self.queue:
            request.hang_up()
        self.queue.clear()
        self._backlog = b""
        self._parser.close()
        if self.writable is not None:
            self.resume_writing()  # wakes writers, which then see that the client is gone

    def close_if_idle(self, before: float) -> None:
        """Close if since that time the client read nothing, sent nothing, or did not finish a head."""
        unread = self.transport.get_write_buffer_size()
        if not unread or unread != self._unread:
            self._unread, self._unread_since = unread, self.loop.time()
        elif self._unread_since < before:
            self._report("slow_reader", 0)
            self.transport.abort()
            return
        if not self.is_reading or self.transport.is_closing():
            return  # we pause the client ourselves, so it is not late
        if self.head_since is not None:
            if self.head_since < before:
                self._reject(_SLOW_HEAD)
        elif self.last_active >= before:
            return
        elif not self.queue:
            if not self._parser.has_begun:  # otherwise it is an ordinary keep-alive connection
                self._report("idle", 0)
            self.transport.close()
        elif not self.queue[-1].is_complete:
            self._reject(_SLOW_BODY)

    # --- in ------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse and serve, or queue for a turn if this loop turn has done enough already."""
        if self._rejection is not None:
            return  # reading goes on only to notice a disconnect
        if self._backlog:
            self._defer(bytes(self._backlog) + data)
        elif self.connections.is_busy(len(data)):
            self._defer(data)
            self._queue_turn(is_interactive=not self.queue)
        else:
            self._parse(data)
            self._serve()
            if self.connections.has_queue:
                self.flush()  # write before queued connections take their turns

    def eof_received(self) -> None:
        """Answer a client that shut down its sending side within a head; the loop then closes."""
        if self._parser.is_in_head:
            self._reject(_CUT_HEAD)

    def _defer(self, data: bytes | memoryview) -> None:
        """Keep bytes for a later turn."""
        self._backlog = data
        if len(data) > MAX_BACKLOG_BYTES:
            self.pause_reading()

    def _parse(self, data: bytes | memoryview) -> None:
        """Parse until a request is complete or the loop turn's share is used up; defer the rest."""
        parser, connections = self._parser, self.connections
        try:
            if len(data) <= SLICE_BYTES and not connections.is_crowded:
                parser.feed(data)
            else:
                data = memoryview(data)
                last_chunk = parser.chunks + CHUNKS_PER_TURN
                while data:
                    size = parser.next_slice(is_crowded=connections.is_crowded)
                    parser.feed(data[:size])
                    data = data[size:]
                    if data and (self._has_request or parser.chunks > last_chunk):
                        self._defer(data)
                        # Pause even with a small backlog: libuv would read on in this turn, up to 8 MB.
                        self.pause_reading()
                        break
        except BadRequest as problem:
            self._reject(problem.response)
        if parser.is_in_head and self.head_since is None:
            self.head_since = self.loop.time()
        if self.queue:
            self.last_active = self.loop.time()
            if not self._is_used:
                self._is_used = True
                connections.note_use(self)

    @property
    def _has_request(self) -> bool:
        """Whether the first request in the queue is complete."""
        return bool(self.queue) and self.queue[0].is_complete

    def _serve(self) -> None:
        """Serve the first request in the queue; anything behind it waits for a turn."""
        queue = self.queue
        if queue and queue[0].task is None and self._can_serve():
            self._is_serving = True
            queue[0].start()
            self._is_serving = False
        if (
            (queue and queue[0].task is None) or (self._backlog and not self._has_request)
        ) and self._can_serve():
            self._queue_turn()

    def _can_serve(self) -> bool:
        """Whether a response could be written: a client that does not read gets nothing more to read."""
        return self.writable is None and not self._is_serving and not self.transport.is_closing()

    def _queue_turn(self, *, is_interactive: bool = False) -> None:
        if not self._has_turn:
            self._has_turn = True
            self.connections.queue_turn(self, is_interactive=is_interactive)

    def take_turn(self) -> None:
        """Parse deferred bytes if no request is complete, and serve one request."""
        self._has_turn = False
        if self._backlog and not self._has_request and self._can_serve():
            data, self._backlog = self._backlog, b""
            self._parse(data)
        self._serve()
        unread = len(self.queue[-1].body) if self.queue else 0
        if not self._has_request and unread <= MAX_UNREAD_BYTES:
            self.resume_reading()

    def pause_reading(self) -> None:
        """Read nothing more from the client, so that TCP makes it wait."""
        if self.is_reading and not self.transport.is_closing():
            self.is_reading = False
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on, unless the client does not read or the backlog is full."""
        if self.is_reading or self.writable is not None or len(self._backlog) > MAX_BACKLOG_BYTES:
            return
        if not self.transport.is_closing():
            self.is_reading = True
            self.transport.resume_reading()

    # --- out -----------------------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        """Make writers wait, and read nothing from a client that does not read."""
        self.writable = self.loop.create_future()
        self.pause_reading()
        unread, caller = self.connections.unread, self.reader or self.address
        if unread is not None:
            self._held = caller, self.transport.get_write_buffer_size()
            unread.charge(*self._held)
            if unread.is_over(caller):  # it keeps sending requests without reading the answers
                self._report("unread", 0)
                self.transport.abort()

    def resume_writing(self) -> None:
        """Let writers and the next request go on."""
        held, self._held = self._held, None
        if held is not None and self.connections.unread is not None:
            self.connections.unread.release(*held)
        writable, self.writable = self.writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)
        self._serve()
        self.resume_reading()

    def write(self, data: bytes) -> None:
        """Collect data; it is written at the end of this loop turn."""
        # Waking a client costs more than writing to it, so the responses of one turn go out together.
        if not self._outgoing:
            self.loop.call_soon(self._end_turn)
        self._outgoing.append(data)
        self._outgoing_bytes += len(data)
        if self._outgoing_bytes > MAX_UNWRITTEN_BYTES:
            self.flush()

    def _end_turn(self) -> None:
        self.connections.turn_bytes = 0
        self.flush()

    def flush(self) -> None:
        """Write what was collected for the end of this loop turn."""
        if self._outgoing and not self.transport.is_closing():
            self.transport.write(b"".join(self._outgoing))
        self._outgoing.clear()
        self._outgoing_bytes = 0

    def close(self) -> None:
        """Flush and close."""
        self.flush()
        self.transport.close()

    def is_last(self, request: Http1Request) -> bool:
        """Whether the connection closes after the response to this request."""
        if not request.keep_alive:
            return True
        if not request.is_complete and request.waits_to_continue:
            return True  # cannot tell the rest of its body from another request
        return self.is_ending and len(self.queue) <= 1 and not self._backlog and not self._parser.is_in_head

    def finish(self, request: Http1Request, *, is_last: bool) -> None:
        """End the response to a request: go on to the next request, or close."""
        request.can_write, request.is_finished = False, True
        if request.waiter is not None:
            request.wake()
        queue = self.queue
        if queue and queue[0] is request:
            queue.popleft()
        if (
            self._rejection is not None
            and not (is_last or queue)
            # After a stream that was cut off, the rejection would be read as part of its body.
            and (request.is_complete or request.stream is None)
        ):
            self._write_rejection(self._rejection)
            return
        # A body that is still arriving is read and dropped. Closing now would reset the connection, and the
        # client, busy sending, would never read the response (RFC 9112 9.6).
        drops_body = (
            self._parser.receiving is request
            and self._rejection is None
            and request.stream is None
            and not request.waits_to_continue
        )
        if drops_body:
            self.closes_after_body = is_last
            request.body = b""
        elif is_last or not request.is_complete:
            self.close()
            return
        self.last_active = self.loop.time()
        if queue or self._backlog:
            self._queue_turn()
        else:
            self.resume_reading()

    # --- the end -------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Close after the response to the last request; a request that arrives before that is served."""
        self.is_ending = True

    def _reject(self, rejection: ClosingResponse) -> None:
        """Answer the requests that came before, then send this and close."""
        if self.transport.is_closing() or self._rejection is not None:
            return
        self._backlog = b""
        if self._parser.receiving is not None and self._parser.receiving.is_finished:
            self.close()  # the request already has its response
            return
        self._rejection = rejection
        if self._parser.receiving is not None and self.queue:
            receiving = self.queue[-1]
            if receiving.task is None:
                self.queue.pop()
            else:
                receiving.hang_up()  # its handler ends with ClientGone; `finish` then sends the rejection
        if not self.queue:
            self._write_rejection(rejection)

    def _write_rejection(self, rejection: ClosingResponse) -> None:
        status, reason, body = rejection
        length = b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        self._outgoing.append(STATUS_LINES[status] + b"content-type: text/plain\r\n" + length + body)
        self._report(reason, status)
        self.close()

    def _report(self, reason: str, status: int) -> None:
        self.connections.on_reject(reason, self.address, status)
