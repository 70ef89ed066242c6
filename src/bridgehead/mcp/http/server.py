"""Server: serves an application on a port until the process is told to end, and ends in good order.

At SIGTERM or SIGINT nothing new is accepted, streams that would never end are ended, calls are answered
within the limit, and the process exits with 0. It takes any ASGI application and speaks HTTP/1.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..process import run_to_end, socket_loop, told_to_end
from .application import Application
from .asgi_lifespan import AsgiLifespan
from .connections import AsgiApplication, Connections, Refusing, note
from .handshakes import Handshakes
from .protocol import Http1Protocol

if TYPE_CHECKING:
    import socket
    import ssl

BACKLOG = 2048


class Server:
    """An application on a port."""

    def __init__(
        self,
        app: AsgiApplication,
        *,
        most_connections: int | None = None,
        keep_alive_seconds: float = 75.0,
        shutdown_seconds: float = 5.0,
        end_streams: Callable[[], None] = lambda: None,
        refused: Refusing = note,
    ) -> None:
        self._connections = Connections(
            app,
            asyncio.get_running_loop(),
            most=most_connections,
            keep_alive_seconds=keep_alive_seconds,
            refused=refused,
        )
        self._lifespan = AsgiLifespan(app, self._connections.state)
        self.shutdown_seconds = shutdown_seconds
        self._end_streams = end_streams
        """Ends the responses that would never end by themselves."""
        self._listener: asyncio.Server | Handshakes | None = None

    async def start(self, listening: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        """Start the application, and then serve whoever comes to a socket that is bound already."""
        await self._lifespan.start()
        connections = self._connections
        if tls is not None:
            self._listener = Handshakes(connections, tls, listening)
            return
        self._listener = await connections.loop.create_server(
            lambda: Http1Protocol(connections), sock=listening, backlog=BACKLOG
        )

    async def stop(self) -> None:
        """Accept nothing new, finish what is under way, and end the application."""
        if self._listener is not None:
            self._listener.close()
        self._end_streams()
        await asyncio.sleep(0)  # what was just ended says so before its connection is closed
        await self._connections.close(self.shutdown_seconds)
        await self._lifespan.stop(self.shutdown_seconds)


def run(app: Application, host: str = "127.0.0.1", port: int = 3000) -> None:
    """Serve the application until the process is told to end."""
    within = app.dispatcher.limits.shutdown_seconds
    serving = serve(app, bound(host, port), shutdown_seconds=within, end_streams=app.end_streams)
    run_to_end(serving, socket_loop, within)


async def serve(app: AsgiApplication, listening: socket.socket, **options: Any) -> None:
    """Serve any application on a socket, until a signal ends it; the options are those of `Server`."""
    server = Server(app, **options)
    with told_to_end(server.shutdown_seconds) as told:
        await server.start(listening)
        await told.wait()
        await server.stop()


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address."""
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host.strip("[]"), port), family=family, backlog=BACKLOG)
