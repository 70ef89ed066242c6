"""Pool: the connections to one origin, kept alive and used again, and one exchange on one of them.

The newest idle connection is used first, so the others can grow old and go. An exchange that is left before
its response is complete takes its connection with it: the other side notices at once.

A request is written once. When a kept connection closes without a byte of a response, nobody can tell whether
the other side closed it before the request came or acted on the request. So only GET and HEAD, which change
nothing (RFC 9110, 9.2.1), are then written once more, on a new connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Iterable
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

from msgspec import Struct

from .connection import Connection, Request
from .connector import Connector
from .proxy import Proxy
from .response import ConnectFailed, ConnectionBroken, Response

IDLE_SECONDS = 55.0
"""Shorter than what servers commonly allow, so that they seldom close a connection under a request."""
MAX_IDLE = 64
DEFAULT_CONNECTIONS = 256
CONNECT_SECONDS = 5.0
_SAFE = frozenset({"GET", "HEAD"})


class Pool:
    """Connections to one origin. Made inside a running event loop."""

    def __init__(
        self,
        url: str,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        max_connections: int = DEFAULT_CONNECTIONS,
        proxy: Proxy | None = None,
        unix_socket: Path | None = None,
        headers: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._connector = Connector(url, connect_seconds, proxy, unix_socket, headers)
        self._room = asyncio.Semaphore(max_connections)
        self._idle: list[Connection] = []
        self._loop = asyncio.get_running_loop()
        self._is_closed = False

    def request(
        self,
        method: str,
        path: str,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes | AsyncIterable[bytes] = b"",
    ) -> Exchange:
        """Prepare a request, which is sent when it is entered; the path is added to the URL's.

        Entering waits for the head of the response, for as long as the caller's own time limit allows;
        leaving early ends the request. Raises `ConnectFailed` and `ConnectionBroken`; `Exchange.is_written`
        tells whether the other side may have got something of the request.
        """
        return Exchange(self, Request(method, self._connector.base + path or "/", headers, body))

    async def close(self) -> None:
        """Close idle connections now, and those in use when they are given back."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()

    # --- what an exchange calls ----------------------------------------------------------------------------

    async def take(self, *, is_new: bool = False) -> Connection:
        """Return a connection for one request, waiting while too many are in use."""
        await self._room.acquire()
        try:
            return (None if is_new else self._take_idle()) or await self._connector.connect()
        except BaseException:
            self._room.release()
            raise

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next request, or end it where that cannot be."""
        self._room.release()
        if self._is_closed or not connection.is_reusable:
            connection.close()
            return
        connection.is_kept = True
        now = connection.idle_since = self._loop.time()
        self._idle.append(connection)
        if len(self._idle) > MAX_IDLE or self._idle[0].idle_since < now - IDLE_SECONDS:
            self._idle.pop(0).close()

    def _take_idle(self) -> Connection | None:
        oldest = self._loop.time() - IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.is_alive and connection.idle_since > oldest:
                return connection
            connection.close()
        return None


class Exchange:
    """One request and its response."""

    def __init__(self, pool: Pool, request: Request) -> None:
        self._pool = pool
        self._request = request
        self._connection: Connection | None = None
        self._sending: asyncio.Task[None] | None = None

    @property
    def is_written(self) -> bool:
        """Whether anything of the request was written; once True it stays so, however the exchange ends.

        False: the other side certainly got nothing of the request.
        """
        return self._request.is_written

    async def __aenter__(self) -> Response:
        connection = await self._pool.take()
        try:
            return await self._begin(connection)
        except (ConnectFailed, ConnectionBroken):
            if not self._may_use_another(connection):
                raise
        return await self._begin(await self._pool.take(is_new=True))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _may_use_another(self, failed: Connection) -> bool:
        """Tell whether the request may go out on a new connection, after a kept one failed."""
        request = self._request
        if not failed.is_kept:
            return False
        if not request.is_written:
            return True
        is_repeatable = request.method in _SAFE and isinstance(request.body, bytes)  # pieces may be spent
        return is_repeatable and not failed.has_answered

    async def _begin(self, connection: Connection) -> Response:
        self._connection = connection
        try:
            response = connection.send(self._request)
            if not isinstance(self._request.body, bytes):
                self._send_body(connection, self._request.body)
            await response.wait_for_head()
        except BaseException:
            self._leave()
            raise
        return response

    def _send_body(self, connection: Connection, pieces: AsyncIterable[bytes]) -> None:
        """Send the body beside the response, which may begin before the body has ended."""

        def finish(task: asyncio.Task[None]) -> None:
            problem = None if task.cancelled() else task.exception()
            if problem is not None:
                connection.abandon(f"the body of the request could not be sent ({problem})", problem)

        self._sending = asyncio.get_running_loop().create_task(connection.send_body(pieces))
        self._sending.add_done_callback(finish)

    def _leave(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.give_back(connection)


class Fetched(Struct, frozen=True):
    """A small document and the status it came with."""

    status: int
    body: bytes


async def fetch(
    url: str,
    *,
    seconds: float,
    max_bytes: int,
    headers: Iterable[tuple[str, str]] = (),
    proxy: Proxy | None = None,
    body: bytes | None = None,
) -> Fetched:
    """GET one small document on a connection of its own, or POST a body and read what is answered.

    Raises `ConnectFailed`, `ConnectionBroken`, `BodyTooLarge` and `TimeoutError`; redirects are not followed.
    """
    query = urlsplit(url).query
    pool = Pool(url, connect_seconds=seconds, max_connections=1, proxy=proxy)
    own = (*headers, ("Connection", "close"))
    async with asyncio.timeout(seconds):
        method = "GET" if body is None else "POST"
        async with pool.request(method, f"?{query}" if query else "", own, body or b"") as response:
            return Fetched(response.status, await response.read_body(max_bytes))
