"""TLS listener: accepts connections and shakes hands with each, bounded in time and number; then HTTP begins.

An event loop's own server could do this, but would say nothing of a client that fails at it or never begins.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .protocol import Http1Protocol

if TYPE_CHECKING:
    import socket
    import ssl

    from .connections import Connections

MOST_SECONDS = 10.0
_LEAST_SECONDS = 0.1
_NO_MORE_FILES_SECONDS = 0.5
"""How long nothing is accepted where the system can open no more."""


class TlsListener:
    """What accepts connections for a server that speaks https."""

    def __init__(self, connections: Connections, context: ssl.SSLContext, listening: socket.socket) -> None:
        self._connections = connections
        self._loop = connections.loop
        self._context = context
        self._listening = listening
        self._within = max(_LEAST_SECONDS, min(MOST_SECONDS, connections.keep_alive_seconds))
        listening.setblocking(False)  # noqa: FBT003 - its name says what it sets
        self._accepting = self._loop.create_task(self._accept())
        self._accepting.add_done_callback(lambda _: listening.close())  # and not while the loop watches it

    def close(self) -> None:
        """Accept nothing more."""
        self._accepting.cancel()

    async def _accept(self) -> None:
        while True:
            try:
                accepted, address = await self._accept_one()
            except OSError:
                await asyncio.sleep(_NO_MORE_FILES_SECONDS)
                continue
            if self._connections.is_full:
                self._reject(accepted, "connections", address[0])
                continue
            handshake = self._loop.create_task(self._shake_hands(accepted, address[0]))
            self._connections.handshakes.add(handshake)
            handshake.add_done_callback(self._connections.handshakes.discard)

    async def _accept_one(self) -> tuple[socket.socket, tuple[str, int]]:
        accepting = asyncio.ensure_future(self._loop.sock_accept(self._listening))
        try:
            await asyncio.wait([accepting])
        except asyncio.CancelledError:
            if not accepting.cancel() and accepting.exception() is None:  # a client came in the same turn
                accepting.result()[0].close()
            raise
        return accepting.result()

    async def _shake_hands(self, accepted: socket.socket, address: str) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: Http1Protocol(self._connections),
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=self._within,
            )
        except OSError:  # which errors of ssl and of time are too
            self._reject(accepted, "tls", address)

    def _reject(self, accepted: socket.socket, reason: str, address: str) -> None:
        self._connections.on_reject(reason, address, 0)
        accepted.close()
