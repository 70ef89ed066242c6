"""The servers that are measured: ours with a token in its file, FastMCP with a token, and far sides."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.http import free_port, wait
from bench.peers import HERE, HOME, install_ours, install_python
from bench.process import NotRunning, Process
from bridgehead.host.auth.tokens import TokenFile, create_token

ROOT = HERE.parent
PUZZLE = "Count the gulls."
RUN = '{"timestamp": "2025-12-01T06:00:00Z", "phase": 1, "llm": "gpt4", "speedMs": 1250}'
RECORDS = f'{{"day": 1, "entries": [{RUN}]}}'
GAME_FILE = 'export async function main(ns) { ns.tprint("hello"); }\n'


class Stage:
    """Where servers run: a folder, a token, and the interpreters."""

    def __init__(self, folder: Path) -> None:
        entry, self.token = create_token("bench", 0.0)
        tokens = TokenFile(folder / "tokens.json")
        tokens.add(entry)
        self._folder = folder
        self._ours = str(install_ours())
        self._peer = str(install_python(HOME / "venv", HERE / "peers.txt"))
        os.environ |= {
            "BRIDGEHEAD_TOKENS_FILE": str(tokens.path),
            "BRIDGEHEAD_STATE_DIR": str(folder / "state"),
            "PYTHONPATH": str(ROOT),
        }

    @contextmanager
    def ours(self, python: str = "") -> Iterator[tuple[Process, int]]:
        """Serve the tools of the bench with our host, asking for tokens."""
        port = free_port()
        with _running((python or self._ours, "-m", "bench.host.ours", str(port)), port) as process:
            yield process, port

    @contextmanager
    def fastmcp(self) -> Iterator[tuple[Process, int]]:
        """Serve the same tools with FastMCP, asking for the same token."""
        port = free_port()
        command = (self._peer, str(HERE / "host" / "fastmcp_peer.py"), str(port), self.token)
        with _running(command, port) as process:
            yield process, port

    @contextmanager
    def product(self, api: int, game: int) -> Iterator[tuple[Process, int]]:
        """Serve all three bridges, with a simulated API at one port and a game that dials in at another."""
        port = free_port()
        os.environ |= {
            "AOC_DATA_DIR": str(self._puzzles()),
            "BITBURNER_LISTEN": f"127.0.0.1:{game}",
            "BITBURNER_CONNECT_WAIT_MS": "50",
            "LOG_LEVEL": "error",
            "MERCURY_API_KEY": "simulated",
            "MERCURY_API_URL": f"http://127.0.0.1:{api}/v1",
            "RATE_LIMIT_ENABLED": "0",
        }
        with _running((self._ours, "-m", "bridgehead", "serve", "--port", str(port)), port) as process:
            yield process, port

    def _puzzles(self) -> Path:
        data = self._folder / "aoc"
        (data / "instructions").mkdir(parents=True, exist_ok=True)
        (data / "speeds").mkdir(exist_ok=True)
        (data / "instructions" / "Day01_phase1.md").write_text(PUZZLE)
        (data / "speeds" / "day01.json").write_text(RECORDS)
        return data

    @contextmanager
    def api(self) -> Iterator[int]:
        """Simulate the Mercury API."""
        port = free_port()
        command = (self._ours, "-m", "bridgehead", "mercury", "simulate", "--port", str(port))
        with _running((*command, "--delay-ms", "0"), port):
            yield port

    def game(self, port: int) -> "Game":
        """Simulate a game that dials in at a port."""
        files = self._folder / "game"
        files.mkdir(exist_ok=True)
        (files / "hello.js").write_text(GAME_FILE)
        command = (self._ours, "-m", "bridgehead", "bitburner", "simulate", "--files", str(files))
        return Game((*command, "--url", f"ws://127.0.0.1:{port}", "--reconnect", "0.2"))

    def load(self, port: int, era: str, seconds: float, connections: int, mix: str) -> "Load":
        """Start the load client."""
        numbers = (port, self.token, era, seconds, connections, mix)
        return Load([sys.executable, "-m", "bench.host.load", *map(str, numbers)])


@contextmanager
def _running(command: tuple[str, ...], port: int) -> Iterator[Process]:
    with Process(command) as process:
        wait(process, port)
        yield process


class Game:
    """A game that can be switched off and on."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    def switch(self, *, on: bool) -> None:
        """Start it, or kill it; what is so already stays so."""
        if on and self._process is None:
            # It tells of every call: a pipe that nobody reads would stop it before long.
            self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        elif not on and self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class Load:
    """A load client at work."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def counted(self) -> Any:
        """Wait for it to end, and return what it counted."""
        out, errors = self._process.communicate(timeout=300)
        if self._process.returncode:
            raise NotRunning(errors.strip()[-500:])
        sys.stderr.write(errors)
        return json.loads(out)
