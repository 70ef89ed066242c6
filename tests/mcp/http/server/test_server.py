"""Server: its end while clients are being served or just come, and that of its process."""

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridgehead.mcp.http import message
from bridgehead.mcp.http.server import Server
from bridgehead.mcp.process import LoopFactory, new_loop, socket_loop
from tests.support.http_client import PATIENCE, Headers, HttpClient, Response
from tests.support.http_server import JSON_POST, mirrored
from tests.support.messages import Json, call, encode, initialize, request, stateless, text
from tests.support.ports import free_port, wait_until_listening
from tests.support.stdio_peer import ROOT

LATE: Json = {"shutdown_seconds": 10 * PATIENCE}
"""Whoever ends in time has not waited for this."""


class Process:
    """A server process and a client of it."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process = process
        self.http = HttpClient(port)
        self.address = f"busy 1.0.0 at http://127.0.0.1:{port}/mcp\n"
        """All that it writes to standard error if nothing goes wrong."""

    async def post(self, message: Json, headers: Headers | None = None) -> Response:
        return await self.http.request("POST", "/mcp", {**JSON_POST, **(headers or {})}, encode(message))

    async def stateless(self, message: Json) -> Response:
        return await self.post(message, mirrored(message))

    async def session(self) -> Headers:
        response = await self.post(initialize())
        return {"Mcp-Session-Id": response.headers["mcp-session-id"]}

    async def exit_code(self) -> int:
        return await asyncio.to_thread(self.process.wait, PATIENCE)


@asynccontextmanager
async def running(limits: Json, errors: Path) -> AsyncIterator[Process]:
    """Start a server on a free port and wait until it listens; end it by its own id at the latest."""
    port = free_port()
    command = [sys.executable, "-m", "tests.support.http_bridge", str(port), encode(limits).decode()]
    with errors.open("wb") as stderr:
        process = subprocess.Popen(command, cwd=ROOT, stderr=stderr)
    one = Process(process, port)
    try:
        await asyncio.to_thread(wait_until_listening, port, process, errors)
        yield one
    finally:
        await one.http.close()
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_answers_the_calls_ends_the_streams_and_exits_with_zero(
    errors: Path, tmp_path: Path, how: signal.Signals
) -> None:
    file = tmp_path / "file"
    waiting = call("wait_for_file", {"file": str(file)}, progress=1)
    async with running(LATE, errors) as server:
        session = await server.session()
        in_session = await server.post(request("tools/call", waiting, 1), session)
        alone = await server.stateless(stateless("tools/call", waiting, 1))
        listening = await server.stateless(stateless("subscriptions/listen", {"notifications": {}}, 2))
        old = await server.http.request("GET", "/sse")
        general = await server.http.request("GET", headers={**session, "Accept": "text/event-stream"})
        for stream in (in_session, alone, listening, old):
            assert await stream.event() is not None
        server.process.send_signal(how)
        assert [message["id"] for message in await listening.messages()] == [2]
        assert await old.messages() == []
        assert await general.messages() == []
        file.touch()
        for stream in (in_session, alone):
            assert text((await stream.messages())[-1]) == "it is there"
        assert await server.exit_code() == 0
    assert errors.read_text(encoding="utf-8") == server.address


@pytest.mark.parametrize("tool", ["wait", "stuck", "stubborn"])
async def test_a_call_that_never_ends_does_not_keep_the_process(errors: Path, tool: str) -> None:
    async with running({"shutdown_seconds": 1.0}, errors) as server:
        response = await server.stateless(stateless("tools/call", call(tool, progress=1), 1))
        assert (await response.message())["method"] == "notifications/progress"
        server.process.send_signal(signal.SIGTERM)
        assert await server.exit_code() == 0


async def test_a_tool_that_blocks_the_loop_does_not_keep_the_process(errors: Path) -> None:
    async with running({"shutdown_seconds": 0.5}, errors) as server:
        response = await server.stateless(stateless("tools/call", call("block", progress=1)))
        assert (await response.message())["method"] == "notifications/progress"
        server.process.send_signal(signal.SIGTERM)
        assert await server.exit_code() == 0


async def test_an_idle_process_ends_at_once(errors: Path) -> None:
    async with running(LATE, errors) as server:
        await server.session()
        server.process.send_signal(signal.SIGTERM)
        assert await server.exit_code() == 0
    assert errors.read_text(encoding="utf-8") == server.address


async def test_a_tool_that_leaves_does_not_take_the_process_with_it(errors: Path) -> None:
    async with running({}, errors) as server:
        answer = await (await server.stateless(stateless("tools/call", call("leave")))).json()
        assert answer["result"]["isError"]
        again = await (await server.stateless(stateless("tools/call", call("echo", {"text": "here"})))).json()
        assert text(again) == "here"


async def answer(_request: message.Request) -> message.Response:
    return message.Response(200, b"")


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("loop", [new_loop, socket_loop])
def test_a_client_that_comes_while_the_server_stops_is_closed_and_not_forgotten(
    loop: LoopFactory, turns: int
) -> None:
    # A socket that is forgotten is a ResourceWarning, which fails a test. In each case the client is one turn
    # of the loop further when the server stops.
    async def stop_while_a_client_comes() -> bytes:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            server = Server(answer, shutdown_seconds=0.1)
            await server.start(listening)
            with socket.create_connection(listening.getsockname()) as client:
                for _ in range(turns):
                    await asyncio.sleep(0)
                server.stop_accepting()
                await server.stop()
                client.settimeout(PATIENCE)
                return client.recv(1)

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(stop_while_a_client_comes()) == b""
