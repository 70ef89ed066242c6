"""Owners: the processes that sessions and tasks belong to, and where each is reached.

A process has a random name that ends with the version of what processes send each other, for example
`5f0c9a3b21d7-3`. The others find its address in Redis, where it renews its entry every two seconds. The entry
is signed: requests with callers' tokens go to that address, and others may write to Redis too. It is cached
without expiry: a process that has taken over a dead one's port says so, and names are never reused.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
import secrets
import socket
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bridgehead.mcp.http.server import listen
from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.stores import StoreError, StoreUnavailable

from ..settings import HostSettings

if TYPE_CHECKING:
    from bridgehead.runtime.stores.redis import Redis

BEAT_SECONDS = 2.0
LEASE_SECONDS = 10.0
_MAX_KNOWN = 1000
PROTOCOL = "-3"
"""Ends the name of a process. Raised when processes of two versions cannot forward to each other.

Until version 0.3, the number of a worker stood here (`.0`), so neither version takes the other's ids for its
own.
"""
_OWNED = re.compile(rb"([0-9a-f]{12}([.-][0-9]{1,3}))~")
_NAME_BYTES = 6

log = logs.logger("host.owners")


def make_name() -> str:
    """Make the name of a process: new at each start, so that an id never leads to a successor by mistake."""
    return secrets.token_hex(_NAME_BYTES) + PROTOCOL


def node_key(name: str) -> str:
    """Return the Redis key of a process's address."""
    return f"bridgehead:node:{name}"


class Owners:
    """The owners of sessions and tasks, from the view of one process."""

    def __init__(self, name: str, redis: Redis, keys: Sequence[bytes]) -> None:
        self.name = name
        self._redis = redis
        self._keys = keys
        """The keys of this service: the first signs, all verify."""
        self._address = ""
        self._known: OrderedDict[str, str] = OrderedDict()
        self._beating: asyncio.Task[None] | None = None
        self._leave: Callable[[], None] | None = None

    @property
    def id_prefix(self) -> str:
        """Begins the ids of our sessions and tasks."""
        return f"{self.name}~"

    def owner_of(self, identifier: bytes) -> str | None:
        """Return the other process that a session or task belongs to; None if it is this one, or unknown."""
        match = _OWNED.match(identifier)
        name = "" if match is None else match[1].decode()
        return None if name in {"", self.name} or not name.endswith(PROTOCOL) else name

    async def find(self, name: str) -> str | None:
        """Return the address of a process; None if there is no such process. Raises StoreUnavailable."""
        if name in self._known:
            return self._known[name]
        try:
            entry: bytes | None = await self._redis.call("GET", node_key(name))
        except StoreError:  # something else than a text
            entry = b"?"
        if not entry:
            return None
        address = self._verify(name, entry)
        if address is None:
            log.warn("an entry in Redis was not written by a replica, so it is not used", key=node_key(name))
            return None
        self._known[name] = address
        if len(self._known) > _MAX_KNOWN:
            self._known.popitem(last=False)
        return address

    def forget(self, name: str) -> None:
        """Drop a cached address."""
        self._known.pop(name, None)

    def _verify(self, name: str, entry: bytes) -> str | None:
        """Return the address in an entry that was signed with one of our keys, for this name."""
        address, _, mac = entry.partition(b" ")
        is_ours = any(hmac.compare_digest(mac, _sign(key, name, address)) for key in self._keys)
        return address.decode() if is_ours else None

    # --- our own entry -------------------------------------------------------------------------------------

    async def announce(self, address: str) -> None:
        """Publish this process's address in Redis, and renew the entry until `withdraw`."""
        self._address = address
        with suppress(StoreUnavailable):  # before the first session, so that others can find it
            await self._redis.call(*self._entry())
        self._beating = asyncio.get_running_loop().create_task(self._beat())
        # A Redis that was restarted may have lost our entry: write it at once, not at the next renewal.
        self._leave = self._redis.notices.subscribe(f"node:{self.name}", lambda _: None, self._renew)

    async def withdraw(self) -> None:
        """Remove this process's entry from Redis."""
        if self._beating is not None and self._leave is not None:
            self._beating.cancel()
            self._leave()
            with suppress(StoreUnavailable, StoreError):
                await self._redis.call("DEL", node_key(self.name))

    def _renew(self) -> None:
        self._redis.tell(*self._entry())

    def _entry(self) -> tuple[str | bytes | int, ...]:
        # Expires by itself after a crash. Four renewals may be lost before that.
        address = self._address.encode()
        entry = b"%b %b" % (address, _sign(self._keys[0], self.name, address))
        return "SET", node_key(self.name), entry, "PX", int(LEASE_SECONDS * 1000)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self._renew()


def _sign(key: bytes, name: str, address: bytes) -> bytes:
    return hmac.digest(key, b"node\n%b\n%b" % (name.encode(), address), "sha256").hex().encode()


def is_of_other_version(identifier: bytes) -> bool:
    """Tell whether a session or task belongs to a process to which this version cannot forward."""
    match = _OWNED.match(identifier)
    return match is not None and match[2].decode() != PROTOCOL


def bind_peer_socket(settings: HostSettings) -> socket.socket:
    """Listen for other processes: on the configured address, or on all if it is not one of ours.

    Behind NAT or in a container, the address that others use may not exist on this machine.
    """
    host, port = _peer_address(settings)
    for place in (host, "::" if ":" in host else "0.0.0.0"):  # noqa: S104 - every request must be signed
        with suppress(OSError):
            return listen(place, port)
    raise BridgeError(
        f"Cannot listen for other replicas on {host}:{port}.",
        next_step="Set BRIDGEHEAD_REPLICA_ADDRESS to an address of this machine and a free port.",
    )


def own_address(settings: HostSettings, listening: socket.socket) -> str:
    """Return the address by which other machines reach a socket."""
    host, _ = _peer_address(settings)
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{listening.getsockname()[1]}"


def _peer_address(settings: HostSettings) -> tuple[str, int]:
    """Return the host and the port (0: any) that the settings name, or that follow from them."""
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
                probe.connect(there)  # UDP: only the route is looked up
                address: str = probe.getsockname()[0]
                return address
    return "127.0.0.1"
