"""Ports of this machine, for processes that have to be told one before they start."""

import secrets
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.support.waiting import PATIENCE

FIRST, COUNT = 15_000, 17_000
"""Below the ports that systems give to whoever names none: those may be given away before they are used."""


def free_port() -> int:
    """Find a port that nobody listens on."""
    while True:
        port = FIRST + secrets.randbelow(COUNT)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def wait_until_listening(port: int, process: subprocess.Popen[Any], log: Path | None = None) -> None:
    """Wait until a process takes connections on a port; what ends before is told with its log."""
    limit = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            said = "" if log is None else log.read_text()[-2000:]
            assert process.poll() is None, f"it ended with status {process.returncode} {said}"
            assert time.monotonic() < limit, f"nothing listens on port {port} {said}"
            time.sleep(0.02)
        else:
            return
