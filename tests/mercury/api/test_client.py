"""The way to the API as the settings lay it: proxies, TLS, and what became of HTTP/2."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridgehead.mercury.api.client import read_retry_after
from bridgehead.mercury.simulator import Simulator
from tests.mercury.one_answer import answering
from tests.mercury.process import bridge_process, error_of
from tests.support.proxy import Proxy, proxied
from tests.support.tcp import certified, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
ASK = {"messages": [{"role": "user", "content": "Of wires, in 8 words"}]}


async def test_requests_go_through_a_proxy(api: Simulator, tmp_path: Path) -> None:
    """A proxy for plain HTTP gets the whole URL; this one passes the bytes on to the simulated API."""
    lines: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lines.append(head.partition(b"\r\n")[0])
        first = head.replace(b"http://api.example", b"", 1)
        await Proxy(api.port).carry(reader, writer, first)

    async with serving(serve) as port:
        settings = {"HTTP_PROXY": f"http://127.0.0.1:{port}", "MERCURY_MAX_RETRIES": "0"}
        async with bridge_process("http://api.example/v1", tmp_path, **settings) as client:
            result = await client.call(CHAT, ASK)

    assert "isError" not in result
    assert b"POST http://api.example/v1/chat/completions HTTP/1.1" in lines


@asynccontextmanager
async def secured(api: Simulator, folder: Path) -> AsyncIterator[tuple[str, Path]]:
    """Put TLS before the simulated API, with a certificate of its own; gives the URL and the certificate."""
    context, certificate = certified(folder)
    async with proxied(api.port, context) as proxy:
        yield f"https://localhost:{proxy.port}/v1", certificate


async def test_tls_is_used_and_certificates_are_checked(api: Simulator, tmp_path: Path) -> None:
    async with secured(api, tmp_path) as (url, certificate):
        async with bridge_process(url, tmp_path, SSL_CERT_FILE=str(certificate)) as client:
            result = await client.call(CHAT, ASK)
        async with bridge_process(url, tmp_path, MERCURY_MAX_RETRIES="0") as client:
            error = await client.error(CHAT, ASK)

    assert "isError" not in result
    assert error["code"] == "CONNECTION_FAILED"
    assert "certificate" in error["message"]


@pytest.mark.parametrize("is_refused", [False, True])
async def test_tls_goes_through_a_proxy_as_a_tunnel(
    api: Simulator, tmp_path: Path, *, is_refused: bool
) -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        heads.append(head)
        if is_refused:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return
        host, _, port = head.split(b" ")[1].partition(b":")
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await Proxy(int(port), host.decode()).carry(reader, writer)

    async with secured(api, tmp_path) as (url, certificate), serving(serve) as proxy_port:
        settings = {
            "SSL_CERT_FILE": str(certificate),
            "HTTPS_PROXY": f"http://me:safe@127.0.0.1:{proxy_port}",
            "MERCURY_MAX_RETRIES": "0",
        }
        async with bridge_process(url, tmp_path, **settings) as client:
            result = await client.call(CHAT, ASK)

    assert heads[0].startswith(b"CONNECT localhost:")
    assert b"Proxy-Authorization: Basic " + base64.b64encode(b"me:safe") in heads[0]
    assert ("isError" in result) == is_refused
    if is_refused:
        assert "407" in result["content"][0]["text"]


async def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    async with answering(307, b"", tmp_path) as client:
        error = error_of(await client.call(CHAT, ASK))

    assert "307" in error["message"]


@pytest.mark.parametrize(
    ("milliseconds", "value", "expected"),
    [
        ("1500", None, 1.5),
        (None, "2", 2.0),
        ("nonsense", "3", 3.0),
        ("-5", None, None),
        (None, "inf", None),
        (None, None, None),
        (None, "Thu, 01 Jan 1970 00:01:40 GMT", 40.0),
        (None, "Thu, 01 Jan 1970 00:00:10 GMT", 0.0),
    ],
)
async def test_when_to_try_again_is_read_in_every_form(
    milliseconds: str | None, value: str | None, expected: float | None
) -> None:
    assert read_retry_after(milliseconds, value, 60.0) == expected
