"""Measuring a server over HTTP: calls per second in each era, memory."""

import json
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bench.message import HANDSHAKE, STATELESS, WrongAnswer
from bench.process import NotRunning, Process

ROOT = Path(__file__).resolve().parent.parent
ERAS = {"http_handshake": HANDSHAKE, "http_stateless": STATELESS}
START_LIMIT = 30.0
LOAD_LIMIT = 120.0


@dataclass(frozen=True)
class Effort:
    """How much is done in one round, and before the first one."""

    seconds: float
    connections: int
    warm_up: float


class Server:
    """A running server that is measured round after round."""

    def __init__(self, process: Process, port: int, effort: Effort) -> None:
        self._process = process
        self._port = port
        self._effort = effort

    def warm_up(self) -> None:
        """Wait for the server to listen and let it come up to speed in each era."""
        wait(self._process, self._port)
        for era in ERAS.values():
            self._load(era, self._effort.warm_up)

    def samples(self) -> list[dict[str, float]]:
        """Take the samples of one round."""
        sample: dict[str, float] = {"client_busy": 0.0}
        for name, era in ERAS.items():
            counted = self._load(era, self._effort.seconds)
            sample[name] = counted["rate"]
            sample["client_busy"] = max(sample["client_busy"], counted["busy"])
        sample["http_memory"] = self._process.memory()
        return [sample]

    def _load(self, era: str, seconds: float) -> dict[str, float]:
        """Run the load client in a process of its own and return what it counted."""
        numbers = (self._port, era, seconds, self._effort.connections)
        client = subprocess.run(
            [sys.executable, "-m", "bench.load", *map(str, numbers)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=LOAD_LIMIT,
            check=False,
        )
        if not self._process.alive:
            raise NotRunning(self._process.complaint())
        if client.returncode != 0:
            raise WrongAnswer(f"{era}: {client.stderr.strip()[-700:]}")
        counted: dict[str, float] = json.loads(client.stdout)
        return counted


def free_port() -> int:
    """Find a port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait(process: Process, port: int) -> None:
    """Wait until the server accepts connections."""
    while time.perf_counter() - process.started < START_LIMIT:
        if not process.alive:
            raise NotRunning(process.complaint())
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise NotRunning("it did not listen in time")
