"""Pool: connections to one API, kept alive and used again.

Of HTTP/1.1 connections, which have one request at a time, the newest idle one is used first; a request that
is left before its answer is complete takes its connection with it, so the API notices at once. An HTTP/2
connection is shared as long as it has room. One that has been idle for too long is not used again.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING

from .connection import Connection
from .dialling import Dialler
from .proxy import Proxy
from .transport import NotProcessed, Outgoing

if TYPE_CHECKING:
    from .http2 import Http2Connection
    from .stream import Stream

IDLE_SECONDS = 55.0
"""Shorter than what servers commonly allow, so that they seldom close a connection under a request."""
MOST_IDLE = 64
MOST_SENDS = 3
"""How often a request goes out that a server says it did nothing with."""


class Pool:
    """The connections to one API."""

    def __init__(
        self, url: str, connect_seconds: float, most: int, proxy: Proxy | None = None, *, http2: bool = False
    ) -> None:
        self._dialler = Dialler(url, connect_seconds, most, proxy, offers_http2=http2)
        self._room = asyncio.Semaphore(most)
        self._idle: list[Connection] = []
        self._shared: list[Http2Connection] = []
        self._sharing = asyncio.Lock()
        self._loop = asyncio.get_running_loop()

    def request(
        self, method: str, path: str, headers: dict[str, str], body: bytes, seconds: float
    ) -> Exchange:
        """Make a request, which is sent when it is entered."""
        return Exchange(self, Outgoing(method, self._dialler.base + path, headers, body))

    async def close(self) -> None:
        """Let go of all connections."""
        while self._idle:
            self._idle.pop().close()
        while self._shared:
            self._shared.pop().close()

    # --- connections ---------------------------------------------------------------------------------------

    async def take(self) -> Connection | Stream:
        """Give something that one request can be sent on, waiting while too many are under way."""
        await self._room.acquire()
        try:
            if self._dialler.offers_http2:
                async with self._sharing:
                    return self._kept() or await self._dialled()
            return self._kept() or await self._dialled()
        except BaseException:
            self._room.release()
            raise

    def give_back(self, taken: Connection | Stream) -> None:
        """Keep a connection for the next request, or end it where that cannot be."""
        self._room.release()
        if isinstance(taken, Connection) and taken.is_reusable and len(self._idle) < MOST_IDLE:
            taken.idle_since = self._loop.time()
            self._idle.append(taken)
        else:
            taken.close()

    def _kept(self) -> Connection | Stream | None:
        oldest = self._loop.time() - IDLE_SECONDS
        if self._shared and (stream := self._stream(oldest)):
            return stream
        while self._idle:
            connection = self._idle.pop()
            if connection.is_alive and connection.idle_since > oldest:
                return connection
            connection.close()
        return None

    def _stream(self, oldest: float) -> Stream | None:
        """Begin a stream on a connection that has room, and forget those that are of no use any more."""
        from .stream import Stream

        for connection in self._shared.copy():
            if connection.is_ending:
                self._shared.remove(connection)  # it ends by itself with what is under way on it
            elif connection.is_idle and connection.silent_since < oldest:
                self._shared.remove(connection)
                connection.close()
            elif connection.has_room:
                return Stream(connection)
        return None

    async def _dialled(self) -> Connection | Stream:
        made = await self._dialler.dial()
        if isinstance(made, Connection):
            return made
        from .stream import Stream

        self._shared.append(made)
        return Stream(made)


class Exchange:
    """One request and its answer."""

    def __init__(self, pool: Pool, request: Outgoing) -> None:
        self._pool = pool
        self._request = request
        self._taken: Connection | Stream | None = None

    async def __aenter__(self) -> Connection | Stream:
        for _ in range(MOST_SENDS - 1):
            try:
                return await self._asked()
            except NotProcessed:
                continue
        return await self._asked()

    async def _asked(self) -> Connection | Stream:
        taken = self._taken = await self._pool.take()
        try:
            taken.send(self._request)
            await taken.head()
        except BaseException:
            self._leave()
            raise
        return taken

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        taken, self._taken = self._taken, None
        if taken is not None:
            self._pool.give_back(taken)
