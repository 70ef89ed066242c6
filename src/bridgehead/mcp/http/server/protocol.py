"""Protocol: HTTP/1.1 on one connection, lean enough not to be what a call spends its time on.

A response goes out in one write, no timer is set for a request, and what the handler answers without waiting
needs no task. Fair before fast: a connection answers one request when its bytes come in; whatever else it has
waits for its turn among all connections that have more (see `connections`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from .parser import MOST_UNREAD_BYTES, SLICE_BYTES, Malformed, Refusal, RequestParser
from .request import STATUS_LINES, Http1Request

if TYPE_CHECKING:
    from ..message import HeaderPairs
    from .connections import Connections

MOST_UNWRITTEN_BYTES = 64 * 1024
MOST_BACKLOG_BYTES = 64 * 1024
"""Bytes that wait to be parsed, from which on no more are read."""
PIECES_A_TURN = 512
"""Pieces of a body, from which on the rest of it waits for the next turn: about 0.5 ms."""


class Http1Protocol(asyncio.Protocol):
    """One connection: parses requests, serves one after the other, writes responses."""

    def __init__(self, connections: Connections) -> None:
        self.connections = connections
        self.loop = connections.loop
        self.transport: asyncio.Transport
        self.last_active = self.loop.time()
        """When a request last came in or was answered: bytes that are none do not count."""
        self._parser = RequestParser(self)
        self._queue: deque[Http1Request] = deque()
        """The request being served, and pipelined ones behind it."""
        self._backlog: memoryview | bytes = b""
        """What has come in and is to be parsed in a later turn."""
        self._head_since: float | None = None
        """Since when a request's head has been coming in, and is not there yet."""
        self._rejection: Refusal | None = None
        """What the client is told once everything before it has been answered; no more is read then."""
        self._is_reading = True
        self._is_serving = False
        self._has_turn = False
        """Whether it goes on in the next turn of the loop."""
        self.is_ending = False
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
        refusal = self.connections.enter(self)
        if refusal is not None:
            self._reject(refusal)

    @property
    def running(self) -> asyncio.Task[None] | None:
        """What runs for this client."""
        return self._queue[0].task if self._queue else None

    @property
    def is_idle(self) -> bool:
        """Whether nothing has come in that is not answered."""
        return not (self._queue or self._backlog or self._parser.is_in_head)

    def connection_lost(self, _exc: Exception | None) -> None:
        """Tell whoever is being served that the client is gone."""
        self.connections.leave(self, self.running)
        for request in self._queue:
            request.hang_up()
        self._queue.clear()
        self._backlog = b""
        self._parser.close()
        self.resume_writing()

    def close_if_idle(self, before: float) -> None:
        """Close a connection that for too long sent nothing, read nothing, or came to no end of a head."""
        if self._is_stalled(before):
            self._report("slow_reader", 0)
            self.transport.abort()
        elif self._is_reading and not self.transport.is_closing():  # what we do not let it send is not late
            self._close_if_late(before)

    def _close_if_late(self, before: float) -> None:
        if self._head_since is not None:
            if self._head_since < before:
                self._reject(Refusal(408, "slow_head", b"The request did not arrive in time"))
        elif self.last_active >= before:
            return
        elif not self._queue:
            if not self._parser.has_begun:  # so it is not one that is kept for the next time
                self._report("idle", 0)
            self.transport.close()
        elif not self._queue[-1].is_complete:
            self._reject(Refusal(408, "slow_body", b"The request did not arrive in time"))

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
        if self._rejection is not None:
            return  # it is read from only to hear it hang up
        if self._backlog:
            self._put_aside(bytes(self._backlog) + data)
        elif self.connections.is_busy(len(data)):
            self._put_aside(data)
            self._go_on_later(is_fresh=not self._queue)
        else:
            self._parse(data)
            self._serve()
            if self.connections.is_turning:
                self.flush()  # its answer does not wait for the turn of those in line

    def eof_received(self) -> None:
        """Answer a client that ends in the middle of a head, and may still read; then the loop closes."""
        if self._parser.is_in_head:
            self._reject(Refusal(400, "malformed", b"The request ended within its head"))

    def _put_aside(self, data: bytes | memoryview) -> None:
        """Keep bytes for a later turn, and take no more of them than that is good for."""
        self._backlog = data
        if len(data) > MOST_BACKLOG_BYTES:
            self.pause_reading()

    def _parse(self, data: bytes | memoryview) -> None:
        """Parse slice by slice, until there is a request to be answered."""
        parser = self._parser
        try:
            if len(data) <= SLICE_BYTES and not self.connections.is_crowded:
                parser.feed(data)
            else:
                self._parse_slices(memoryview(data))
        except Malformed as problem:
            self._reject(problem.refusal)
        if parser.is_in_head and self._head_since is None:
            self._head_since = self.loop.time()
        if self._queue:
            self.last_active = self.loop.time()

    def _parse_slices(self, data: memoryview) -> None:
        parser = self._parser
        most = parser.body_pieces + PIECES_A_TURN
        while data:
            size = parser.next_slice(is_crowded=self.connections.is_crowded)
            parser.feed(data[:size])
            data = data[size:]
            if data and (self._has_request or parser.body_pieces > most):
                self._put_aside(data)
                # Otherwise the loop would read on and on in this very turn, up to 8 MB with libuv.
                self.pause_reading()
                return

    @property
    def _has_request(self) -> bool:
        """Whether a request has come in whole."""
        return bool(self._queue) and self._queue[0].is_complete

    def begin_request(
        self,
        method: str,
        target: tuple[bytes, str, bytes],
        pairs: HeaderPairs,
        *,
        is_http11: bool,
        keep_alive: bool,
    ) -> Http1Request:
        """Take the head of a request."""
        request = Http1Request(self, method, target, pairs, is_http11=is_http11, keep_alive=keep_alive)
        self._head_since = None
        self._queue.append(request)
        return request

    def end_request(self) -> None:
        """Note that a request is whole; no more is read while one waits behind another."""
        if len(self._queue) > 1:
            self.pause_reading()

    def _serve(self) -> None:
        """Serve the next request; what comes behind it waits for its turn."""
        queue = self._queue
        if queue and queue[0].task is None and self._can_serve():
            self._is_serving = True
            queue[0].start()
            self._is_serving = False
        if (self._queue or self._backlog) and self._has_more():
            self._go_on_later()

    def _can_serve(self) -> bool:
        """Tell whether a response could be sent: a client that does not read gets no more to read."""
        return self.writable is None and not self._is_serving and not self.transport.is_closing()

    def _has_more(self) -> bool:
        """Tell whether something can be done in the next turn."""
        if not self._can_serve():
            return False
        if self._queue and self._queue[0].task is None:
            return True
        return bool(self._backlog) and not self._has_request

    def _go_on_later(self, *, is_fresh: bool = False) -> None:
        if not self._has_turn:
            self._has_turn = True
            self.connections.wait_for_turn(self, is_fresh=is_fresh)

    def go_on(self) -> None:
        """Take a turn: parse what was put aside if nothing waits to be answered, and serve one request."""
        self._has_turn = False
        if self._backlog and not self._has_request and self._can_serve():
            data, self._backlog = self._backlog, b""
            self._parse(data)
        self._serve()
        if not self._has_request and self._unread_body() <= MOST_UNREAD_BYTES:
            self.resume_reading()

    def _unread_body(self) -> int:
        return len(self._queue[-1].body) if self._queue else 0

    def pause_reading(self) -> None:
        """Let the client wait."""
        if self._is_reading and not self.transport.is_closing():
            self._is_reading = False
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Take more from the client, unless it has enough to read or to be answered."""
        if self._is_reading or self.writable is not None or len(self._backlog) > MOST_BACKLOG_BYTES:
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
            self.loop.call_soon(self._end_turn)
        self._outgoing.append(data)
        self._outgoing_bytes += len(data)
        if self._outgoing_bytes > MOST_UNWRITTEN_BYTES:
            self.flush()

    def _end_turn(self) -> None:
        self.connections.work = 0  # another turn of the loop
        self.flush()

    def flush(self) -> None:
        """Write what waits for the end of this turn of the loop."""
        if self._outgoing and not self.transport.is_closing():
            self.transport.write(b"".join(self._outgoing))
        self._outgoing.clear()
        self._outgoing_bytes = 0

    def close(self) -> None:
        """Close, with everything written that is still to be."""
        self.flush()
        self.transport.close()

    def is_last(self, request: Http1Request) -> bool:
        """Tell whether the connection is closed behind the response to a request."""
        if not request.keep_alive:
            return True
        return self.is_ending and len(self._queue) <= 1 and not self._backlog and not self._parser.is_in_head

    def finish(self, request: Http1Request, *, is_last: bool) -> None:
        """Go on to the next request after a response, or close."""
        if self._queue and self._queue[0] is request:
            self._queue.popleft()
        if self._rejection is not None and self._can_reject_behind(request, is_last=is_last):
            self._write_rejection(self._rejection)
        elif is_last or not request.is_complete:
            self.close()
        else:
            self.last_active = self.loop.time()
            if self._queue or self._backlog:
                self._go_on_later()
            else:
                self.resume_reading()

    def _can_reject_behind(self, request: Http1Request, *, is_last: bool) -> bool:
        """Tell whether a rejection can follow the response to the last request before it."""
        is_whole = request.is_complete or request.stream is None
        return is_whole and not is_last and not self._queue

    # --- the end -------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Close behind the response to the last request that has come in; one that comes in now is served."""
        self.is_ending = True

    def _reject(self, refusal: Refusal) -> None:
        """Answer what came in before, then say what is wrong, and close."""
        if self.transport.is_closing() or self._rejection is not None:
            return
        self._rejection = refusal
        self._backlog = b""
        if self._parser.incoming is not None and self._queue:
            incoming = self._queue[-1]
            if incoming.task is None:
                self._queue.pop()
            else:
                incoming.hang_up()  # whose handler ends, and then it is told
        if not self._queue:
            self._write_rejection(refusal)

    def _write_rejection(self, refusal: Refusal) -> None:
        length = b"content-length: %d\r\nconnection: close\r\n\r\n" % len(refusal.message)
        head = STATUS_LINES[refusal.status] + b"content-type: text/plain\r\n" + length
        self._outgoing.append(head + refusal.message)
        self._report(refusal.reason, refusal.status)
        self.close()

    def _report(self, reason: str, status: int) -> None:
        self.connections.on_reject(reason, self.address, status)
