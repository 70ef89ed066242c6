"""The servers that are measured: ours with a token in its file, and FastMCP with a token of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.http import free_port, wait
from bench.peers import HERE, HOME, install_ours, install_python
from bench.process import NotRunning, Process
from bridgehead.host.tokens import TokenFile, made

ROOT = HERE.parent


class Stage:
    """Where servers run: a folder, a token, and the interpreters."""

    def __init__(self, folder: Path) -> None:
        self.away = folder / "away"
        entry, self.token = made("bench", 0.0)
        self._tokens = TokenFile(folder / "tokens.json")
        self._tokens.add(entry)
        self._ours = str(install_ours())
        self._peer = str(install_python(HOME / "venv", HERE / "peers.txt"))

    @contextmanager
    def ours(self, *bridges: str) -> Iterator[tuple[Process, int]]:
        """Serve bridges with our host, asking for tokens."""
        os.environ["BRIDGEHEAD_TOKENS_FILE"] = str(self._tokens.path)
        os.environ["PYTHONPATH"] = str(ROOT)
        port = free_port()
        command = (self._ours, "-m", "bench.host.ours", str(port), str(self.away), *bridges)
        with _running(command, port) as process:
            yield process, port

    @contextmanager
    def fastmcp(self) -> Iterator[tuple[Process, int]]:
        """Serve the same tools with FastMCP, asking for the same token."""
        port = free_port()
        command = (self._peer, str(HERE / "host" / "fastmcp_peer.py"), str(port), self.token)
        with _running(command, port) as process:
            yield process, port

    def load(self, port: int, era: str, seconds: float, connections: int, *paths: str) -> "Load":
        """Start the load client."""
        numbers = (port, self.token, era, seconds, connections, *paths)
        return Load([sys.executable, "-m", "bench.host.load", *map(str, numbers)])


@contextmanager
def _running(command: tuple[str, ...], port: int) -> Iterator[Process]:
    with Process(command) as process:
        wait(process, port)
        yield process


class Load:
    """A load client at work."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def counted(self) -> dict[str, object]:
        """Wait for it to end, and return what it counted."""
        out, errors = self._process.communicate(timeout=300)
        if self._process.returncode:
            raise NotRunning(errors.strip()[-500:])
        found: dict[str, object] = json.loads(out)
        return found
