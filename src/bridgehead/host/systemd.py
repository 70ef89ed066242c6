"""systemd: notifies the service manager that this process is ready, alive, reloading or stopping (sd_notify).

Does nothing without `NOTIFY_SOCKET` in the environment.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress

READY, STOPPING, ALIVE = "READY=1", "STOPPING=1", "WATCHDOG=1"
_MICRO = 1_000_000


class ServiceManager:
    """The service manager that started this process, if it wants notifications."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        text = environment.get("WATCHDOG_USEC", "")
        self.watchdog_seconds = int(text) / _MICRO if text.isdecimal() else 0.0
        """Longest time between two `ALIVE`, in seconds, before systemd restarts the service; 0: no limit."""

    def notify(self, state: str) -> None:
        """Send a state. Never blocks and never raises: serving matters more than being observed."""
        if not self._address:
            return
        # sd_notify(3): a leading @ stands for the zero byte of an abstract socket.
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(0)
            sender.sendto(state.encode(), address)
