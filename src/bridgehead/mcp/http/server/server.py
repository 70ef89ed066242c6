"""Server: calls a handler for every request that comes to a socket, and ends in good order.

It speaks HTTP/1.1, with or without TLS. What it serves starts before it and stops after it: whoever runs both
says so, as `serve` does.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Container
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...process import shutdown_signals
from .connections import Connections, OnReject, log_rejection
from .protocol import Http1Protocol
from .tls import TlsListener

if TYPE_CHECKING:
    import socket
    import ssl

    from ..message import Application, Handler

_TURNS = 4
"""Turns of a loop after which a client that was accepted has its connection; asyncio takes three."""
BACKLOG = 2048


class Server:
    """A handler on a port."""

    def __init__(
        self,
        handler: Handler,
        *,
        most_connections: int | None = None,
        most_per_address: int | None = None,
        unlimited: Container[str] = (),
        by_address: Counter[str] | None = None,
        keep_alive_seconds: float = 75.0,
        shutdown_seconds: float = 5.0,
        on_reject: OnReject = log_rejection,
    ) -> None:
        self._connections = Connections(
            handler,
            asyncio.get_running_loop(),
            most=most_connections,
            most_per_address=most_per_address,
            unlimited=unlimited,
            by_address=by_address,
            keep_alive_seconds=keep_alive_seconds,
            on_reject=on_reject,
        )
        self.shutdown_seconds = shutdown_seconds
        self._listener: asyncio.Server | TlsListener | None = None
        self._listening: socket.socket | None = None
        self._accepted_last: set[asyncio.Task[Any]] = set()
        self._closes_late = False
        """Whether the listener hears of nobody and is closed later: asyncio's server loses those clients when
        it is closed that it has accepted and not handed over yet."""

    async def start(self, listening: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        """Serve whoever comes to a socket that is bound already."""
        connections = self._connections
        if tls is not None:
            self._listener = TlsListener(connections, tls, listening)
            return
        self._listening = listening
        self._listener = await connections.loop.create_server(
            lambda: Http1Protocol(connections), sock=listening, backlog=BACKLOG
        )

    def stop_accepting(self) -> None:
        """Take no new connections; those that there are close behind the response to their last request."""
        self._connections.end()
        listening, self._listening = self._listening, None
        if listening is not None:
            with suppress(NotImplementedError):  # the loop of Windows, which needs no such care
                self._closes_late = self._connections.loop.remove_reader(listening)
            self._accept_rest(listening)
        if self._listener is not None and not self._closes_late:
            self._listener.close()

    def _accept_rest(self, listening: socket.socket) -> None:
        """Take the connections that the system has made for us already: closing would reset them."""
        connections, loop = self._connections, self._connections.loop
        with suppress(OSError):  # there are no more
            while True:
                accepted, _ = listening.accept()
                accepted.setblocking(False)  # noqa: FBT003 - its name says what it sets
                taking = loop.connect_accepted_socket(lambda: Http1Protocol(connections), accepted)
                task = loop.create_task(taking)
                self._accepted_last.add(task)
                task.add_done_callback(self._accepted_last.discard)

    async def stop(self) -> None:
        """Accept nothing new, finish what is under way, and close every connection."""
        self.stop_accepting()
        # What was just ended says so before its connection is closed, and a client that was just accepted
        # becomes one of our connections.
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        if self._listener is not None:
            self._listener.close()
        await self._connections.close(self.shutdown_seconds)


async def serve(app: Application, listening: socket.socket, **options: Any) -> None:
    """Serve an application on a socket, until a signal ends it; the options are those of `Server`."""
    server = Server(app, **options)
    with shutdown_signals(server.shutdown_seconds) as told:
        await app.start()
        await server.start(listening)
        await told.wait()
        app.end_streams()
        server.stop_accepting()
        await server.stop()
        await app.stop()


def listen(host: str, port: int, *, reuse_port: bool = False) -> socket.socket:
    """Return a socket that listens at an address; several may, where each says so (SO_REUSEPORT)."""
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server(
        (host.strip("[]"), port), family=family, backlog=BACKLOG, reuse_port=reuse_port
    )
