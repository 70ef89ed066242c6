"""Servers: ours and its peers, each in a process of its own, with the same small application."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bridgehead.mcp.http.asgi import AsgiApplication, asgi
from bridgehead.mcp.http.message import Request, Response
from tests.support.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
_APP = "tests.adversary.servers:app"
PEERS = {
    "uvicorn with h11": ("-m", "uvicorn", _APP, "--factory", "--http", "h11", "--log-level", "critical"),
    "uvicorn with httptools": (
        "-m",
        "uvicorn",
        _APP,
        "--factory",
        "--http",
        "httptools",
        "--log-level",
        "critical",
    ),
    "granian": ("-m", "granian", "--interface", "asgi", "--factory", _APP, "--no-log"),
}
OURS = ("-m", "tests.adversary.servers")


class Mirror:
    """Answers with what it was asked: method, path, length of the body."""

    async def __call__(self, request: Request) -> Response:
        """Answer once the whole body is there."""
        size = 0
        while piece := await request.read():
            size += len(piece)
        said = f"{request.method} {request.path} {size}".encode("utf-8", "replace")
        return Response(200, said, ((b"x-method", request.method.lower().encode()),))

    async def start(self) -> None:
        """Nothing is held open."""

    def end_streams(self) -> None:
        """There are none."""

    async def stop(self) -> None:
        """Nothing was held open."""


def app() -> AsgiApplication:
    """Give the application to a server that speaks ASGI."""
    return asgi(Mirror())


@contextmanager
def running(command: tuple[str, ...]) -> Iterator[int]:
    """Run a server on a free port, and end it by its own id."""
    port = free_port()
    process = subprocess.Popen([sys.executable, *command, "--port", str(port)], cwd=ROOT)
    try:
        _wait(port, process)
        yield port
    finally:
        process.terminate()
        process.wait(30)


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with socket.socket() as probe:
            probe.settimeout(0.2)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise SystemExit("the server ended before it listened")


async def main(port: int) -> None:
    """Serve the application with our own server."""
    from bridgehead.mcp.http.server import listen, serve

    await serve(Mirror(), listen("127.0.0.1", port), shutdown_seconds=1.0)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[-1])))
