"""A port that something else holds: the error says what kind of thing it is, and how to use another port."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection, serve

from tests.bitburner.playing import bridged

HTTP = b"HTTP/1.1 404 Not Found\r\nServer: teapot/1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
NAMELESS = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
OLD = b"HTTP/1.0 404 File not found\r\nServer: SimpleHTTP/0.6\r\n\r\n"
SMTP = b"220 mail.example ESMTP ready\r\n"


@asynccontextmanager
async def holding(answer: bytes | None) -> AsyncIterator[str]:
    """Something that holds a port and answers with these bytes, or not at all."""

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        if answer is not None:
            writer.write(answer)
            await writer.drain()
        else:
            await reader.read()
        writer.close()

    server = await asyncio.start_server(serve_one, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (HTTP, "a web server (teapot/1)"),
        (NAMELESS, "a web server"),
        (OLD, "a web server (SimpleHTTP/0.6)"),
        (SMTP, "does not speak HTTP"),
        (b"", "does not speak HTTP"),
        (None, "accepts connections and says nothing"),
    ],
)
async def test_the_error_says_what_holds_the_port(tmp_path: Path, answer: bytes | None, kind: str) -> None:
    async with holding(answer) as address, bridged(tmp_path, BITBURNER_LISTEN=address) as play:
        port = int(address.rpartition(":")[2])
        text, problem = await play.fails("list_files")
        _, status = await play.ok("connection_status")

    assert problem["code"] == "not_connected"
    assert f"Port {port} is taken by" in text
    assert kind in text
    assert f"BITBURNER_LISTEN=127.0.0.1:{port + 1}" in text
    assert f"port {port + 1} in the game" in text
    assert status["state"] == "blocked"


async def test_another_tool_for_the_game_is_recognized_as_a_websocket(tmp_path: Path) -> None:
    async def tool(socket: ServerConnection) -> None:
        await socket.wait_closed()

    async with serve(tool, "127.0.0.1", 0) as server:
        address = f"127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        async with bridged(tmp_path, BITBURNER_LISTEN=address) as play:
            text, _ = await play.fails("list_files")

    assert "a WebSocket server that is not a bridge, probably another tool for the game" in text


async def test_a_bridge_of_another_user_is_named_as_such(tmp_path: Path) -> None:
    async with (
        bridged(tmp_path / "one") as owner,
        bridged(tmp_path / "two", BITBURNER_LISTEN=owner.session.connection.address) as other,
    ):
        text, _ = await other.fails("list_files")

    assert "a bridge of another user" in text
