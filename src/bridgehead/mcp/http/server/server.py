"""The server: accepts connections on a socket, with or without TLS, and shuts down in order.

It does not start or stop the application behind its handler; `serve` does both.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Container
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ...process import shutdown_signals
from ..message import Application, Handler
from .connections import Connections, OnReject, UnreadAnswers, log_rejection
from .protocol import Http1Protocol

if TYPE_CHECKING:
    import ssl


BACKLOG = 2048
_ACCEPT_TURNS = 4
"""Loop turns until an accepted client has its connection; asyncio takes three."""
_MIN_HANDSHAKE_SECONDS = 0.1
_MAX_HANDSHAKE_SECONDS = 10.0
_HANDSHAKE_PART = 2
"""Handshakes may be half of all connections before the oldest is given up for a new one."""
_ACCEPT_RETRY_SECONDS = 0.5
"""Pause after `accept` failed, normally because the process has no file descriptors left."""


class Server:
    """A handler on a port."""

    def __init__(
        self,
        handler: Handler,
        *,
        max_connections: int | None = None,
        max_per_address: int | None = None,
        unlimited: Container[str] = (),
        by_address: Counter[str] | None = None,
        keep_alive_seconds: float = 75.0,  # above the 60 s of most proxies, so that they close first
        shutdown_seconds: float = 5.0,
        on_reject: OnReject = log_rejection,
        unread: UnreadAnswers | None = None,
    ) -> None:
        self._connections = Connections(
            handler,
            asyncio.get_running_loop(),
            limit=max_connections,
            limit_per_address=max_per_address,
            unlimited=unlimited,
            by_address=by_address,
            keep_alive_seconds=keep_alive_seconds,
            on_reject=on_reject,
            unread=unread,
        )
        self.shutdown_seconds = shutdown_seconds
        self._listener: asyncio.Server | TlsListener | None = None
        self._listening: socket.socket | None = None
        self._accepted_last: set[asyncio.Task[Any]] = set()
        self._closes_late = False
        """Whether `stop` closes the listener. Closing asyncio's server drops clients that it has accepted
        but not handed over yet, so until then only its reader is removed."""

    async def start(self, listening: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        """Serve clients of a bound socket."""
        connections = self._connections
        if tls is not None:
            self._listener = TlsListener(connections, tls, listening)
            return
        self._listening = listening
        self._listener = await connections.loop.create_server(
            partial(Http1Protocol, connections), sock=listening, backlog=BACKLOG
        )

    def stop_accepting(self) -> None:
        """Take no new connections; open ones close after the response to their last request."""
        connections, loop = self._connections, self._connections.loop
        connections.end()
        listening, self._listening = self._listening, None
        if listening is not None:
            with suppress(NotImplementedError):  # the Windows loop, which does not lose accepted clients
                self._closes_late = loop.remove_reader(listening)
            # The kernel has completed connections in its backlog; closing the socket would reset them.
            with suppress(OSError):  # BlockingIOError: the backlog is empty
                while True:
                    accepted, _ = listening.accept()
                    accepted.setblocking(False)  # noqa: FBT003 - its name says what it sets
                    task = loop.create_task(
                        loop.connect_accepted_socket(partial(Http1Protocol, connections), accepted)
                    )
                    self._accepted_last.add(task)
                    task.add_done_callback(self._accepted_last.discard)
        if self._listener is not None and not self._closes_late:
            self._listener.close()

    async def stop(self) -> None:
        """Accept nothing new, finish requests under way, and close every connection."""
        self.stop_accepting()
        # Streams that were just ended write their last bytes, and clients that were just accepted become
        # connections, before connections are closed.
        for _ in range(_ACCEPT_TURNS):
            await asyncio.sleep(0)
        if self._listener is not None:
            self._listener.close()
        await self._connections.close(self.shutdown_seconds)


class TlsListener:
    """Accepts TLS clients and hands each over after its handshake.

    The event loop's own server could do this, but it does not report failed or endless handshakes, nor does
    it bound their number.
    """

    def __init__(self, connections: Connections, context: ssl.SSLContext, listening: socket.socket) -> None:
        self._connections = connections
        self._loop = connections.loop
        self._context = context
        self._listening = listening
        self._handshake_seconds = max(
            _MIN_HANDSHAKE_SECONDS, min(_MAX_HANDSHAKE_SECONDS, connections.keep_alive_seconds)
        )
        listening.setblocking(False)  # noqa: FBT003 - its name says what it sets
        self._accepting = self._loop.create_task(self._accept())
        # Close the socket only once the task has ended: until then the loop watches it.
        self._accepting.add_done_callback(lambda _: listening.close())

    def close(self) -> None:
        """Accept nothing more."""
        self._accepting.cancel()

    async def _accept(self) -> None:
        connections = self._connections
        while True:
            accepting = asyncio.ensure_future(self._loop.sock_accept(self._listening))
            try:
                await asyncio.wait([accepting])
            except asyncio.CancelledError:
                # A client accepted in the same loop turn as the cancellation would leak its socket.
                if not accepting.cancel() and accepting.exception() is None:
                    accepting.result()[0].close()
                raise
            try:
                accepted, address = accepting.result()
            except OSError:
                await asyncio.sleep(_ACCEPT_RETRY_SECONDS)
                continue
            if connections.is_full and not self._make_room(address[0]):
                self._reject(accepted, "connections", address[0])
                continue
            handshake = self._loop.create_task(self._shake_hands(accepted, address[0]))
            connections.handshakes[handshake] = accepted
            handshake.add_done_callback(lambda done: connections.handshakes.pop(done, None))

    def _make_room(self, address: str) -> bool:
        """Give up the oldest handshake if they are many, else a connection that may go."""
        handshakes, limit = self._connections.handshakes, self._connections.limit
        if limit is None or len(handshakes) * _HANDSHAKE_PART <= limit:
            return self._connections.make_room(address)
        # Its handshake then fails, and tells of it. Cancelling would leave the socket to the event loop.
        with suppress(OSError):
            next(iter(handshakes.values())).shutdown(socket.SHUT_RDWR)
        return True

    async def _shake_hands(self, accepted: socket.socket, address: str) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: Http1Protocol(self._connections),
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=self._handshake_seconds,
            )
        except OSError:  # includes ssl.SSLError and TimeoutError
            self._reject(accepted, "tls", address)

    def _reject(self, accepted: socket.socket, reason: str, address: str) -> None:
        self._connections.on_reject(reason, address, 0)
        accepted.close()


async def serve(app: Application, listening: socket.socket, **options: Any) -> None:
    """Serve an application on a socket until a signal ends it; the options are those of `Server`."""
    server = Server(app, **options)
    with shutdown_signals(server.shutdown_seconds) as end:
        await app.start()
        await server.start(listening)
        await end.wait()
        app.end_streams()
        server.stop_accepting()
        await server.stop()
        await app.stop()


def listen(host: str, port: int, *, reuse_port: bool = False) -> socket.socket:
    """Return a listening socket; with `reuse_port` (SO_REUSEPORT) several processes can share the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server(
        (host.strip("[]"), port), family=family, backlog=BACKLOG, reuse_port=reuse_port
    )
