"""The open connections of one server: limits, idle timeouts, turns and shutdown.

This is where the server is fair. One turn of the event loop does a bounded amount of work for all connections
together; a connection with more to do queues up and gets one request per turn.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Container
from email.utils import formatdate
from itertools import islice
from time import perf_counter
from typing import NamedTuple, Protocol

from ..message import Handler

SWEEP_SECONDS = 1.0
LINGER_SECONDS = 0.5
"""At shutdown, how long an idle connection may still deliver a request that is on its way."""
ABANDON_SECONDS = 1.0
"""At shutdown, how long a cancelled request may take to clean up."""

TURN_SECONDS = 0.0005
"""How long queued connections are served before the event loop polls its sockets again."""
TURN_BYTES = 48 * 1024
"""Bytes parsed on arrival in one loop turn, over all connections; later arrivals queue up."""
CROWD = 64
"""With more queued connections than this, requests are parsed only shortly before they are served."""
_REQUEST_BYTES = 512
"""The fixed cost of a request in `TURN_BYTES`, on top of its size."""
_LOOKED_AT = 64
"""Connections that are looked at for an idle one, where every one of an address has been used."""


class UnreadAnswers(Protocol):
    """Counts answers that clients have not read; implemented by `Accounts`."""

    def charge(self, caller: str, size: int) -> None:
        """Count bytes that are held for a caller."""

    def release(self, caller: str, size: int) -> None:
        """Stop counting bytes that were held for a caller."""

    def is_over(self, caller: str) -> bool:
        """Whether a caller holds more than its share."""

    def check_memory(self) -> bool:
        """Check the memory of the process; called about once a second."""


OnReject = Callable[[str, str, int], None]
"""Called with the reason, the peer's address and the status of each request that the handler never sees.
The status is 0 if the connection was closed without a response."""

log = logging.getLogger("bridgehead.mcp.http")


def log_rejection(reason: str, address: str, status: int) -> None:
    """Log a rejection at level INFO; the default `OnReject`."""
    log.info("rejected: %s from %s, status %d", reason, address, status)


class ClosingResponse(NamedTuple):
    """A plain-text error response after which the connection is closed; `reason` is for logs and metrics."""

    status: int
    reason: str
    body: bytes


_TOO_MANY = ClosingResponse(503, "connections", b"Too many connections")
_TOO_MANY_FROM_ADDRESS = ClosingResponse(503, "connections", b"Too many connections from your address")


class OpenConnection(Protocol):
    """The part of `Http1Protocol` used here; spelled out so that the two modules do not import each other."""

    address: str
    transport: asyncio.Transport

    @property
    def is_idle(self) -> bool:
        """Whether every request that has begun to arrive is answered."""

    @property
    def running(self) -> asyncio.Task[None] | None:
        """The handler's task, if one runs for this connection."""

    def end(self) -> None:
        """Close after the response to the last request."""

    def close(self) -> None:
        """Flush and close."""

    def close_if_idle(self, before: float) -> None:
        """Close if nothing has happened since that time of the loop's clock."""

    def take_turn(self) -> None:
        """Parse deferred bytes and serve one request."""

    def flush(self) -> None:
        """Write what was collected for the end of this loop turn."""


class Connections:
    """The open connections of one server."""

    def __init__(
        self,
        handler: Handler,
        loop: asyncio.AbstractEventLoop,
        *,
        limit: int | None = None,
        limit_per_address: int | None = None,
        unlimited: Container[str] = (),
        by_address: Counter[str] | None = None,
        keep_alive_seconds: float = 75.0,
        on_reject: OnReject = log_rejection,
        unread: UnreadAnswers | None = None,
    ) -> None:
        self.unread = unread
        self.handler = handler
        self.loop = loop
        self.on_reject = on_reject
        self.is_ending = False
        self.limit = limit
        self._limit_per_address = limit_per_address
        self._unlimited = unlimited
        """Addresses of proxies, which carry many clients: `limit_per_address` does not apply to them."""
        self.by_address: Counter[str] = Counter() if by_address is None else by_address
        self.keep_alive_seconds = keep_alive_seconds
        self._open: set[OpenConnection] = set()
        self._of_address: dict[str, dict[OpenConnection, None]] = {}
        """Open connections by address, the oldest first; proxies, which carry many clients, are left out."""
        self._unused: dict[str, dict[OpenConnection, None]] = {}
        """Those of them that have not sent a request yet."""
        self.handshakes: dict[asyncio.Task[None], socket.socket] = {}
        """TLS handshakes under way, the oldest first; they count towards `limit`."""
        self._orphans: set[asyncio.Task[None]] = set()
        """Handler tasks whose client has gone."""
        self.turn_bytes = 0
        """Work accepted in this loop turn; reset when its responses are written or the next turn begins."""
        self._interactive: deque[OpenConnection] = deque()
        """Connections that queue with their only request."""
        self._bulk: deque[OpenConnection] = deque()
        """Connections that queue with more requests or more of a body after they had a turn."""
        self.is_crowded = False
        """Whether more than `CROWD` connections are queued."""
        self.has_queue = False
        self._sweeping: asyncio.TimerHandle | None = None
        """The next sweep; None while no connection is open."""
        self._all_closed: asyncio.Future[None] | None = None
        self._date = b""
        self._date_until = 0.0

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached, counting TLS handshakes."""
        return self.limit is not None and len(self._open) + len(self.handshakes) >= self.limit

    def enter(self, connection: OpenConnection) -> ClosingResponse | None:
        """Register a connection, or return why it is refused."""
        is_full = self.limit is not None and len(self._open) >= self.limit
        if is_full and not self.make_room(connection.address):
            return _TOO_MANY
        address, limit = connection.address, self._limit_per_address
        if limit is not None and self.by_address[address] >= limit and address not in self._unlimited:
            return _TOO_MANY_FROM_ADDRESS
        self.by_address[address] += 1
        self._open.add(connection)
        if address not in self._unlimited:
            self._of_address.setdefault(address, {})[connection] = None
            self._unused.setdefault(address, {})[connection] = None
        if self.is_ending:
            connection.end()
        # A single timer: otherwise a client that opens one connection after another would add one each time.
        if self._sweeping is None:
            self._sweeping = self.loop.call_later(SWEEP_SECONDS, self._sweep)
        return None

    def leave(self, connection: OpenConnection, running: asyncio.Task[None] | None) -> None:
        """Unregister a connection; keep its task, which shutdown has to wait for."""
        if connection in self._open:  # not if `enter` refused it
            self._open.discard(connection)
            _remove(self._of_address, connection)
            _remove(self._unused, connection)
            self.by_address[connection.address] -= 1
            if not self.by_address[connection.address]:
                del self.by_address[connection.address]
        if running is not None and not running.done():
            self._orphans.add(running)
            running.add_done_callback(self._orphans.discard)
        if not self._open and self._all_closed is not None and not self._all_closed.done():
            self._all_closed.set_result(None)

    def note_use(self, connection: OpenConnection) -> None:
        """Note that a connection has sent its first request."""
        _remove(self._unused, connection)

    def make_room(self, address: str) -> bool:
        """Close a connection of the address that has most, for a new one of this address; False if none can.

        The oldest connection that never sent a request goes first, then one that is idle. Whoever has most
        already takes only the place of a connection of its own that was never used.
        """
        counts = self._of_address
        largest = max(counts, key=lambda other: len(counts[other]), default=address)
        is_newcomer = len(counts.get(address, ())) + 1 < len(counts.get(largest, ()))
        victim = next(iter(self._unused.get(largest if is_newcomer else address, ())), None)
        if victim is None and is_newcomer:
            victim = next((one for one in islice(counts[largest], _LOOKED_AT) if one.is_idle), None)
        if victim is None:
            return False
        self.on_reject("displaced", victim.address, 0)
        self.leave(victim, victim.running)  # now: the loop tells only later that it is closed
        victim.transport.abort()
        return True

    # --- turns ---------------------------------------------------------------------------------------------

    def is_busy(self, size: int) -> bool:
        """Charge these bytes to the loop turn; return whether they must wait for the next one."""
        self.turn_bytes += size + _REQUEST_BYTES
        # The first arrival of a turn is never deferred, however large: parsing bounds itself by slices.
        return self.turn_bytes > TURN_BYTES and self.turn_bytes > size + _REQUEST_BYTES

    def queue_turn(self, connection: OpenConnection, *, is_interactive: bool) -> None:
        """Call the connection's `take_turn` in a later loop turn; interactive connections go first."""
        (self._interactive if is_interactive else self._bulk).append(connection)
        self.is_crowded = len(self._interactive) + len(self._bulk) > CROWD
        if not self.has_queue:
            self.has_queue = True
            self.loop.call_soon(self._take_turns)

    def _take_turns(self) -> None:
        self.turn_bytes = 0
        deadline = perf_counter() + TURN_SECONDS
        while self._interactive and perf_counter() < deadline:
            connection = self._interactive.popleft()
            connection.take_turn()
            connection.flush()  # now: bulk connections may use up the rest of the turn
        # One bulk connection per turn, even past the deadline: interactive ones must not starve them.
        if self._bulk:
            self._bulk.popleft().take_turn()
        while self._bulk and perf_counter() < deadline:
            self._bulk.popleft().take_turn()
        self.is_crowded = len(self._interactive) + len(self._bulk) > CROWD
        if self._interactive or self._bulk:
            self.loop.call_soon(self._take_turns)
        else:
            self.has_queue = False

    # --- timers and shutdown -------------------------------------------------------------------------------

    def date(self) -> bytes:
        """Return the `date` header line, formatted once a second."""
        now = self.loop.time()
        if now >= self._date_until:
            self._date = f"date: {formatdate(usegmt=True)}\r\n".encode()
            self._date_until = now + 1
        return self._date

    async def close(self, within: float) -> None:
        """Answer requests that have arrived, for at most this many seconds, then close every connection."""
        self.end()
        for task in tuple(self.handshakes):
            task.cancel()
        # A request may be in transit on a connection that looks idle, and closing now would reset it. So
        # idle connections stay open for a moment, and each closes after the response to its last request.
        linger = min(LINGER_SECONDS, within)
        try:
            await asyncio.wait_for(self._finished(), linger)
        except TimeoutError:
            for connection in tuple(self._open):
                if connection.is_idle:
                    connection.close()
        try:
            await asyncio.wait_for(self._finished(), within - linger)
        except TimeoutError:
            running = {c.running for c in self._open if c.running is not None} | self._orphans
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running, timeout=ABANDON_SECONDS)
            for connection in tuple(self._open):
                connection.transport.abort()

    def end(self) -> None:
        """Close each connection after the response to its last request."""
        self.is_ending = True
        for connection in tuple(self._open):
            connection.end()

    async def _finished(self) -> None:
        if self._open:
            self._all_closed = self.loop.create_future()
            await self._all_closed
        if self._orphans:
            await asyncio.wait(self._orphans)

    def _sweep(self) -> None:
        """Close idle connections; repeat while any connection is open."""
        # Out of file descriptors, the loop drops new connections silently: only opening one shows it.
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as problem:
            if problem.errno in (errno.EMFILE, errno.ENFILE):
                self.on_reject("descriptors", "", 0)
        if self.unread is not None:
            self.unread.check_memory()
        before = self.loop.time() - self.keep_alive_seconds
        for connection in tuple(self._open):
            connection.close_if_idle(before)
        self._sweeping = self.loop.call_later(SWEEP_SECONDS, self._sweep) if self._open else None


def _remove(by_address: dict[str, dict[OpenConnection, None]], connection: OpenConnection) -> None:
    of_address = by_address.get(connection.address)
    if of_address is not None:
        of_address.pop(connection, None)
        if not of_address:
            del by_address[connection.address]
