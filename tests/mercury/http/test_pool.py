"""HTTP/1.1 towards the API: connections kept, proxies, TLS, and what breaks."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridgehead.mercury.http.pool import Pool
from bridgehead.mercury.http.proxy import Proxy, proxy_for
from bridgehead.mercury.http.transport import ConnectFailed, ConnectionBroken
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.process import bridge_process
from tests.support.tcp import Serve, certified, relay, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
ASK = {"messages": [{"role": "user", "content": "Of wires, in 8 words"}]}


def address(port: int) -> str:
    return f"http://127.0.0.1:{port}/v1"


def saying(answer: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()

    return serve


async def fetched(url: str) -> bytes:
    pool = Pool(url, 1.0, 4)
    try:
        async with pool.request("GET", "/models", {}, b"", 5.0) as response:
            found = b"%d " % response.status
            while piece := await response.read(5.0):
                found += piece
            return found
    finally:
        await pool.close()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", b"200 hi"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n1\r\n!\r\n0\r\n\r\n", b"200 hi!"),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"200 until the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length: 1\r\n\r\nx", b"201 x"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"204 "),
    ],
    ids=["length", "chunked", "until closed", "informational", "empty"],
)
async def test_every_form_of_a_body_is_read(answer: bytes, expected: bytes) -> None:
    async with serving(saying(answer)) as port:
        assert await fetched(address(port)) == expected


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhi",
        b"SSH-2.0-OpenSSH\r\n",
    ],
    ids=["nothing", "half a head", "half a body", "another protocol"],
)
async def test_what_is_not_a_whole_answer_is_an_error(answer: bytes) -> None:
    async with serving(saying(answer)) as port:
        with pytest.raises(ConnectionBroken):
            await fetched(address(port))


async def test_where_nothing_listens_there_is_no_connection() -> None:
    with pytest.raises(ConnectFailed):
        await fetched("http://127.0.0.1:9/v1")


async def test_a_connection_is_used_again_unless_the_other_side_closed_it() -> None:
    served: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(writer)
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async with serving(serve) as port:
        pool = Pool(address(port), 1.0, 4)
        for _ in range(3):
            async with pool.request("GET", "/", {}, b"", 5.0) as response:
                await response.read(1.0)
        assert len(served) == 1
        served[0].close()
        await asyncio.sleep(0.05)
        async with pool.request("GET", "/", {}, b"", 5.0) as response:
            await response.read(1.0)
        await pool.close()
    assert len(served) == 2


async def test_no_more_connections_are_made_than_allowed(api: Simulator) -> None:
    api.faults.always(Fault(delay=0.05))
    pool = Pool(api.url, 1.0, 2)

    async def ask() -> int:
        headers = {"authorization": "Bearer some-key-of-mine"}
        body = b'{"model":"mercury-2","messages":[{"role":"user","content":"x"}]}'
        async with pool.request("POST", "/chat/completions", headers, body, 5.0) as response:
            while await response.read(1.0):
                pass
            return response.status

    assert await asyncio.gather(*(ask() for _ in range(6))) == [200] * 6
    await pool.close()
    assert api.requests.most_at_once("/chat/completions") == 2


async def test_a_reader_that_is_slow_makes_the_sender_wait() -> None:
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"2000\r\n" + b"x" * 0x2000 + b"\r\n")
            sent += 0x2000
            await writer.drain()

    async with serving(serve) as port:
        pool = Pool(address(port), 1.0, 4)
        async with pool.request("GET", "/", {}, b"", 5.0) as response:
            before = -1
            while before != sent:  # until it moves no more
                before = sent
                await asyncio.sleep(0.2)
            received = len(await response.read(1.0))
            while before == sent:
                received += len(await response.read(1.0))
        await pool.close()

    assert before < 16_000_000
    assert received > 0


async def test_a_read_waits_only_as_long_as_it_is_told() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx")
        await reader.read()

    async with serving(serve) as port:
        pool = Pool(address(port), 1.0, 4)
        async with pool.request("GET", "/", {}, b"", 5.0) as response:
            assert await response.read(1.0) == b"x"
            with pytest.raises(TimeoutError):
                await response.read(0.05)
        await pool.close()


# --- proxies -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "environment", "expected"),
    [
        ("https://api.example/v1", {}, None),
        ("https://api.example/v1", {"HTTPS_PROXY": "http://proxy:8080"}, Proxy("proxy", 8080)),
        ("https://api.example/v1", {"https_proxy": "proxy:8080"}, Proxy("proxy", 8080)),
        ("https://api.example/v1", {"HTTP_PROXY": "http://proxy:8080"}, None),
        ("http://api.example/v1", {"ALL_PROXY": "http://proxy"}, Proxy("proxy", 80)),
        ("http://api.example/v1", {"HTTP_PROXY": "p:1", "NO_PROXY": "example"}, None),
        ("http://api.example/v1", {"HTTP_PROXY": "p:1", "NO_PROXY": "other, .example"}, None),
        ("http://api.example/v1", {"HTTP_PROXY": "p:1", "NO_PROXY": "ample"}, Proxy("p", 1)),
        ("http://api.example/v1", {"HTTP_PROXY": "p:1", "no_proxy": "*"}, None),
        ("http://10.1.2.3/v1", {"HTTP_PROXY": "p:1", "NO_PROXY": "10.0.0.0/8"}, None),
        ("http://11.1.2.3/v1", {"HTTP_PROXY": "p:1", "NO_PROXY": "10.0.0.0/8"}, Proxy("p", 1)),
    ],
)
async def test_the_proxy_is_that_of_the_environment(
    url: str, environment: dict[str, str], expected: Proxy | None
) -> None:
    assert proxy_for(url, MercurySettings(environment)) == expected


async def test_credentials_of_a_proxy_are_sent_to_it() -> None:
    proxy = proxy_for("http://api/", MercurySettings({"HTTP_PROXY": "http://me:s%40fe@p:1"}))

    assert proxy is not None
    assert proxy.authorization == "Basic " + base64.b64encode(b"me:s@fe").decode()


async def test_requests_go_through_a_proxy(api: Simulator, tmp_path: Path) -> None:
    """A proxy for plain HTTP gets the whole URL; this one passes the bytes on to the simulated API."""
    lines: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lines.append(head.partition(b"\r\n")[0])
        first = head.replace(b"http://api.example", b"", 1)
        await relay(reader, writer, "127.0.0.1", api.port, first)

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

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await relay(reader, writer, "127.0.0.1", api.port)

    async with serving(serve, context) as port:
        yield f"https://localhost:{port}/v1", certificate


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
        await relay(reader, writer, host.decode(), int(port))

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
