"""Pool: HTTP/1.1 connections to one API, kept alive and used again; the default transport.

The newest idle connection is used first, one that has been idle for too long is not used again. A request
that is left before its answer is complete takes its connection with it, so the API notices at once.
"""

from __future__ import annotations

import asyncio
import ssl
from types import TracebackType
from urllib.parse import urlsplit

from .connection import Connection
from .proxy import HTTP_PORT, HTTPS_PORT, Proxy
from .transport import ConnectFailed

IDLE_SECONDS = 55.0
"""Shorter than what servers commonly allow, so that they seldom close a connection under a request."""
MOST_IDLE = 64
_GOOD = b" 200"


class Pool:
    """The connections to one API."""

    def __init__(self, url: str, connect_seconds: float, most: int, proxy: Proxy | None = None) -> None:
        parts = urlsplit(url)
        self._is_secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (HTTPS_PORT if self._is_secure else HTTP_PORT)
        self._base = parts.path
        self._proxy = proxy
        self._connect_seconds = connect_seconds
        self._room = asyncio.Semaphore(most)
        self._idle: list[Connection] = []
        self._tls: ssl.SSLContext | None = None
        self._loop = asyncio.get_running_loop()
        netloc = parts.netloc.rpartition("@")[2]
        through = proxy is not None and not self._is_secure
        self._target = f"http://{netloc}{self._base}" if through else self._base
        self._constant = f"Host: {netloc}\r\nAccept: application/json, text/event-stream\r\n"
        if through and proxy is not None and proxy.authorization is not None:
            self._constant += f"Proxy-Authorization: {proxy.authorization}\r\n"

    def request(
        self, method: str, path: str, headers: dict[str, str], body: bytes, seconds: float
    ) -> Exchange:
        """Make a request, which is sent when it is entered."""
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        head = f"{method} {self._target}{path} HTTP/1.1\r\n{self._constant}{lines}"
        if body:
            head += f"Content-Length: {len(body)}\r\n"
        return Exchange(self, f"{head}\r\n".encode("latin-1") + body)

    async def close(self) -> None:
        """Let go of all connections."""
        while self._idle:
            self._idle.pop().close()

    # --- connections ---------------------------------------------------------------------------------------

    async def take(self) -> Connection:
        """Give a connection that nobody else uses, waiting while too many are in use."""
        await self._room.acquire()
        try:
            oldest = self._loop.time() - IDLE_SECONDS
            while self._idle:
                connection = self._idle.pop()
                if connection.is_alive and connection.idle_since > oldest:
                    return connection
                connection.close()
            return await self._dialled()
        except BaseException:
            self._room.release()
            raise

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next request, or end it where that cannot be."""
        self._room.release()
        if connection.is_reusable and len(self._idle) < MOST_IDLE:
            connection.idle_since = self._loop.time()
            self._idle.append(connection)
        else:
            connection.close()

    async def _dialled(self) -> Connection:
        try:
            async with asyncio.timeout(self._connect_seconds):
                return await self._dial()
        except TimeoutError:
            raise ConnectFailed("connecting took too long") from None
        except ssl.SSLError as problem:
            raise ConnectFailed(f"its certificate or its TLS cannot be used ({problem.reason})") from problem
        except OSError as problem:
            raise ConnectFailed(problem.strerror or str(problem)) from problem

    async def _dial(self) -> Connection:
        if self._proxy is not None and self._is_secure:
            return await self._tunnelled(self._proxy)
        host, port = (self._proxy.host, self._proxy.port) if self._proxy else (self._host, self._port)
        tls = await self._context() if self._is_secure else None
        _, connection = await self._loop.create_connection(Connection, host, port, ssl=tls)
        return connection

    async def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = await asyncio.to_thread(ssl.create_default_context)  # reads files
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls

    async def _tunnelled(self, proxy: Proxy) -> Connection:
        """Connect through a proxy that passes bytes on without seeing what they say."""
        tls = await self._context()
        transport, greeting = await self._loop.create_connection(_Greeting, proxy.host, proxy.port)
        try:
            where = f"{self._host}:{self._port}"
            credentials = f"Proxy-Authorization: {proxy.authorization}\r\n" if proxy.authorization else ""
            transport.write(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n{credentials}\r\n".encode())
            _check_tunnel(await greeting.answer)
            connection = Connection()
            secure = await self._loop.start_tls(transport, connection, tls, server_hostname=self._host)
        except BaseException:
            transport.abort()
            raise
        if secure is None:
            raise ConnectFailed("the proxy closed the connection")
        connection.connection_made(secure)
        return connection


class _Greeting(asyncio.Protocol):
    """What a proxy says to a request for a tunnel."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._said = b""

    def data_received(self, data: bytes) -> None:
        """Take bytes in, until the head of the answer is there."""
        self._said += data
        if b"\r\n\r\n" in self._said and not self.answer.done():
            self.answer.set_result(self._said)

    def connection_lost(self, exc: Exception | None) -> None:
        """Take in that the proxy is gone."""
        if not self.answer.done():
            self.answer.set_exception(ConnectFailed("the proxy closed the connection"))


def _check_tunnel(answer: bytes) -> None:
    status = answer.partition(b"\r\n")[0]
    if _GOOD not in status:
        raise ConnectFailed(f"the proxy refused ({status.decode('latin-1')})")


class Exchange:
    """One request and its answer."""

    def __init__(self, pool: Pool, request: bytes) -> None:
        self._pool = pool
        self._request = request
        self._connection: Connection | None = None

    async def __aenter__(self) -> Connection:
        connection = self._connection = await self._pool.take()
        try:
            connection.send(self._request)
            await connection.head()
        except BaseException:
            self._leave()
            raise
        return connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.give_back(connection)
