"""ASGI factory: the whole host on servers that nobody here wrote, as processes of their own."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.host.conftest import Dial
from tests.host.test_command import post
from tests.support.http_client import Headers, HttpClient
from tests.support.http_server import mirrored
from tests.support.messages import call, initialize, request, stateless, text
from tests.support.ports import free_port
from tests.support.stdio_peer import ROOT
from tests.support.waiting import PATIENCE, until

FACTORY = "bridgehead.host.asgi:create_app"
UVICORN = ("uvicorn", "--factory", FACTORY, "--log-level", "warning", "--port")
GRANIAN = ("granian", "--interface", "asgi", "--factory", FACTORY, "--log-level", "warning", "--port")
PUZZLE = "Count the gulls."


@contextmanager
def running(folder: Path, *command: str) -> Iterator[int]:
    """Run a server with the puzzles of a folder, and end it by its own id."""
    (folder / "instructions").mkdir()
    (folder / "instructions" / "Day01_phase1.md").write_text(PUZZLE)
    port = free_port()
    ours = {"BRIDGEHEAD_STATE_DIR": str(folder), "BRIDGEHEAD_BRIDGES": "aoc", "AOC_DATA_DIR": str(folder)}
    process = subprocess.Popen(
        [sys.executable, "-m", *command, str(port)], cwd=ROOT, env={**os.environ, **ours}
    )
    try:
        yield port
    finally:
        process.terminate()
        process.wait(PATIENCE)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("command", [UVICORN, GRANIAN], ids=["uvicorn", "granian"])
async def test_the_host_runs_on_another_server(tmp_path: Path, dial: Dial, command: tuple[str, ...]) -> None:
    with running(tmp_path, *command) as port:
        await until(lambda: listens(port))
        http: HttpClient = dial(port)
        assert (await http.request("GET", "/healthz")).status == 200

        asked = stateless("tools/call", call("fetch_instruction", {"day": 1}))
        assert PUZZLE in text(await (await post(http, asked, mirrored(asked))).json())

        hello = await post(http, initialize())
        session: Headers = {"Mcp-Session-Id": hello.headers["mcp-session-id"]}
        assert "result" in await (await post(http, request("tools/list"), session)).json()
        stream = await http.request("GET", "/sse", {"Accept": "text/event-stream"})
        first = await stream.event()
        assert first is not None
        assert first.fields["data"].startswith("/messages?session_id=")
        await stream.hang_up()

        evil: Headers = {"Host": "evil.example"}
        assert (await post(http, asked, {**mirrored(asked), **evil})).status == 421
