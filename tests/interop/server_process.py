"""A server process: owns starting one on a free loopback port, and ending it by its own process id."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.interop.node import ROOT
from tests.support.ports import free_port, wait_until_listening

HOST = "127.0.0.1"
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
        wait_until_listening(port, process)
        yield f"http://{HOST}:{port}"
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise
