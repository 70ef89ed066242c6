"""systemd: tells the service manager that this process is ready, lives, reloads or ends (sd_notify).

Does nothing where no service manager asks: without `NOTIFY_SOCKET` in the environment.
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
        """How often it expects a sign of life, in seconds; 0 if it does not."""

    def tell(self, state: str) -> None:
        """Say how this process is; whoever does not listen is not waited for."""
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(0)
            sender.sendto(state.encode(), address)
