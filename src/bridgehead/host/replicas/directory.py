"""Directory: which processes serve right now, and where each is reached by the others.

Each process has a name of its own, made at its start, and says every two seconds that it lives. An entry that
is not renewed ends by itself. An address that was found once is used without asking again: whoever has taken
a dead process's port says so, and a name is never given twice.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import socket
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bridgehead.mcp.http.server import listen
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.stores import StoreError, StoreUnavailable

from ..settings import HostSettings

if TYPE_CHECKING:
    from bridgehead.runtime.stores.redis import Redis

BEAT_SECONDS = 2.0
LIFE_SECONDS = 10.0
"""How long an entry lasts that is not renewed."""
_MOST_KNOWN = 1000
_NAME_BYTES = 6


def node_key(node: str) -> str:
    """Return where the address of a process is kept."""
    return f"bridgehead:node:{node}"


class Directory:
    """The processes, as one of them sees them."""

    def __init__(self, redis: Redis) -> None:
        self.node = secrets.token_hex(_NAME_BYTES)
        """The name of this process."""
        self._redis = redis
        self._address = ""
        self._known: OrderedDict[str, str] = OrderedDict()
        self._beating: asyncio.Task[None] | None = None
        self._leave: Callable[[], None] | None = None

    async def start(self, address: str) -> None:
        """Say that this process lives and where it is reached, now and as long as it does."""
        self._address = address
        with suppress(StoreUnavailable):  # before the first session is opened, where that can be
            await self._redis.call(*self._entry())
        self._beating = asyncio.get_running_loop().create_task(self._beat())
        # A Redis that was restarted may have lost our entry: write it at once, not with the next beat.
        self._leave = self._redis.notices.subscribe(f"node:{self.node}", lambda _: None, self._say)

    async def stop(self) -> None:
        """Say that this process has ended."""
        if self._beating is not None and self._leave is not None:
            self._beating.cancel()
            self._leave()
            with suppress(StoreUnavailable, StoreError):
                await self._redis.call("DEL", node_key(self.node))

    async def find(self, node: str) -> str | None:
        """Return where a process is reached; None where it does not live. Raises StoreUnavailable."""
        known = self._known.get(node)
        if known is not None:
            return known
        found: bytes | None = await self._redis.call("GET", node_key(node))
        if not found:
            return None
        self._known[node] = address = found.decode()
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return address

    def forget(self, node: str) -> None:
        """Ask again where a process is, the next time."""
        self._known.pop(node, None)

    def _say(self) -> None:
        self._redis.tell(*self._entry())

    def _entry(self) -> tuple[str | int, ...]:
        return "SET", node_key(self.node), self._address, "PX", int(LIFE_SECONDS * 1000)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self._say()


def open_door(settings: HostSettings, index: int = 0) -> socket.socket:
    """Listen where other processes reach this one: on the given address, or on all where it is not ours."""
    host, port = _given(settings)
    port += index if port else 0
    for place in (host, "::" if ":" in host else "0.0.0.0"):  # noqa: S104 - the door asks for a signature
        with suppress(OSError):
            return listen(place, port)
    raise BridgeError(
        f"Cannot listen for other replicas on {host}:{port}.",
        next_step="Set BRIDGEHEAD_REPLICA_ADDRESS to an address of this machine and a free port.",
    )


def within_machine(door: socket.socket) -> str:
    """Return the host by which this machine itself reaches a door, as it stands in a URL."""
    host = door.getsockname()[0]
    if ipaddress.ip_address(host).is_unspecified:
        return "[::1]" if ":" in host else "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def own_address(settings: HostSettings, door: socket.socket) -> str:
    """Return the address by which other processes reach a door."""
    host, _ = _given(settings)
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{door.getsockname()[1]}"


def _given(settings: HostSettings) -> tuple[str, int]:
    """Return the host and the port (0: any) that the settings give, or that follow from them."""
    if settings.replica_address:
        parts = urlsplit(f"//{settings.replica_address}")
        return parts.hostname or "", parts.port or 0
    if settings.is_loopback:
        return "127.0.0.1", 0
    with suppress(ValueError):
        if ipaddress.ip_address(settings.host.strip("[]")).is_unspecified:
            return _address_towards(settings.redis_url or ""), 0
    return settings.host.strip("[]"), 0


def _address_towards(url: str) -> str:
    """Return the address of this machine in the network that Redis is in. Nothing is sent."""
    parts = urlsplit(url.partition("://")[2].rpartition("@")[2].partition(",")[0].join(("//", "")))
    with suppress(OSError, ValueError):
        for family, *_, there in socket.getaddrinfo(
            parts.hostname, parts.port or 6379, type=socket.SOCK_DGRAM
        ):
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect(there)
                found: str = probe.getsockname()[0]
                return found
    return "127.0.0.1"
