"""Listener: a socket that takes connections, and can stop to between any two of them.

`asyncio.Server` loses a connection that it is about to take when it is closed. Here, one that came too late
is cut like the others.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

BACKLOG = 1024
_AT_ONCE = 64
"""Connections that are taken in one turn of the loop."""


class Listener:
    """Takes connections on a port of this machine until it is closed; needs a loop that can watch sockets."""

    def __init__(self, host: str, port: int, make: Callable[[], asyncio.Protocol]) -> None:
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._socket = socket.create_server((host, port), backlog=BACKLOG)
        self._socket.settimeout(0)
        self._taking: set[asyncio.Task[None]] = set()
        self.port: int = self._socket.getsockname()[1]
        self._loop.add_reader(self._socket.fileno(), self._take_some)

    def close(self) -> None:
        """Take no more, from now on."""
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()

    async def closed(self) -> None:
        """Wait until those are cut too that came at the last moment."""
        await asyncio.gather(*self._taking)

    def _take_some(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                taken, _ = self._socket.accept()
            except OSError:  # nobody is waiting any more, or whoever was has gone
                return
            taken.settimeout(0)
            task = self._loop.create_task(self._connect(taken))
            self._taking.add(task)
            task.add_done_callback(self._taking.discard)

    async def _connect(self, taken: socket.socket) -> None:
        if self._has_closed():
            taken.close()
            return
        transport, _ = await self._loop.connect_accepted_socket(self._make, taken)
        if self._has_closed():
            transport.abort()

    def _has_closed(self) -> bool:
        return self._socket.fileno() < 0
