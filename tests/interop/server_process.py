"""A server process: owns starting one on a free loopback port, and ending it by its own process id."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.interop.node import ROOT
from tests.support.ports import free_port

HOST = "127.0.0.1"
SECONDS_TO_START = 120.0
SECONDS_TO_END = 10.0


@contextmanager
def serving(module: str, option: str, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run `python -m module option PORT`, and give the address it listens at."""
    port = free_port()
    with listening([sys.executable, "-m", module, option, str(port)], port, environment) as address:
        yield address


@contextmanager
def listening(command: list[str], port: int, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run a command that listens on a port, and give the address; what it says to a person is not shown."""
    whole = os.environ | dict(environment or {})
    process = subprocess.Popen(command, cwd=ROOT, env=whole, stdout=subprocess.DEVNULL)
    try:
        _wait_until_listening(process, port)
        yield f"http://{HOST}:{port}"
    finally:
        _end(process)


def _wait_until_listening(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while process.poll() is None:
        try:
            with socket.create_connection((HOST, port), timeout=1):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    raise RuntimeError(f"the server ended with status {process.returncode} before it listened")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise
