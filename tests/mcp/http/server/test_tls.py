"""TLS: handshakes before HTTP, on both event loops; whoever fails at it or never begins is told of."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mcp.http.message import Request, Response
from bridgehead.mcp.http.server import Server
from bridgehead.mcp.process import socket_loop
from tests.support import waiting
from tests.support.certificates import certificate

PATIENCE = waiting.PATIENCE
Loop = Callable[[], asyncio.AbstractEventLoop] | None
both_loops = pytest.mark.parametrize("loop", [None, socket_loop], ids=["asyncio", "uvloop"])


def run(loop: Loop, behaviour: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(behaviour)


LARGE = b"z" * 3_000_000


async def mirror(request: Request) -> Response:
    """Answer with what was sent, and how it came."""
    body = b""
    while piece := await request.read():
        body += piece
    return Response(200, body, [(b"x-scheme", request.scheme.encode())])


class Secure:
    """A server of https, what it refused, and clients of it."""

    def __init__(self, port: int, cert: Path) -> None:
        self.port = port
        self.refused: list[tuple[str, str, int]] = []
        self._trusting = ssl.create_default_context(cafile=str(cert))

    async def dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=self._trusting, server_hostname="localhost"
        )

    async def wait_for_rejections(self, count: int) -> list[str]:
        async with asyncio.timeout(PATIENCE):
            while len(self.refused) < count:
                await asyncio.sleep(0.01)
        return [reason for reason, *_ in self.refused]


@asynccontextmanager
async def secure(folder: Path, **options: Any) -> AsyncIterator[Secure]:
    cert, key = certificate(folder)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = Secure(listener.getsockname()[1], cert)
        server = Server(mirror, on_reject=lambda *what: found.refused.append(what), **options)
        await server.start(listener, context)
        try:
            yield found
        finally:
            await server.stop()


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
) -> tuple[bytes, bytes]:
    writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    async with asyncio.timeout(PATIENCE):
        head = await reader.readuntil(b"\r\n\r\n")
        return head, await reader.readexactly(len(body))


async def answered(folder: Path) -> None:
    async with secure(folder) as server:
        reader, writer = await server.dial()
        for body in (b"first", LARGE, b"last"):
            head, answer = await exchange(reader, writer, body)
            assert (b"x-scheme: https" in head, answer == body) == (True, True)
        writer.close()
    assert server.refused == []


async def failing(folder: Path) -> None:
    async with secure(folder, keep_alive_seconds=2.0) as server:
        plain_reader, plain = await asyncio.open_connection("127.0.0.1", server.port)
        plain.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        silent_reader, silent = await asyncio.open_connection("127.0.0.1", server.port)
        gone_reader, gone = await asyncio.open_connection("127.0.0.1", server.port)
        gone.close()
        assert await server.wait_for_rejections(3) == ["tls"] * 3
        assert {(address, status) for _, address, status in server.refused} == {("127.0.0.1", 0)}
        async with asyncio.timeout(PATIENCE):
            for reader in (plain_reader, silent_reader, gone_reader):
                try:
                    await reader.read()
                except ConnectionError:
                    continue
        plain.close()
        silent.close()
        reader, writer = await server.dial()
        assert (await exchange(reader, writer, b"well"))[1] == b"well"
        writer.close()


async def bounded(folder: Path) -> None:
    async with secure(folder, max_connections=2) as server:
        left = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(3)]
        assert await server.wait_for_rejections(1) == ["tls"]
        assert await left[0][0].read() == b""  # the oldest made room
        for _, writer in left:
            writer.close()
        assert await server.wait_for_rejections(3) == ["tls", "tls", "tls"]
        reader, writer = await server.dial()
        assert (await exchange(reader, writer, b"room again"))[1] == b"room again"
        writer.close()


@both_loops
def test_requests_over_tls_are_answered(tmp_path: Path, loop: Loop) -> None:
    run(loop, answered(tmp_path))


@both_loops
def test_whoever_fails_at_tls_or_never_begins_is_told_of(tmp_path: Path, loop: Loop) -> None:
    run(loop, failing(tmp_path))


@both_loops
def test_there_are_only_so_many_handshakes_at_once(tmp_path: Path, loop: Loop) -> None:
    run(loop, bounded(tmp_path))
