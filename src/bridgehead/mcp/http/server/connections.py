"""Connections: those that a server has open, and what they share.

Closes the ones that idle, bounds their number, and ends them all in good order and within a time. And it is
what makes the server fair: in a turn of the loop only so much is done for all connections together, and who
has more to be done waits in line, one request at a time.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections import Counter, deque
from collections.abc import Callable, Container
from email.utils import formatdate
from time import perf_counter
from typing import Protocol

from ..message import Handler
from .parser import Refusal

SWEEP_SECONDS = 1.0
LINGER_SECONDS = 0.5
"""How long a connection that is to be closed may still bring a request that was on its way."""
ABANDON_SECONDS = 1.0
"""How long a request that is cancelled may take to let go."""

TURN_SECONDS = 0.0005
"""How long those in line are served in one turn of the loop, before it looks who else has come."""
WORK_A_TURN = 48 * 1024
"""How many bytes are taken up as they come in, in one turn of the loop; what comes then waits in line."""
CROWD = 64
"""So many connections in line are a crowd: requests are then parsed only shortly before they are served."""
_WORK_OF_REQUEST = 512
"""What a request weighs beside its bytes."""

OnReject = Callable[[str, str, int], None]
"""Told of what is rejected before the handler sees it: why, the peer's address, and the status that was
answered; 0 where the connection was closed without one."""

log = logging.getLogger("bridgehead.mcp.http")


def log_rejection(reason: str, address: str, status: int) -> None:
    """Log a rejection, for whoever wants to see so much."""
    log.info("rejected: %s from %s, status %d", reason, address, status)


_TOO_MANY = Refusal(503, "connections", b"Too many connections")
_TOO_MANY_FROM_ADDRESS = Refusal(503, "connections", b"Too many connections from your address")


class OpenConnection(Protocol):
    """A connection that is counted here, closed when it idles, and ended with the server."""

    address: str
    transport: asyncio.Transport

    @property
    def is_idle(self) -> bool:
        """Whether nothing has come in that is not answered."""

    @property
    def running(self) -> asyncio.Task[None] | None:
        """What runs for its client."""

    def end(self) -> None:
        """Close behind the response to the last request."""

    def close(self) -> None:
        """Close, with everything written that is still to be."""

    def close_if_idle(self, before: float) -> None:
        """Close if nothing has happened since then."""

    def go_on(self) -> None:
        """Take a turn: parse what was put aside, and serve one request."""

    def flush(self) -> None:
        """Write what waits for the end of this turn of the loop."""


class Connections:
    """The open connections of one server."""

    def __init__(
        self,
        handler: Handler,
        loop: asyncio.AbstractEventLoop,
        *,
        most: int | None = None,
        most_per_address: int | None = None,
        unlimited: Container[str] = (),
        by_address: Counter[str] | None = None,
        keep_alive_seconds: float = 75.0,
        on_reject: OnReject = log_rejection,
    ) -> None:
        self.handler = handler
        self.loop = loop
        self.on_reject = on_reject
        self.is_ending = False
        self._most = most
        self._most_per_address = most_per_address
        self._unlimited = unlimited
        """Addresses that speak for many clients, as a proxy does."""
        self.by_address: Counter[str] = Counter() if by_address is None else by_address
        self.keep_alive_seconds = keep_alive_seconds
        self._open: set[OpenConnection] = set()
        self.handshakes: set[asyncio.Task[None]] = set()
        """The connections that still agree on TLS."""
        self._left_behind: set[asyncio.Task[None]] = set()
        """What still runs for clients that are gone."""
        self.work = 0
        """What was taken up in this turn of the loop, in bytes."""
        self._newcomers: deque[OpenConnection] = deque()
        """Connections in line with the first thing they ask for."""
        self._in_line: deque[OpenConnection] = deque()
        """Connections in line with what they have asked for beside it."""
        self.is_crowded = False
        """Whether many connections wait in line."""
        self.is_turning = False
        """Whether anybody waits in line."""
        self._all_closed: asyncio.Future[None] | None = None
        self._date = b""
        self._date_until = 0.0

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another connection."""
        return self._most is not None and len(self._open) + len(self.handshakes) >= self._most

    def enter(self, connection: OpenConnection) -> Refusal | None:
        """Count a connection in; returns how it is rejected where there is no room for it."""
        if self._most is not None and len(self._open) >= self._most:
            return _TOO_MANY
        address, most = connection.address, self._most_per_address
        if most is not None and self.by_address[address] >= most and address not in self._unlimited:
            return _TOO_MANY_FROM_ADDRESS
        self.by_address[address] += 1
        self._open.add(connection)
        if self.is_ending:
            connection.end()
        if len(self._open) == 1:
            self.loop.call_later(SWEEP_SECONDS, self._sweep)
        return None

    def leave(self, connection: OpenConnection, running: asyncio.Task[None] | None) -> None:
        """Count a connection out; what still runs for it is kept until it ends."""
        if connection in self._open:
            self._open.discard(connection)
            self.by_address[connection.address] -= 1
            if not self.by_address[connection.address]:
                del self.by_address[connection.address]
        if running is not None and not running.done():
            self._left_behind.add(running)
            running.add_done_callback(self._left_behind.discard)
        if not self._open and self._all_closed is not None and not self._all_closed.done():
            self._all_closed.set_result(None)

    # --- whose turn it is ----------------------------------------------------------------------------------

    def is_busy(self, size: int) -> bool:
        """Tell whether enough was done in this turn of the loop, so that these bytes must wait in line."""
        self.work += size + _WORK_OF_REQUEST
        return self.work > WORK_A_TURN and self.work > size + _WORK_OF_REQUEST

    def wait_for_turn(self, connection: OpenConnection, *, is_fresh: bool) -> None:
        """Let a connection go on when it is its turn; fresh is one that has had none lately."""
        (self._newcomers if is_fresh else self._in_line).append(connection)
        self.is_crowded = len(self._newcomers) + len(self._in_line) > CROWD
        if not self.is_turning:
            self.is_turning = True
            self.loop.call_soon(self._take_turns)

    def _take_turns(self) -> None:
        """Let those in line go on for a while, newcomers first; but one of the others gets on every time.

        A newcomer's answer is written before the others go on: they may take the rest of the turn.
        """
        self.work = 0
        until = perf_counter() + TURN_SECONDS
        while self._newcomers and perf_counter() < until:
            newcomer = self._newcomers.popleft()
            newcomer.go_on()
            newcomer.flush()
        if self._in_line:
            self._in_line.popleft().go_on()
        while self._in_line and perf_counter() < until:
            self._in_line.popleft().go_on()
        self.is_crowded = len(self._newcomers) + len(self._in_line) > CROWD
        if self._newcomers or self._in_line:
            self.loop.call_soon(self._take_turns)
        else:
            self.is_turning = False

    # --- the end, and what is seen to all the time ---------------------------------------------------------

    def date(self) -> bytes:
        """Return the header line that says what time it is, made anew once a second."""
        now = self.loop.time()
        if now >= self._date_until:
            self._date = f"date: {formatdate(usegmt=True)}\r\n".encode()
            self._date_until = now + 1
        return self._date

    async def close(self, within: float) -> None:
        """Let every request that has come in be answered, for as long as there is time, and close everything.

        A request may be on its way on a connection that looks idle: closing that would reset it. So for a
        moment connections are only told to end: each closes behind the response to its last request.
        """
        self.end()
        for task in tuple(self.handshakes):
            task.cancel()
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
            await self._abandon()

    def end(self) -> None:
        """Close each connection behind the response to its last request."""
        self.is_ending = True
        for connection in tuple(self._open):
            connection.end()

    async def _finished(self) -> None:
        if self._open:
            self._all_closed = self.loop.create_future()
            await self._all_closed
        if self._left_behind:
            await asyncio.wait(self._left_behind)

    async def _abandon(self) -> None:
        running = {c.running for c in self._open if c.running is not None} | self._left_behind
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=ABANDON_SECONDS)
        for connection in tuple(self._open):
            connection.transport.abort()

    def _check_descriptors(self) -> None:
        """Say so when the process can open nothing more: new connections are then dropped without a word."""
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as problem:
            if problem.errno in (errno.EMFILE, errno.ENFILE):
                self.on_reject("descriptors", "", 0)

    def _sweep(self) -> None:
        """Close what is idle, and look again later as long as there are connections."""
        self._check_descriptors()
        before = self.loop.time() - self.keep_alive_seconds
        for connection in tuple(self._open):
            connection.close_if_idle(before)
        if self._open:
            self.loop.call_later(SWEEP_SECONDS, self._sweep)
