"""Connector: opens connections to one origin over TCP or a Unix socket, with TLS, directly or by proxy.

Behind a proxy, requests to an `http://` origin carry the whole URL; an `https://` origin is reached through a
tunnel (CONNECT), so the proxy sees only ciphertext.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from .connection import CertificateRefused, ConnectFailed, Connection, ConnectionBroken
from .proxy import HTTP_PORT, HTTPS_PORT, Proxy

MAX_PROXY_REPLY = 16 * 1024
_HEAD_END = b"\r\n\r\n"


class Connector:
    """Opens connections to one origin."""

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
        """Prefix of every request target."""
        if proxy is not None and not self._is_secure:
            # The proxy reads each request and takes the origin from its target (RFC 9112, 3.2.2).
            self.base = f"http://{authority}{parts.path}"
            self._fixed_headers += _credentials(proxy)

    async def connect(self) -> Connection:
        """Open a connection; raises `ConnectFailed`."""
        try:
            async with asyncio.timeout(self._seconds):
                tls = None
                if self._is_secure:
                    # In a thread, because it reads the certificates of the system; kept for the next one.
                    tls = self._tls = self._tls or await asyncio.to_thread(_make_tls)
                connection = Connection(self._fixed_headers)
                if self._unix_socket is not None:
                    name = self._host if tls else None
                    await self._loop.create_unix_connection(
                        lambda: connection, str(self._unix_socket), ssl=tls, server_hostname=name
                    )
                elif self._proxy is not None and tls is not None:
                    await self._tunnel(self._proxy, tls, connection)
                else:
                    host, port = self._host, self._port
                    if self._proxy is not None:
                        host, port = self._proxy.host, self._proxy.port
                    await self._loop.create_connection(lambda: connection, host, port, ssl=tls)
                return connection
        except TimeoutError:
            raise ConnectFailed("connecting took too long") from None
        except ConnectionBroken as problem:
            raise ConnectFailed(str(problem)) from problem
        except ssl.SSLCertVerificationError as problem:
            raise CertificateRefused(_explain(problem)) from problem
        except ssl.SSLError as problem:
            raise ConnectFailed(f"its TLS cannot be used ({problem.reason})") from problem
        except ConnectionRefusedError as problem:  # asyncio says "Connect call failed ('127.0.0.1', 80)"
            raise ConnectFailed("the connection was refused") from problem
        except OSError as problem:
            raise ConnectFailed(problem.strerror or str(problem)) from problem

    async def _tunnel(self, proxy: Proxy, tls: ssl.SSLContext, connection: Connection) -> None:
        transport, reply = await self._loop.create_connection(_ProxyReply, proxy.host, proxy.port)
        try:
            # An IPv6 address has colons of its own, so it stands in brackets (RFC 3986, 3.2.2).
            host = f"[{self._host}]" if ":" in self._host else self._host
            authority = f"{host}:{self._port}"
            head = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{_credentials(proxy)}\r\n"
            transport.write(head.encode("latin-1"))
            status_line = (await reply.head).partition(b"\r\n")[0].decode("latin-1")
            version, _, rest = status_line.partition(" ")
            # Any 2xx opens the tunnel (RFC 9110, 9.3.6).
            if not version.startswith("HTTP/1.") or not rest.startswith("2"):
                raise ConnectFailed(f"the proxy refused ({status_line})")  # noqa: TRY301
            secure = await self._loop.start_tls(transport, connection, tls, server_hostname=self._host)
        except BaseException:
            transport.abort()
            raise
        # `start_tls` returns None if the connection closed during the handshake.
        if secure is None:
            raise ConnectFailed("the proxy closed the connection")
        connection.connection_made(secure)


class _ProxyReply(asyncio.Protocol):
    """Reads the head of a proxy's reply to CONNECT."""

    def __init__(self) -> None:
        self.head: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._data = bytearray()

    def data_received(self, data: bytes) -> None:
        """Collect bytes until the head is complete, at most `MAX_PROXY_REPLY`."""
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
        """Fail the wait for the head."""
        if not self.head.done():
            self.head.set_exception(ConnectFailed("the proxy closed the connection"))
            self.head.exception()  # marks it as retrieved: the waiter may have been cancelled


def _make_tls() -> ssl.SSLContext:
    """Make a context with the system's certificates; reads files, so run it in a thread."""
    context = ssl.create_default_context()
    # This client supports only HTTP/1.1; a server must not choose HTTP/2.
    context.set_alpn_protocols(["http/1.1"])
    return context


_HOSTNAME_MISMATCH, _IP_MISMATCH, _EXPIRED = 62, 64, 10
"""Codes of OpenSSL (`X509_V_ERR_…`)."""


def _explain(problem: ssl.SSLCertVerificationError) -> str:
    why = problem.verify_message.rstrip(".")
    if problem.verify_code in (_HOSTNAME_MISMATCH, _IP_MISMATCH):
        return f"its certificate is for another name ({why}); use the name that the certificate has"
    if problem.verify_code == _EXPIRED:
        return f"its certificate cannot be used ({why}); it has to be renewed there"
    return (
        f"its certificate is not signed by an authority that this machine trusts ({why}); if it is your own, "
        "let SSL_CERT_FILE name a file with the certificate of its authority"
    )


def _credentials(proxy: Proxy) -> str:
    return "" if proxy.authorization is None else f"Proxy-Authorization: {proxy.authorization}\r\n"
