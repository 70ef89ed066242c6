"""systemd: what a service manager is told of a host."""

import asyncio
import signal
import socket
from pathlib import Path

import pytest

from bridgehead.host.systemd import ServiceManager
from tests.support.host_command import PATIENCE, serving

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="systemd is of Linux")


def receive_state(listening: socket.socket) -> str:
    listening.settimeout(PATIENCE)
    return listening.recv(100).decode()


async def test_it_hears_that_the_host_is_ready_lives_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(path))
        with serving(
            tmp_path,
            "--bridges",
            "alpha",
            cwd=Path.cwd(),
            NOTIFY_SOCKET=str(path),
            WATCHDOG_USEC="400000",
        ) as host:
            assert receive_state(listening) == "READY=1"
            assert receive_state(listening) == "WATCHDOG=1"
            host.process.send_signal(signal.SIGTERM)
            while (told := await asyncio.to_thread(receive_state, listening)) == "WATCHDOG=1":
                pass

    assert told == "STOPPING=1"


def test_nobody_is_told_where_nobody_asks() -> None:
    manager = ServiceManager({"WATCHDOG_USEC": "often"})
    manager.notify("READY=1")

    assert manager.watchdog_seconds == 0.0
    ServiceManager({"NOTIFY_SOCKET": "/nowhere/at/all"}).notify("READY=1")
