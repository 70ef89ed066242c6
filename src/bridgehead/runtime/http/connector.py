"""Connector: how a connection to one origin is made: TCP or a Unix socket, TLS, through a proxy, in time.

A plain `http://` origin behind a proxy is asked for by its whole URL; an `https://` one is reached through a
tunnel (CONNECT), so the proxy never sees what is said.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from .connection import Connection
from .proxy import HTTP_PORT, HTTPS_PORT, Proxy
from .response import ConnectFailed, ConnectionBroken

MAX_PROXY_REPLY = 16 * 1024
_HEAD_END = b"\r\n\r\n"


class Connector:
    """Makes connections to one origin."""

    def __init__(
        self,
        url: str,
        seconds: float,
        proxy: Proxy | None = None,
        unix_socket: Path | None = None,
        headers: Iterable[tuple[str, str]] = (),
    ) -> None:
        parts = urlsplit(url)
        self._is_secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (HTTPS_PORT if self._is_secure else HTTP_PORT)
        self._seconds = seconds
        self._proxy = proxy
        self._unix_socket = unix_socket
        self._tls: ssl.SSLContext | None = None
        self._loop = asyncio.get_running_loop()
        authority = parts.netloc.rpartition("@")[2]
        own = "".join(f"{name}: {value}\r\n" for name, value in headers)
        self._fixed_headers = f"Host: {authority}\r\n{own}"
        self.base = parts.path
        """What every target begins with."""
        if proxy is not None and not self._is_secure:  # it sees the requests, and must know whom they are for
            self.base = f"http://{authority}{parts.path}"
            self._fixed_headers += _credentials(proxy)

    async def connect(self) -> Connection:
        """Make a connection; raises `ConnectFailed`."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._connect()
        except TimeoutError:
            raise ConnectFailed("connecting took too long") from None
        except ConnectionBroken as problem:
            raise ConnectFailed(str(problem)) from problem
        except ssl.SSLError as problem:
            raise ConnectFailed(f"its certificate or its TLS cannot be used ({problem.reason})") from problem
        except OSError as problem:
            raise ConnectFailed(problem.strerror or str(problem)) from problem

    async def _connect(self) -> Connection:
        tls = await self._load_tls() if self._is_secure else None
        connection = Connection(self._fixed_headers)
        if self._unix_socket is not None:
            name = self._host if tls else None
            await self._loop.create_unix_connection(
                lambda: connection, str(self._unix_socket), ssl=tls, server_hostname=name
            )
        elif self._proxy is not None and tls is not None:
            await self._tunnel(self._proxy, tls, connection)
        else:
            host, port = (self._proxy.host, self._proxy.port) if self._proxy else (self._host, self._port)
            await self._loop.create_connection(lambda: connection, host, port, ssl=tls)
        return connection

    async def _load_tls(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = await asyncio.to_thread(_make_tls)
        return self._tls

    async def _tunnel(self, proxy: Proxy, tls: ssl.SSLContext, connection: Connection) -> None:
        transport, reply = await self._loop.create_connection(_ProxyReply, proxy.host, proxy.port)
        try:
            # An IPv6 address has colons of its own, so it stands in brackets (RFC 3986, 3.2.2).
            host = f"[{self._host}]" if ":" in self._host else self._host
            where = f"{host}:{self._port}"
            head = f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n{_credentials(proxy)}\r\n"
            transport.write(head.encode("latin-1"))
            _check_tunnel(await reply.head)  # within the time to connect
            secure = await self._loop.start_tls(transport, connection, tls, server_hostname=self._host)
        except BaseException:
            transport.abort()
            raise
        if secure is None:
            raise ConnectFailed("the proxy closed the connection")
        connection.connection_made(secure)


class _ProxyReply(asyncio.Protocol):
    """What a proxy says to a request for a tunnel."""

    def __init__(self) -> None:
        self.head: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._data = bytearray()

    def data_received(self, data: bytes) -> None:
        """Collect bytes until the head is there, but no more than a proxy has reason to send."""
        if self.head.done():
            return
        self._data += data
        end = self._data.find(_HEAD_END)
        if end < 0 and len(self._data) <= MAX_PROXY_REPLY:
            return
        if end < 0 or end > MAX_PROXY_REPLY:
            self.head.set_exception(
                ConnectFailed(f"the reply of the proxy has more than {MAX_PROXY_REPLY} bytes")
            )
        else:
            self.head.set_result(bytes(self._data[:end]))

    def connection_lost(self, exc: Exception | None) -> None:
        """Take in that the proxy is gone."""
        if not self.head.done():
            self.head.set_exception(ConnectFailed("the proxy closed the connection"))
            self.head.exception()  # who waits for it may be gone


def _make_tls() -> ssl.SSLContext:
    """Load the certificates; reads files, so it runs in a thread."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _credentials(proxy: Proxy) -> str:
    return "" if proxy.authorization is None else f"Proxy-Authorization: {proxy.authorization}\r\n"


def _check_tunnel(head: bytes) -> None:
    status_line = head.partition(b"\r\n")[0].decode("latin-1")
    version, _, rest = status_line.partition(" ")
    if not version.startswith("HTTP/1.") or not rest.startswith("2"):
        raise ConnectFailed(f"the proxy refused ({status_line})")
