"""Dialling: how a connection to one API is made, with TLS, through a proxy, in time.

What the two sides speak on it is agreed while it is made: HTTP/2 where it is offered and taken.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from .connection import Connection
from .proxy import HTTP_PORT, HTTPS_PORT, Proxy
from .transport import ACCEPT, ConnectFailed, ConnectionBroken

if TYPE_CHECKING:
    from .http2 import Http2Connection

_GOOD = b" 200"


class Dialler:
    """Makes connections to one API."""

    def __init__(
        self, url: str, seconds: float, most: int, proxy: Proxy | None, *, offers_http2: bool
    ) -> None:
        parts = urlsplit(url)
        self._is_secure = parts.scheme == "https"
        self.offers_http2 = offers_http2 and self._is_secure
        """Whether the next connection may become one of HTTP/2."""
        self._host = parts.hostname or ""
        self._port = parts.port or (HTTPS_PORT if self._is_secure else HTTP_PORT)
        self._seconds = seconds
        self._most = most
        self._proxy = proxy
        self._tls: ssl.SSLContext | None = None
        self._loop = asyncio.get_running_loop()
        self._authority = parts.netloc.rpartition("@")[2]
        self._constant = f"Host: {self._authority}\r\nAccept: {ACCEPT}\r\n"
        self.base = parts.path
        """What every target begins with."""
        if proxy is not None and not self._is_secure:  # it sees the requests, and must know whom they are for
            self.base = f"http://{self._authority}{parts.path}"
            if proxy.authorization is not None:
                self._constant += f"Proxy-Authorization: {proxy.authorization}\r\n"

    async def dial(self) -> Connection | Http2Connection:
        """Make a connection; raises `ConnectFailed`."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._made()
        except TimeoutError:
            raise ConnectFailed("connecting took too long") from None
        except ConnectionBroken as problem:
            raise ConnectFailed(str(problem)) from problem
        except ssl.SSLError as problem:
            raise ConnectFailed(f"its certificate or its TLS cannot be used ({problem.reason})") from problem
        except OSError as problem:
            raise ConnectFailed(problem.strerror or str(problem)) from problem

    async def _made(self) -> Connection | Http2Connection:
        tls = await self._context() if self._is_secure else None
        arrival = Arrival(self)
        if self._proxy is not None and tls is not None:
            await self._tunnel(self._proxy, tls, arrival)
        else:
            host, port = (self._proxy.host, self._proxy.port) if self._proxy else (self._host, self._port)
            await self._loop.create_connection(lambda: arrival, host, port, ssl=tls)
        made = arrival.made
        if made is None:
            raise ConnectFailed("the proxy closed the connection")
        if not isinstance(made, Connection):
            try:
                await made.ready
            except BaseException:
                made.close()
                raise
        return made

    async def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = await asyncio.to_thread(_context, offers_http2=self.offers_http2)
        return self._tls

    async def _tunnel(self, proxy: Proxy, tls: ssl.SSLContext, arrival: Arrival) -> None:
        """Connect through a proxy that passes bytes on without seeing what they say."""
        transport, greeting = await self._loop.create_connection(_Greeting, proxy.host, proxy.port)
        try:
            where = f"{self._host}:{self._port}"
            credentials = f"Proxy-Authorization: {proxy.authorization}\r\n" if proxy.authorization else ""
            transport.write(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n{credentials}\r\n".encode())
            _check_tunnel(await greeting.answer)
            secure = await self._loop.start_tls(transport, arrival, tls, server_hostname=self._host)
        except BaseException:
            transport.abort()
            raise
        if secure is not None:
            arrival.connection_made(secure)

    def agreed(self, protocol: str | None) -> Connection | Http2Connection:
        """Give a connection of the kind that was agreed on."""
        if protocol == "h2":
            from .http2 import Http2Connection

            return Http2Connection(self._authority, self._most)
        self.offers_http2 = False  # another one will not be of HTTP/2 either
        return Connection(self._constant)


class Arrival(asyncio.Protocol):
    """The beginning of a connection, which becomes one of the kind that both sides agreed on."""

    def __init__(self, dialler: Dialler) -> None:
        self._dialler = dialler
        self._early = b""
        """What came before there was anybody to take it; with HTTP/2 a server speaks first."""
        self._is_lost = False
        self.made: Connection | Http2Connection | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Become what was agreed on."""
        tls = transport.get_extra_info("ssl_object")
        self.made = self._dialler.agreed(None if tls is None else tls.selected_alpn_protocol())
        cast("asyncio.Transport", transport).set_protocol(self.made)
        self.made.connection_made(transport)
        if self._early:
            self.made.data_received(self._early)
        if self._is_lost:
            self.made.connection_lost(None)

    def data_received(self, data: bytes) -> None:
        """Keep what comes early."""
        self._early += data

    def connection_lost(self, exc: Exception | None) -> None:
        """Take in that it was over before it began."""
        self._is_lost = True


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


def _context(*, offers_http2: bool) -> ssl.SSLContext:
    """Make what TLS needs; reads files, and loads what HTTP/2 needs, so it is done beside the event loop."""
    context = ssl.create_default_context()
    if offers_http2:
        from . import http2  # noqa: F401 - so that it is there when it is needed

        context.set_alpn_protocols(["h2", "http/1.1"])
    else:
        context.set_alpn_protocols(["http/1.1"])
    return context


def _check_tunnel(answer: bytes) -> None:
    status = answer.partition(b"\r\n")[0]
    if _GOOD not in status:
        raise ConnectFailed(f"the proxy refused ({status.decode('latin-1')})")
