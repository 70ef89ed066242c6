"""Connecting: over TCP, a Unix socket, TLS, and through proxies that behave and that do not."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridgehead.runtime.http import CertificateRefused, ConnectFailed, Proxy
from tests.runtime.http.peers import NOTHING, address, ask, ask_once, open_pool, repeating, saying
from tests.support.proxy import Proxy as TcpProxy
from tests.support.tcp import Serve, serving


async def test_where_nothing_listens_there_is_no_connection() -> None:
    with pytest.raises(ConnectFailed):
        await ask_once("http://127.0.0.1:9/v1")


async def test_a_unix_socket_is_reached_like_a_port(tmp_path: Path) -> None:
    place = tmp_path / "socket"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert b"Host: worker-1\r\n" in await reader.readuntil(b"\r\n\r\n")
        writer.write(NOTHING)

    async with serving(serve, unix_socket=place), open_pool("http://worker-1", unix_socket=place) as pool:
        assert await ask(pool) == b"200 "


async def test_a_plain_request_goes_to_the_proxy_with_its_whole_url() -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(NOTHING)

    async with serving(serve) as port:
        proxy = Proxy("127.0.0.1", port, "Basic some")
        async with open_pool("http://api.example/v1", proxy=proxy) as pool:
            assert await ask(pool) == b"200 "

    assert heads[0].startswith(b"GET http://api.example/v1/models HTTP/1.1\r\nHost: api.example\r\n")
    assert b"Proxy-Authorization: Basic some\r\n" in heads[0]


# --- TLS, and through a tunnel -----------------------------------------------------------------------------


@asynccontextmanager
async def tunnelled(reply: Serve, certificate: ssl.SSLContext) -> AsyncIterator[tuple[str, Proxy]]:
    """Run a server with TLS, and a proxy beside it; gives the server's URL and the proxy."""
    async with serving(saying(NOTHING), certificate) as port, serving(reply) as proxy_port:
        yield f"https://localhost:{port}/v1", Proxy("127.0.0.1", proxy_port, "Basic some")


async def test_a_certificate_that_nobody_vouches_for_is_refused(tls: tuple[ssl.SSLContext, Path]) -> None:
    async with serving(saying(NOTHING), tls[0]) as port:
        with pytest.raises(ConnectFailed, match="certificate"):
            await ask_once(f"https://localhost:{port}/v1")


async def test_a_certificate_for_another_name_says_so_and_one_of_unknown_origin_names_the_setting(
    tls: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(saying(NOTHING), tls[0]) as port:
        with pytest.raises(CertificateRefused) as unknown:
            await ask_once(f"https://localhost:{port}/v1")
        monkeypatch.setenv("SSL_CERT_FILE", str(tls[1]))
        with pytest.raises(CertificateRefused) as other_name:
            await ask_once(f"https://127.0.0.1:{port}/v1")

    assert "self-signed" in str(unknown.value)
    assert "SSL_CERT_FILE" in str(unknown.value)
    assert "for another name" in str(other_name.value)
    assert "SSL_CERT_FILE" not in str(other_name.value)


async def test_tls_goes_through_a_proxy_as_a_tunnel(certificate: ssl.SSLContext) -> None:
    heads: list[bytes] = []

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        heads.append(head)
        host, _, port = head.split(b" ")[1].partition(b":")
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await TcpProxy(int(port), host.decode()).carry(reader, writer)

    async with tunnelled(reply, certificate) as (url, proxy), open_pool(url, proxy=proxy) as pool:
        assert await ask(pool) == b"200 "

    assert heads[0].startswith(b"CONNECT localhost:")
    assert b"Proxy-Authorization: Basic some\r\n" in heads[0]


async def test_an_ipv6_address_stands_in_brackets_when_a_proxy_is_asked_for_it(
    certificate: ssl.SSLContext,
) -> None:
    heads: list[bytes] = []

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")

    async with (
        serving(reply) as port,
        open_pool("https://[2001:db8::1]:8443/v1", proxy=Proxy("127.0.0.1", port)) as pool,
    ):
        with pytest.raises(ConnectFailed, match="403"):
            await ask(pool)

    assert heads[0].startswith(b"CONNECT [2001:db8::1]:8443 HTTP/1.1\r\nHost: [2001:db8::1]:8443\r\n")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "407"),
        (b"HTTP/1.1 500 about 200 things\r\n\r\n", "500"),
        (b"SSH-2.0-OpenSSH 200\r\n\r\n", "refused"),
        (b"HTTP/1.1 200", "closed the connection"),
    ],
)
async def test_a_proxy_that_refuses_is_quoted(
    said: bytes, expected: str, certificate: ssl.SSLContext
) -> None:
    async with tunnelled(saying(said), certificate) as (url, proxy), open_pool(url, proxy=proxy) as pool:
        with pytest.raises(ConnectFailed, match=expected):
            await ask(pool)


async def test_a_proxy_cannot_talk_for_ever(certificate: ssl.SSLContext) -> None:
    reply, sent = repeating(b"x-a: y\r\n" * 512, b"HTTP/1.1 200 OK\r\n")
    async with (
        tunnelled(reply, certificate) as (url, proxy),
        open_pool(url, proxy=proxy, connect_seconds=30.0) as pool,
    ):
        with pytest.raises(ConnectFailed, match="the reply of the proxy has more than"):
            await ask(pool)

    assert sent() < 16_000_000


async def test_a_proxy_that_says_nothing_is_left_in_time(certificate: ssl.SSLContext) -> None:
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with (
        tunnelled(reply, certificate) as (url, proxy),
        open_pool(url, proxy=proxy, connect_seconds=0.3) as pool,
    ):
        with pytest.raises(ConnectFailed, match="too long"):
            await ask(pool)


async def test_credentials_of_a_url_are_not_part_of_its_host() -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(NOTHING)

    async with serving(serve) as port:
        await ask_once(address(port).replace("//", "//me:safe@"))

    assert base64.b64encode(b"me:safe") not in heads[0]
    assert f"Host: 127.0.0.1:{port}\r\n".encode() in heads[0]
