"""Pool: keeps the connections to one origin alive and reuses them, one exchange at a time on each.

The newest idle connection is used first, so surplus ones age and are closed. Leaving an exchange before its
response is complete closes its connection, so the peer notices at once.

A request is written once. If a reused connection closes without a byte of a response, the peer may have
closed it before the request arrived or after acting on it. So only GET and HEAD, which change nothing
(RFC 9110, 9.2.1), are then sent again, on a new connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Iterable
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

from msgspec import Struct

from .connection import ConnectFailed, Connection, ConnectionBroken, Request, Response
from .connector import Connector
from .proxy import Proxy

MAX_IDLE = 64
DEFAULT_CONNECTIONS = 256
CONNECT_SECONDS = 5.0
_SAFE = frozenset({"GET", "HEAD"})


class Pool:
    """The connections to one origin. Create it inside a running event loop."""

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
        # Counts connections in use; idle ones hold no slot.
        self._slots = asyncio.Semaphore(max_connections)
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
        """Prepare a request to `path` below the pool's URL; entering the exchange sends it.

        Entering waits for the head of the response, without a time limit of its own; leaving early ends the
        request. Raises `ConnectFailed` and `ConnectionBroken`; `Exchange.is_written` tells whether the peer
        may have received any of the request.
        """
        return Exchange(method, self._connector.base + path or "/", headers, body, pool=self)

    async def close(self) -> None:
        """Close idle connections now, and the others when they are given back."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()

    # --- what an exchange calls ----------------------------------------------------------------------------

    async def take(self, *, is_new: bool = False) -> Connection:
        """Return a connection for one request, waiting while too many are in use."""
        await self._slots.acquire()
        try:
            now = self._loop.time()
            while self._idle and not is_new:
                connection = self._idle.pop()
                if connection.is_alive and now - connection.idle_since < connection.idle_seconds:
                    return connection
                connection.close()
            return await self._connector.connect()
        except BaseException:
            self._slots.release()
            raise

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next request, or close it if it cannot be reused."""
        self._slots.release()
        if self._is_closed or not connection.is_reusable:
            connection.close()
            return
        connection.is_kept = True
        now = connection.idle_since = self._loop.time()
        self._idle.append(connection)
        # Closing one is enough: each call adds at most one.
        if len(self._idle) > MAX_IDLE or now - self._idle[0].idle_since >= self._idle[0].idle_seconds:
            self._idle.pop(0).close()


class Exchange(Request, kw_only=True):
    """A request on its way through a pool, entered for its response.

    `is_written` tells whether any byte of it may have been sent: False guarantees that the peer got nothing.
    Once True it stays True, however the exchange ends.
    """

    pool: Pool
    connection: Connection | None = None
    sending: asyncio.Task[None] | None = None
    """Sends a body in pieces."""

    async def __aenter__(self) -> Response:
        is_new = False
        while True:
            connection = self.connection = await self.pool.take(is_new=is_new)
            try:
                response = connection.send(self)
                if not isinstance(self.body, bytes):
                    self._send_pieces(connection, self.body)
                await response.wait_for_head()
            except BaseException as problem:
                self._leave()
                # On a new connection the failure is the peer's. On a reused one it may be a stale connection:
                # then a request goes out again if nothing was written, or if it is safe, unanswered and its
                # body is still there (pieces may be spent).
                is_repeatable = (
                    self.method in _SAFE and isinstance(self.body, bytes) and not connection.has_answered
                )
                if (
                    is_new
                    or not isinstance(problem, ConnectFailed | ConnectionBroken)
                    or not connection.is_kept
                    or (self.is_written and not is_repeatable)
                ):
                    raise
                is_new = True
            else:
                return response

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _send_pieces(self, connection: Connection, pieces: AsyncIterable[bytes]) -> None:
        """Send a body in a task of its own: the response may begin before the body has ended."""

        def finish(task: asyncio.Task[None]) -> None:
            problem = None if task.cancelled() else task.exception()
            if problem is not None:
                connection.abandon(f"the body of the request could not be sent ({problem})", problem)

        self.sending = asyncio.get_running_loop().create_task(connection.send_body(pieces))
        self.sending.add_done_callback(finish)

    def _leave(self) -> None:
        if self.sending is not None:
            self.sending.cancel()
        connection, self.connection = self.connection, None
        if connection is not None:
            self.pool.give_back(connection)


class Fetched(Struct, frozen=True):
    """The status and body of a response."""

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
    """GET one small document on a new connection, or POST a body and read the answer.

    Raises `ConnectFailed`, `ConnectionBroken`, `BodyTooLarge` and `TimeoutError`; redirects are not followed.
    """
    query = urlsplit(url).query
    pool = Pool(url, connect_seconds=seconds, max_connections=1, proxy=proxy)
    own = (*headers, ("Connection", "close"))
    async with asyncio.timeout(seconds):
        method = "GET" if body is None else "POST"
        async with pool.request(method, f"?{query}" if query else "", own, body or b"") as response:
            return Fetched(response.status, await response.read_body(max_bytes))
